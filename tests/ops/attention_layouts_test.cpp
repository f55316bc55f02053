#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/ops/devices.h"
#include "tests/support/attention_case.h"
#include "tests/support/attention_problem.h"
#include "tests/support/read_args.h"

/// Cases from the field: strides, broadcasts, packed tensors, and tensors larger than 32 bits can count.
namespace sorot::support {
namespace {

class AttentionLayouts : public OnEveryDevice {
 protected:
  void expect_oracle(const AttentionCase& c) {
    const CaseResult result = run_case(device_, PreparedCase(c));
    EXPECT_TRUE(result.passed()) << result.problem << "\n" << to_json(c);
  }
  void expect_oracle(const AttentionArgs& args) {
    const Status status = plan_and_run(device_, args);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(judge_call(args).what, "");
  }
};
SOROT_ON_EVERY_DEVICE(AttentionLayouts);

AttentionCase base_case() {
  AttentionCase c;
  c.dtype = DType::f32;
  c.batch = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.queries = 5;
  c.keys = 9;
  c.head_dim = 8;
  c.value_dim = 6;
  c.lse = true;
  c.weights = DType::f32;
  return c;
}

TEST_P(AttentionLayouts, FieldCase19BiasWithAnUnfriendlyRowStride) {
  AttentionProblemF32 p({1, 2, 2, 43, 43, 16, 16});
  std::vector<float> bias(43 * 51 + 1);
  for (std::size_t e = 0; e < bias.size(); ++e) bias[e] = static_cast<float>(e % 7) - 3;
  for (const std::int64_t row : {43, 51}) {
    for (const std::size_t off : {0U, 1U}) {
      p.args.bias = view(static_cast<const float*>(bias.data()) + off, {43, 43}).with_strides({row, 1});
      expect_oracle(p.args);
    }
  }
}

TEST_P(AttentionLayouts, FieldCase20KeysAndValuesWithDifferentStrides) {
  for (const Order k : {Order::natural, Order::heads_inner, Order::transposed}) {
    for (const Order v : {Order::natural, Order::heads_inner, Order::transposed}) {
      AttentionCase c = base_case();
      c.k.order = k;
      c.v.order = v;
      expect_oracle(c);
    }
  }
}

TEST_P(AttentionLayouts, FieldCase21EveryTensorInEveryLayout) {
  constexpr Order kOrders[] = {Order::natural, Order::heads_inner, Order::transposed, Order::packed};
  constexpr Twist kTwists[] = {Twist::none,      Twist::negative, Twist::zero,
                               Twist::unaligned, Twist::padded,   Twist::strided};
  AttentionCase all = base_case();
  all.mask.present = all.bias.present = true;
  Layout* tensors[] = {&all.q,           &all.k,   &all.v,          &all.mask.layout,
                       &all.bias.layout, &all.out, &all.lse_layout, &all.weights_layout};
  for (std::size_t t = 0; t < std::size(tensors); ++t) {
    for (const Order order : kOrders) {
      for (const Twist twist : kTwists) {
        const bool output = t >= 5;
        if (output && twist == Twist::zero) continue;
        for (std::int32_t zero_dim = 0; zero_dim < (twist == Twist::zero ? 4 : 1); ++zero_dim) {
          *tensors[t] = {order, twist, zero_dim};
          expect_oracle(all);
        }
      }
    }
    *tensors[t] = {};
  }
}

TEST_P(AttentionLayouts, FieldCase21PackedQkvSharesOneBuffer) {
  AttentionCase c = base_case();
  c.keys = c.queries;
  c.value_dim = c.head_dim;
  c.q.order = c.k.order = c.v.order = Order::packed;
  expect_oracle(c);
  c.kv_heads = 4;
  expect_oracle(c);
}

TEST_P(AttentionLayouts, FieldCase21AnOutputThatAliasesItselfIsRefused) {
  AttentionProblemF32 p({2, 2, 2, 3, 4, 4, 4});
  const auto refused = [&](TensorView AttentionArgs::*output, std::initializer_list<std::int64_t> strides) {
    AttentionArgs args = p.args;
    args.*output = (args.*output).with_strides(strides);
    return plan_and_run(device_, args).code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(&AttentionArgs::out, {0, 12, 4, 1}));
  EXPECT_TRUE(refused(&AttentionArgs::out, {24, 12, 3, 1}));
  EXPECT_TRUE(refused(&AttentionArgs::out, {24, 12, 4, -4}));
  EXPECT_TRUE(refused(&AttentionArgs::lse, {6, 3, 0}));
  EXPECT_TRUE(refused(&AttentionArgs::lse, {3, 3, 1}));
  EXPECT_TRUE(refused(&AttentionArgs::weights, {24, 12, 3, 1}));
  EXPECT_FALSE(refused(&AttentionArgs::out, {12, 24, 1, 3}));
}

TEST_P(AttentionLayouts, FieldCase23MoreThan65535Heads) {
  if (kEmulated && !device_.on_host()) GTEST_SKIP() << "in AttentionGrids, under one schedule";
  AttentionProblemF32 p({7, 10'000, 10'000, 1, 2, 1, 1});
  expect_oracle(p.args);
}

TEST_P(AttentionLayouts, FieldCase23MoreThan65536Queries) {
  AttentionProblemF32 p({1, 1, 1, 65'537, 2, 1, 1});
  p.args.causal = true;
  expect_oracle(p.args);
}

TEST_P(AttentionLayouts, FieldCase23MoreThan65536Keys) {
  AttentionProblemF32 p({1, 1, 1, 2, 65'537, 1, 1});
  p.args.causal = true;
  p.args.align = Align::bottom_right;
  expect_oracle(p.args);
}

/// Memory that only costs what is touched.
class SparseMemory {
 public:
  explicit SparseMemory(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseMemory() {
    if (ok()) munmap(data_, bytes_);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  bfloat16* data() const { return static_cast<bfloat16*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

TEST_P(AttentionLayouts, FieldCase23BatchStridesPast2To31Elements) {
  if (!device_.on_host()) GTEST_SKIP() << "in AttentionGrids, a tensor at a time";
  constexpr std::int64_t kStride = std::int64_t{1} << 30;
  constexpr std::int64_t kBatch = 4;  // sequence 3 begins at element 3 * 2^30
  constexpr std::size_t kBytes = std::size_t{3 * kStride + 4096} * sizeof(bfloat16);
  SparseMemory memory[5] = {SparseMemory(kBytes), SparseMemory(kBytes), SparseMemory(kBytes), SparseMemory(kBytes),
                            SparseMemory(kBytes)};
  for (const SparseMemory& m : memory) {
    if (!m.ok()) GTEST_SKIP() << "no address space for 5 x 6 GiB of untouched memory";
  }
  const auto tensor = [&](std::size_t n, std::int64_t rows, std::int64_t width) {
    return view(memory[n].data(), {kBatch, 1, rows, width}).with_strides({kStride, rows * width, width, 1});
  };
  AttentionArgs args;
  args.q = tensor(0, 2, 8);
  args.k = tensor(1, 3, 8);
  args.v = tensor(2, 3, 4);
  args.out = tensor(3, 2, 4);
  args.weights = tensor(4, 2, 3);
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t e = 0; e < 24; ++e) {
        memory[n].data()[b * kStride + e] = bfloat16(static_cast<float>((e * 7 + b * 3) % 11) / 4 - 1);
      }
    }
  }
  expect_oracle(args);
}

}  // namespace
}  // namespace sorot::support
