#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sorot/sorot.h"

/// A line of cases/attention.json, and what follows from it without computing any attention.
namespace sorot::bench {

struct AttentionCase {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, dim = 0;
  bool causal = false;
  Align align = Align::top_left;
  std::vector<std::string> devices;  ///< that it is timed on; empty: all there are
};

/// Throws std::invalid_argument, or nlohmann's exceptions, for a field that is unknown, missing or wrong.
AttentionCase read_attention_case(const nlohmann::json& line);
std::vector<AttentionCase> read_attention_cases(const nlohmann::json& lines);

bool is_timed_on(const AttentionCase& c, const std::string& device);

/// Keys that query row `i` attends: the first so many.
std::int64_t attended_keys(const AttentionCase& c, std::int64_t i);

/// A multiply and an add for each of q . k and weight . v, over all attended pairs.
double attention_flops(const AttentionCase& c);

/// Of q, k, v and out together.
double attention_bytes(const AttentionCase& c);

/// The args of a case over dense tensors at these addresses.
AttentionArgs attention_args(const AttentionCase& c, void* q, void* k, void* v, void* out);

}  // namespace sorot::bench
