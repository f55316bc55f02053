#pragma once

#include <cstdint>

namespace sorot::inline v0::tile {

/// How a tile of rows is read from global memory. Which path a tensor takes is the plan's choice.
enum class LoadPath : std::uint8_t {
  vectors,        ///< 16 bytes a lane along the row: rows are whole vectors and begin at multiples of 16 bytes
  along_columns,  ///< one element a lane, neighbours in the row: any strides
  along_rows,     ///< one element a lane, neighbours in the column: any strides, best if the rows are adjacent
};

}  // namespace sorot::inline v0::tile
