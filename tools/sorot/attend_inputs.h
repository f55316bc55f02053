#pragma once

#include <span>
#include <string>
#include <vector>

#include "sorot/sorot.h"
#include "tools/sorot/buffer.h"
#include "tools/sorot/emulation.h"
#include "tools/sorot/npy.h"

namespace sorot::tools {

/// Options of `sorot attend` as they were given. Empty: not given.
struct AttendOptions {
  std::string q, k, v;
  std::string mask, bias, alibi, sinks;
  std::string kv_lengths, window, align, align_offsets;
  bool causal = false;
  std::string scale, softcap;
  std::string dtype = "fp32", device = "auto", kernel;
  EmulationOptions emulation;
  std::string out, weights, lse;
  bool explain = false, json = false;
};

/// Floats of one type as another, each rounded once to nearest even. f16, bf16, f32, f64.
Buffer convert(const Buffer& from, DType from_type, DType to_type);

/// What the options name, read, checked against the options' own rules and rounded to the types that the library
/// takes: everything of an attention problem but its outputs. Shapes are left to the library to check.
class AttendInputs {
 public:
  explicit AttendInputs(const AttendOptions& options);

  DType dtype() const { return dtype_; }                                     ///< of q, k, v and out
  DType wide() const { return dtype_ == DType::f64 ? dtype_ : DType::f32; }  ///< of all that is written
  int rank() const { return rank_; }                                         ///< of q, k and v in their files
  const AttentionArgs& args() const { return args_; }                        ///< views into this object; rank 4

  /// Throws unless ok, and says from which file a tensor came that the library refuses.
  void require(const Status& status) const;

 private:
  void read_scalars(const AttendOptions& options);
  NpyArray read(const char* field, const char* option, const std::string& path, std::span<const DType> accepted);
  ConstTensorView read_floats(const char* field, const char* option, const std::string& path, DType dtype);
  ConstTensorView read_head(const char* field, const char* option, const std::string& path);
  ConstTensorView read_mask(const std::string& path);
  ConstTensorView read_integers(const char* field, const char* option, const std::string& text, std::int64_t lowest,
                                std::int64_t highest);

  struct Source {
    std::string field;  ///< of AttentionArgs
    std::string name;   ///< "--q q.npy"
  };
  DType dtype_ = DType::f32;
  int rank_ = 0;
  AttentionArgs args_;
  std::vector<Buffer> memory_;
  std::vector<Source> sources_;
};

}  // namespace sorot::tools
