#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sorot/attention.h"
#include "tests/support/attention_case.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/oracle.h"

namespace sorot::support {

/// The tensors of a case in memory, with values, as its layouts say. Memory is the truth: where strides make elements
/// alias each other, the dense problem read back has what is really there.
class AttentionTensors {
 public:
  explicit AttentionTensors(const AttentionCase& c);

  /// All outputs of the case; they are written through the views.
  AttentionArgs args() const;

  DenseAttention dense() const;

  const StridedTensor& out() const { return *out_; }
  const StridedTensor* lse() const { return lse_.get(); }
  const StridedTensor* weights() const { return weights_.get(); }
  std::vector<StridedTensor*> outputs() const;
  std::vector<const StridedTensor*> inputs() const;  ///< those present

  /// Sets every byte of the outputs, elements and gaps.
  void fill_outputs(std::byte value) const;

  /// Names the first tensor in which something changed that no call may change: an input, or bytes around outputs
  /// filled with `fill`; of lse and weights every byte, if they were not asked for. Empty if all is well.
  std::string damage(std::byte fill, bool extras_asked = true) const;

 private:
  using Tensor = std::unique_ptr<StridedTensor>;

  void make_qkv(const AttentionCase& c);
  void make_mask(const AttentionCase& c);
  void make_bias(const AttentionCase& c);
  void put(const AttentionCase& c);

  AttentionCase case_;
  Tensor q_, k_, v_, kv_lengths_, offsets_, mask_, bias_, alibi_slopes_, sinks_;
  Tensor out_, lse_, weights_;
  std::vector<std::vector<std::byte>> snapshots_;  ///< of the inputs' buffers
};

}  // namespace sorot::support
