#pragma once

#include <atomic>
#include <cstddef>

namespace sorot::tests {

/// Bytes asked of every operator new of this program; set it to 0 where counting begins.
extern std::atomic<std::size_t> allocated_bytes;

}  // namespace sorot::tests
