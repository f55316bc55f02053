#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/attention_case.h"
#include "tests/support/oracle.h"

namespace sorot::support {

/// For every element of the broadcast shape (row-major), the element of `shape` it reads.
std::vector<std::size_t> broadcast_indices(const std::vector<std::int64_t>& shape,
                                           const std::vector<std::int64_t>& broadcast);

/// Finds elements of a problem where a NaN or infinity means what a Place says.
class PlacementFinder {
 public:
  PlacementFinder(DenseAttention problem, std::uint64_t seed);

  /// Index into q, k, v or the broadcast bias; none if the problem has no such element. Another `number`, another
  /// choice.
  std::optional<std::size_t> find(Place place, std::uint64_t number) const;

 private:
  std::optional<std::size_t> find_pair(const std::vector<char>& pairs, bool attended, std::uint64_t start) const;
  std::optional<std::size_t> find_unread_key(std::uint64_t start) const;
  std::size_t key_row(std::size_t pair) const;

  DenseAttention problem_;
  std::uint64_t seed_;
  std::vector<char> attended_;
  std::vector<char> attended_but_for_bias_;
  std::vector<char> read_;  ///< [B, Hkv, Skv]: some query attends the key
};

}  // namespace sorot::support
