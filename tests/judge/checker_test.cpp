#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/support/guarded_buffer.h"
#include "tests/support/run_case.h"

/// The checker must be able to fail: each mistake a kernel could make is made here on purpose, and has to be caught.
namespace sorot::support {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A case in which every mistake below matters.
AttentionCase rich_case(DType dtype) {
  AttentionCase c;
  c.seed = 20;
  c.dtype = dtype;
  c.batch = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.queries = 9;
  c.keys = 17;
  c.head_dim = 16;
  c.value_dim = 8;
  c.align = Align::bottom_right;
  c.causal = true;
  c.window.left = 5;
  c.kv_lengths.values = {11, 17};
  c.mask.present = true;
  c.mask.empty_row = true;
  c.softcap = 1.5;
  c.bias.present = true;
  c.alibi_slopes.values = {0.5, 0.25, 0.125, 0};
  c.sinks.values = {0.5, -1, 2, 0};
  c.lse = true;
  c.weights = dtype;
  return c;
}

class Checker : public testing::TestWithParam<DType> {
 protected:
  CaseResult run(const Sabotage& sabotage, const std::function<void(PreparedCase&)>& prepare = {}) {
    PreparedCase prepared(rich_case(GetParam()));
    if (prepare) prepare(prepared);
    return run_case(Device("reference"), prepared, "", sabotage);
  }
  void expect_caught(const char* what, const Sabotage& sabotage) { EXPECT_FALSE(run(sabotage).passed()) << what; }
};

TEST_P(Checker, PassesWhatIsRight) { EXPECT_EQ(run({}).problem, ""); }

TEST_P(Checker, CatchesWrongArguments) {
  const auto caught = [&](const char* what, const std::function<void(AttentionArgs&)>& args) {
    expect_caught(what, {args, {}});
  };
  caught("window one wider", [](AttentionArgs& a) { ++a.window.left; });
  caught("window one narrower", [](AttentionArgs& a) { --a.window.left; });
  caught("causal dropped", [](AttentionArgs& a) { a.causal = false; });
  caught("another alignment", [](AttentionArgs& a) { a.align = Align::top_left; });
  caught("lengths dropped", [](AttentionArgs& a) { a.kv_lengths = {}; });
  caught("mask dropped", [](AttentionArgs& a) { a.mask = {}; });
  caught("bias dropped", [](AttentionArgs& a) { a.bias = {}; });
  caught("slopes dropped", [](AttentionArgs& a) { a.alibi_slopes = {}; });
  caught("sinks dropped", [](AttentionArgs& a) { a.sinks = {}; });
  caught("softcap dropped", [](AttentionArgs& a) { a.softcap = 0; });
  caught("scale of another D", [](AttentionArgs& a) { a.scale = 1 / std::sqrt(20.0); });
  caught("heads swapped", [](AttentionArgs& a) {
    a.q.data = static_cast<const char*>(a.q.data) + 3 * a.q.strides[1] * static_cast<std::int64_t>(size_of(a.q.dtype));
    a.q.strides[1] = -a.q.strides[1];
  });
  caught("v one key on", [](AttentionArgs& a) {
    a.v = a.v.slice(2, 1, a.v.shape[2]);
    a.v.shape[2] += 1;
    a.v.strides[2] = 0;
  });
}

TEST_P(Checker, CatchesWrongResults) {
  const auto caught = [&](const char* what, const std::function<void(const AttentionTensors&)>& results) {
    expect_caught(what, {{}, results});
  };
  const auto outputs = [](const AttentionTensors& t, std::size_t n) -> StridedTensor& { return *t.outputs()[n]; };
  const PreparedCase prepared(rich_case(GetParam()));
  std::size_t number = 0;  // of an ordinary row, and of an empty one
  std::size_t empty = 0;
  for (std::size_t row = 0; row < prepared.oracle.lse.kind.size(); ++row) {
    (prepared.oracle.lse.kind[row] == Expect::number ? number : empty) = row;
  }
  ASSERT_EQ(prepared.oracle.lse.kind[empty], Expect::exact);

  caught("one element of out off", [&](const AttentionTensors& t) {
    outputs(t, 0).set(number * 8 + 3, outputs(t, 0).get(number * 8 + 3) + 0.1);
  });
  caught("NaN in out", [&](const AttentionTensors& t) { outputs(t, 0).set(number * 8, kNaN); });
  caught("lse off", [&](const AttentionTensors& t) { outputs(t, 1).set(number, outputs(t, 1).get(number) + 1e-3); });
  caught("uniform fill of an empty row", [&](const AttentionTensors& t) {
    for (std::size_t d = 0; d < 8; ++d) outputs(t, 0).set(empty * 8 + d, 0.1);
  });
  caught("NaN in an empty row", [&](const AttentionTensors& t) { outputs(t, 0).set(empty * 8, kNaN); });
  caught("lse of an empty row", [&](const AttentionTensors& t) { outputs(t, 1).set(empty, 7); });
  caught("a weight where nothing is attended", [&](const AttentionTensors& t) { outputs(t, 2).set(empty * 17, 1e-5); });
  caught("a small bias everywhere", [&](const AttentionTensors& t) {
    const double step = GetParam() == DType::bf16 ? 0.01 : GetParam() == DType::f16 ? 2e-3 : 1e-5;
    for (std::size_t e = 0; e < outputs(t, 0).size(); ++e) {
      if (prepared.oracle.out.kind[e] == Expect::number) outputs(t, 0).set(e, outputs(t, 0).get(e) + step);
    }
  });
}

/// Field case 28 through the whole checker.
TEST_P(Checker, CatchesNaNInTheOracle) {
  const CaseResult result = run({}, [](PreparedCase& prepared) {
    for (std::size_t e = 0; e < prepared.oracle.out.kind.size(); ++e) {
      if (prepared.oracle.out.kind[e] == Expect::number) prepared.oracle.out.value[e] = kNaN;
    }
  });
  EXPECT_FALSE(result.passed());
  EXPECT_NE(result.problem.find("oracle has NaN"), std::string::npos) << result.problem;
}

TEST_P(Checker, CatchesOutputsThatNobodyWrote) {
  // A call into other memory leaves the checked outputs as they were filled.
  PreparedCase prepared(rich_case(GetParam()));
  const AttentionTensors elsewhere(rich_case(GetParam()));
  const CaseResult result =
      run_case(Device("reference"), prepared, "", {[&](AttentionArgs& a) { a.out = elsewhere.args().out; }, {}});
  EXPECT_FALSE(result.passed());
}

TEST_P(Checker, CatchesInputsThatChange) {
  const AttentionTensors tensors(rich_case(GetParam()));
  ASSERT_EQ(tensors.damage(kNaNFill), "");
  auto* q = const_cast<std::byte*>(static_cast<const std::byte*>(tensors.args().q.data));
  q[1] ^= std::byte{1};
  EXPECT_EQ(tensors.damage(kNaNFill), "q, an input, was changed");
}

TEST_P(Checker, CatchesGapsThatChange) {
  AttentionCase c = rich_case(GetParam());
  for (const Twist twist : {Twist::padded, Twist::strided, Twist::negative, Twist::unaligned}) {
    c.out.twist = twist;
    const AttentionTensors tensors(c);
    EXPECT_EQ(run_case(Device("reference"), PreparedCase(c)).problem, "");
    StridedTensor& out = *tensors.outputs()[0];
    if (twist == Twist::negative) continue;  // no gaps
    const std::size_t gap = twist == Twist::unaligned ? 0
                            : twist == Twist::strided ? size_of(c.dtype)
                                                      : 8 * size_of(c.dtype);
    out.buffer().data()[gap] = std::byte{0};
    EXPECT_EQ(tensors.damage(kNaNFill), "out was written outside its elements");
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Checker, testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16),
                         [](const auto& test) { return std::string(name(test.param)); });

#if !defined(__SANITIZE_ADDRESS__)
TEST(GuardedBuffer, NoticesAnOverrunOnEitherSide) {
  for (const std::ptrdiff_t at : {std::ptrdiff_t{-1}, std::ptrdiff_t{100}}) {
    GuardedBuffer buffer(100);
    ASSERT_TRUE(buffer.guards_intact());
    buffer.data()[at] = std::byte{1};
    EXPECT_FALSE(buffer.guards_intact());
  }
}
#endif

}  // namespace
}  // namespace sorot::support
