#include "tests/support/placement.h"

#include <utility>

#include "tests/support/random.h"

namespace sorot::support {

std::vector<std::size_t> broadcast_indices(const std::vector<std::int64_t>& shape,
                                           const std::vector<std::int64_t>& broadcast) {
  std::vector<std::size_t> indices{0};
  const std::size_t missing = broadcast.size() - shape.size();
  for (std::size_t d = 0; d < broadcast.size(); ++d) {
    const bool repeats = d < missing || shape[d - missing] == 1;
    const auto size = repeats ? std::size_t{1} : static_cast<std::size_t>(shape[d - missing]);
    std::vector<std::size_t> next;
    next.reserve(indices.size() * static_cast<std::size_t>(broadcast[d]));
    for (const std::size_t outer : indices) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(broadcast[d]); ++i) {
        next.push_back(outer * size + (repeats ? 0 : i));
      }
    }
    indices = std::move(next);
  }
  return indices;
}

PlacementFinder::PlacementFinder(DenseAttention problem, std::uint64_t seed)
    : problem_(std::move(problem)), seed_(seed), attended_(attended_pairs(problem_)) {
  DenseAttention unbiased = problem_;
  unbiased.bias.clear();
  attended_but_for_bias_ = attended_pairs(unbiased);
  read_.assign(static_cast<std::size_t>(problem_.batch * problem_.kv_heads * problem_.keys), 0);
  for (std::size_t pair = 0; pair < attended_.size(); ++pair) {
    if (attended_[pair] != 0) read_[key_row(pair)] = 1;
  }
}

std::size_t PlacementFinder::key_row(std::size_t pair) const {
  const auto keys = static_cast<std::size_t>(problem_.keys);
  const std::size_t head = pair / keys / static_cast<std::size_t>(problem_.queries);
  const auto b = static_cast<std::int64_t>(head) / problem_.heads;
  const auto h = static_cast<std::int64_t>(head) % problem_.heads;
  return problem_.kv_head(b, h) * keys + pair % keys;
}

std::optional<std::size_t> PlacementFinder::find_pair(const std::vector<char>& pairs, bool attended,
                                                      std::uint64_t start) const {
  for (std::size_t n = 0; n < pairs.size(); ++n) {
    const std::size_t pair = (start + n) % pairs.size();
    if ((pairs[pair] != 0) == attended) return pair;
  }
  return std::nullopt;
}

std::optional<std::size_t> PlacementFinder::find_unread_key(std::uint64_t start) const {
  for (std::size_t n = 0; n < read_.size(); ++n) {
    const std::size_t key = (start + n) % read_.size();
    if (read_[key] == 0) return key;
  }
  return std::nullopt;
}

std::optional<std::size_t> PlacementFinder::find(Place place, std::uint64_t number) const {
  constexpr std::uint64_t kPlacementStream = 100;
  Random random({seed_, kPlacementStream, number});
  const std::uint64_t start = random.next() >> 1;
  const bool of_value = place == Place::masked_value || place == Place::attended_value;
  const auto width = static_cast<std::size_t>(of_value ? problem_.value_dim : problem_.head_dim);
  const auto d = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(width)));
  const bool prefer_unread = random.chance(0.5);

  switch (place) {
    case Place::masked_bias: return find_pair(attended_but_for_bias_, false, start);
    case Place::attended_bias: return find_pair(attended_, true, start);
    case Place::query:
      if (const auto pair = find_pair(attended_, true, start)) {
        return *pair / static_cast<std::size_t>(problem_.keys) * width + d;
      }
      return std::nullopt;
    case Place::attended_key:
    case Place::attended_value:
      if (const auto pair = find_pair(attended_, true, start)) return key_row(*pair) * width + d;
      return std::nullopt;
    case Place::masked_key:
    case Place::masked_value:  // half the time a key that other rows do attend, where there is one
      if (prefer_unread) {
        if (const auto key = find_unread_key(start)) return *key * width + d;
      }
      if (const auto pair = find_pair(attended_, false, start)) return key_row(*pair) * width + d;
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace sorot::support
