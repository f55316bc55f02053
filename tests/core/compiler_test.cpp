#include <gtest/gtest.h>

/// What the arithmetic relies on and a compiler has got wrong: g++ 12 at -O2 keeps x where (double)(float)x stands twice
/// side by side, unless its SLP vectoriser is off.
namespace {

struct Pair {
  double a, b;
};

[[gnu::noinline]] void round_both(Pair& pair, double a, double b) {
  pair.a = static_cast<double>(static_cast<float>(a));
  pair.b = static_cast<double>(static_cast<float>(b));
}

TEST(Compiler, KeepsTheRoundingOfNeighbouringConversions) {
  Pair pair{};
  round_both(pair, 0.1, 0.3);
  EXPECT_NE(pair.a, 0.1);
  EXPECT_NE(pair.b, 0.3);
  EXPECT_EQ(pair.a, 0x1.99999ap-4);
  EXPECT_EQ(pair.b, 0x1.333334p-2);
}

}  // namespace
