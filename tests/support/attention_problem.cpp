#include "tests/support/attention_problem.h"

#include <cstring>

#include "tests/support/device_args.h"
#include "tests/support/half_problem.h"
#include "tests/support/random.h"

namespace sorot::support {
namespace {

std::vector<float> numbers(std::int64_t count, std::uint64_t stream) {
  Random random({stream, 0xF32});
  std::vector<float> values;
  for (std::int64_t n = 0; n < count; ++n) values.push_back(static_cast<float>(random.normal()));
  return values;
}

std::size_t at(std::int64_t b, std::int64_t heads, std::int64_t h, std::int64_t rows, std::int64_t row,
               std::int64_t width, std::int64_t d) {
  return static_cast<std::size_t>(((b * heads + h) * rows + row) * width + d);
}

}  // namespace

AttentionProblemF32::AttentionProblemF32(const Sizes& s)
    : sizes(s),
      q_data(numbers(s.batch * s.heads * s.queries * s.head_dim, 1)),
      k_data(numbers(s.batch * s.kv_heads * s.keys * s.head_dim, 2)),
      v_data(numbers(s.batch * s.kv_heads * s.keys * s.value_dim, 3)),
      out_data(static_cast<std::size_t>(s.batch * s.heads * s.queries * s.value_dim), kNan),
      lse_data(static_cast<std::size_t>(s.batch * s.heads * s.queries), kNan),
      weights_data(static_cast<std::size_t>(s.batch * s.heads * s.queries * s.keys), kNan) {
  args.q = view(q_data.data(), {s.batch, s.heads, s.queries, s.head_dim});
  args.k = view(k_data.data(), {s.batch, s.kv_heads, s.keys, s.head_dim});
  args.v = view(v_data.data(), {s.batch, s.kv_heads, s.keys, s.value_dim});
  args.out = view(out_data.data(), {s.batch, s.heads, s.queries, s.value_dim});
  args.lse = view(lse_data.data(), {s.batch, s.heads, s.queries});
  args.weights = view(weights_data.data(), {s.batch, s.heads, s.queries, s.keys});
}

Status AttentionProblemF32::run(const Device& device) { return plan_and_run(device, args); }

float& AttentionProblemF32::q(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
  return q_data[at(b, sizes.heads, h, sizes.queries, i, sizes.head_dim, d)];
}
float& AttentionProblemF32::k(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
  return k_data[at(b, sizes.kv_heads, h, sizes.keys, j, sizes.head_dim, d)];
}
float& AttentionProblemF32::v(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t d) {
  return v_data[at(b, sizes.kv_heads, h, sizes.keys, j, sizes.value_dim, d)];
}
float AttentionProblemF32::out(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) const {
  return out_data[at(b, sizes.heads, h, sizes.queries, i, sizes.value_dim, d)];
}
float AttentionProblemF32::lse(std::int64_t b, std::int64_t h, std::int64_t i) const {
  return lse_data[at(b, sizes.heads, h, sizes.queries, i, 1, 0)];
}
float AttentionProblemF32::weight(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  return weights_data[at(b, sizes.heads, h, sizes.queries, i, sizes.keys, j)];
}

Status plan_and_run(const Device& device, const AttentionArgs& args) {
  AttentionPlan plan;
  if (Status status = attention_plan(device.context(), args, plan); !status.ok()) return status;
  if (Status status = run_plan(device, plan, args); !status.ok()) return status;
  const std::string problem = check_in_half(device, args);
  return problem.empty() ? Status() : Status(StatusCode::kInternal, problem.c_str());
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace sorot::support
