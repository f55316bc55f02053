#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/emulator/control.h"
#include "sorot/sorot.h"
#include "tests/support/attention_case.h"
#include "tests/support/attention_tensors.h"
#include "tests/support/device.h"
#include "tests/support/device_args.h"

/// Memory traffic of the attention kernels, exactly, without a GPU: a checked-in table of bytes, sectors and wavefronts
/// per case, kernel and instruction, and the size of launches. No number may rise without a reason in its row.
///
///   UPDATE_COUNTERS=1 REASON="why" build/tests/cuda/attention_counters_test     rewrites the table
namespace sorot::support {
namespace {

constexpr char kTable[] = SOROT_COUNTERS_TABLE;
constexpr char kHeader[] = "case,kernel,instruction,requests,bytes,transactions,ideal,reason";

struct CountedCase {
  const char* name;
  AttentionCase problem;
  const char* kernel = nullptr;  ///< null: the plan's choice
};

AttentionCase aligned(DType dtype, std::int64_t head_dim) {
  AttentionCase c;
  c.dtype = dtype;
  c.batch = 1;
  c.heads = 4;
  c.kv_heads = 2;
  c.queries = c.keys = 128;
  c.head_dim = c.value_dim = head_dim;
  c.lse = true;
  return c;
}

AttentionCase decoding(DType dtype, std::int64_t head_dim) {
  AttentionCase c = aligned(dtype, head_dim);
  c.heads = 8;
  c.kv_heads = 1;
  c.queries = 1;
  c.keys = 512;
  return c;
}

AttentionCase with_weights(AttentionCase c) {
  c.weights = c.dtype;
  return c;
}

/// On attention_simt, which the plan no longer takes for halves.
CountedCase on_simt(const char* name, const AttentionCase& c) { return {name, c, "attention_simt"}; }

/// On tensor cores: long enough for tiles in mid-stream.
std::vector<CountedCase> tensor_core_cases() {
  const auto sized = [](std::int64_t head_dim, std::int64_t queries, std::int64_t keys) {
    AttentionCase c = aligned(DType::bf16, head_dim);
    c.queries = queries;
    c.keys = keys;
    return c;
  };
  AttentionCase group = sized(128, 32, 256);  // 4 heads of a group, 32 queries each: one block
  group.heads = 8;
  return {
      {"sm80 d64", sized(64, 128, 256), "attention_sm80_plain"},
      {"sm80 d128", sized(128, 256, 256), "attention_sm80_plain"},
      {"sm80 d64 general", sized(64, 128, 256), "attention_sm80_general"},
      {"sm80 d128 general", sized(128, 256, 256), "attention_sm80_general"},
      {"sm80 d128 weights", with_weights(sized(128, 128, 256)), "attention_sm80_plain"},
      {"sm80 d128 group", group, "attention_sm80_plain"},
  };
}

/// Tensors whose rows are whole vectors: every access is as wide as it can be.
std::vector<CountedCase> aligned_cases() {
  return {
      {"f32 d64", aligned(DType::f32, 64)},
      {"f32 d128", aligned(DType::f32, 128)},
      on_simt("f16 d64", aligned(DType::f16, 64)),
      on_simt("bf16 d128", aligned(DType::bf16, 128)),
      {"f32 d64 weights", with_weights(aligned(DType::f32, 64))},
      on_simt("bf16 d128 weights", with_weights(aligned(DType::bf16, 128))),
      {"f32 d64 decoding", decoding(DType::f32, 64)},
      {"bf16 d128 decoding", decoding(DType::bf16, 128)},
      {"f16 d64 decoding", decoding(DType::f16, 64)},
  };
}

std::vector<CountedCase> other_cases() {
  AttentionCase causal = aligned(DType::bf16, 128);
  causal.causal = true;
  AttentionCase windowed = causal;
  windowed.window.left = 31;
  AttentionCase wide = aligned(DType::f16, 256);
  AttentionCase odd = aligned(DType::f32, 80);
  odd.value_dim = 72;
  AttentionCase masked = aligned(DType::f16, 64);
  masked.mask.present = true;
  masked.bias.present = true;
  AttentionCase unaligned = aligned(DType::f16, 64);
  unaligned.k.twist = unaligned.v.twist = Twist::unaligned;
  return {on_simt("bf16 d128 causal", causal),
          on_simt("bf16 d128 causal window 31", windowed),
          on_simt("f16 d256", wide),
          {"f32 d80 dv72", odd},
          on_simt("f16 d64 mask and bias", masked),
          {"f16 d64 unaligned k v", unaligned},
          {"sm80 d128 causal", causal, "attention_sm80_plain"},
          {"sm80 d64 mask and bias", masked, "attention_sm80_general"}};
}

/// Sums over the lines of a kernel.
using Counts = std::map<std::tuple<std::string, std::string, std::string>, emulator::AccessCount>;

class AttentionCounters : public testing::Test {
 protected:
  AttentionCounters() {
    emulator::Settings settings;
    settings.count = true;
    emulator::apply(settings);
  }
  ~AttentionCounters() override { emulator::apply({}); }

  /// Runs a problem once; `look` sees the args on the device afterwards.
  template <class Look>
  AttentionPlan run(const AttentionCase& c, Look look, const char* kernel = nullptr) {
    const AttentionTensors tensors(c);
    const DeviceArgs args(device_, tensors.args());
    AttentionPlan plan;
    Status status = attention_plan(device_.context(), args.args(), plan, {kernel});
    EXPECT_TRUE(status.ok()) << status.message();
    const DeviceMemory workspace(device_, plan.workspace_bytes);
    emulator::clear_counts();
    status = attention(device_.context(), plan, args.args(), workspace.workspace());
    EXPECT_TRUE(status.ok()) << status.message();
    look(args.args());
    return plan;
  }

  void count(const CountedCase& c, Counts& counts) {
    emulator::clear_launches();
    run(
        c.problem, [](const AttentionArgs&) {}, c.kernel);
    for (const emulator::LaunchRecord& launch : emulator::launches()) {  // "launch": blocks, shared bytes of a block
      emulator::AccessCount& block = counts[{c.name, launch.kernel, "launch"}];
      block.requests = launch.grid[0];
      block.bytes = launch.shared_bytes;
    }
    for (const emulator::AccessCount& line : emulator::counts()) {
      emulator::AccessCount& sum = counts[{c.name, line.kernel, line.instruction}];
      sum.requests += line.requests;
      sum.bytes += line.bytes;
      sum.transactions += line.transactions;
      sum.ideal_transactions += line.ideal_transactions;
    }
  }

  /// Every access of a case is as wide as it could be; gives back which instructions there are.
  std::set<std::string> expect_no_waste(const CountedCase& c) {
    Counts counts;
    count(c, counts);
    std::set<std::string> instructions;
    for (const auto& [key, sum] : counts) {
      const auto& [name, kernel, instruction] = key;
      instructions.insert(instruction);
      EXPECT_EQ(sum.transactions, sum.ideal_transactions) << name << ", " << kernel << ", " << instruction;
    }
    return instructions;
  }

  Device device_{"cuda"};
};

struct Row {
  emulator::AccessCount count;
  std::string reason;
};

std::map<std::tuple<std::string, std::string, std::string>, Row> read_table() {
  std::map<std::tuple<std::string, std::string, std::string>, Row> rows;
  std::ifstream file(kTable);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream text(line);
    std::string field[8];
    for (std::string& one : field) std::getline(text, one, ',');
    Row row;
    row.count.requests = std::stoull(field[3]);
    row.count.bytes = std::stoull(field[4]);
    row.count.transactions = std::stoull(field[5]);
    row.count.ideal_transactions = std::stoull(field[6]);
    row.reason = field[7];
    rows[{field[0], field[1], field[2]}] = row;
  }
  return rows;
}

bool rises(const emulator::AccessCount& from, const emulator::AccessCount& to) {
  return to.requests > from.requests || to.bytes > from.bytes || to.transactions > from.transactions;
}
bool differs(const emulator::AccessCount& a, const emulator::AccessCount& b) { return rises(a, b) || rises(b, a); }

/// The new table; a number that rises, or is new in a case that was there, takes the reason.
void write_table(const Counts& counts, const char* reason) {
  const auto before = read_table();
  std::ostringstream text;
  text << kHeader << "\n";
  for (const auto& [key, count] : counts) {
    const auto& [name, kernel, instruction] = key;
    const auto known = before.find(key);
    std::string why = known == before.end() ? "" : known->second.reason;
    if (known != before.end() && rises(known->second.count, count)) {
      ASSERT_NE(reason, nullptr) << name << ", " << kernel << ", " << instruction << " rises: give a REASON";
      why = reason;
    }
    text << name << "," << kernel << "," << instruction << "," << count.requests << "," << count.bytes << ","
         << count.transactions << "," << count.ideal_transactions << "," << why << "\n";
  }
  std::ofstream(kTable) << text.str();
}

TEST_F(AttentionCounters, AreThoseOfTheTable) {
  Counts counts;
  for (const CountedCase& c : aligned_cases()) count(c, counts);
  for (const CountedCase& c : tensor_core_cases()) count(c, counts);
  for (const CountedCase& c : other_cases()) count(c, counts);
  if (std::getenv("UPDATE_COUNTERS") != nullptr) {
    write_table(counts, std::getenv("REASON"));
    return;
  }
  auto table = read_table();
  for (const auto& [key, count] : counts) {
    const auto& [name, kernel, instruction] = key;
    const std::string what = name + ", " + kernel + ", " + instruction;
    const auto known = table.find(key);
    if (known == table.end()) {
      ADD_FAILURE() << what << " is not in the table";
      continue;
    }
    EXPECT_FALSE(differs(count, known->second.count))
        << what << ": requests " << known->second.count.requests << " -> " << count.requests << ", bytes "
        << known->second.count.bytes << " -> " << count.bytes << ", transactions " << known->second.count.transactions
        << " -> " << count.transactions;
    table.erase(known);
  }
  for (const auto& [key, row] : table) ADD_FAILURE() << std::get<0>(key) << " of the table was not measured";
}

TEST_F(AttentionCounters, AlignedTensorsWasteNothing) {
  for (const CountedCase& c : aligned_cases()) {
    const std::set<std::string> instructions = expect_no_waste(c);
    EXPECT_EQ(instructions,
              (std::set<std::string>{"launch", "load_global", "load_shared", "store_global", "store_shared"}));
  }
}

/// Neither do they on tensor cores, where ldmatrix and the landing of copies are accesses to shared memory, too.
TEST_F(AttentionCounters, AlignedTensorsWasteNothingOnTensorCores) {
  for (const CountedCase& c : tensor_core_cases()) {
    const std::set<std::string> instructions = expect_no_waste(c);
    for (const char* one : {"cp_async", "cp_async shared", "ldmatrix_x4", "ldmatrix_x4_trans", "mma_m16n8k16"}) {
      EXPECT_TRUE(instructions.contains(one)) << c.name << ": " << one;
    }
  }
}

/// The emulator's own cost, a promise to those who run its tests: it depends on nothing but the kernel.
TEST_F(AttentionCounters, SwitchesOfAWholeProblem) {
  emulator::apply({});
  AttentionCase c = aligned(DType::bf16, 64);
  c.heads = c.kv_heads = 2;
  c.queries = c.keys = 512;
  run(
      c, [](const AttentionArgs&) {}, "attention_sm80_plain");
  EXPECT_LE(emulator::switches(), 1'800'000U);
}

/// Causal rows read what they may attend, to whole tiles: (1 + 1 / row blocks) times half of all.
TEST_F(AttentionCounters, CausalReadsHalf) {
  AttentionCase c = aligned(DType::bf16, 64);
  c.heads = c.kv_heads = 1;
  c.queries = c.keys = 512;
  c.causal = true;
  const auto all = static_cast<double>(4 * c.keys * c.head_dim) * 2;  // by 4 row blocks
  double read = 0;
  run(
      c,
      [&](const AttentionArgs& args) {
        for (const std::uint32_t times :
             emulator::reads_of(args.k.data, static_cast<std::size_t>(c.keys * c.head_dim) * 2)) {
          read += times;
        }
      },
      "attention_sm80_plain");
  EXPECT_LE(read, (1 + 1.0 / 4) * all / 2);
  EXPECT_GE(read, all / 2);
}

/// K and V are read once by every block of rows, whether all heads of a group fit into one block or not.
TEST_F(AttentionCounters, EveryKeyAndValueIsReadOnceABlock) {
  std::vector<CountedCase> cases = aligned_cases();
  for (CountedCase& c : tensor_core_cases()) cases.push_back(c);
  for (CountedCase& c : other_cases()) {
    if (!c.problem.causal) cases.push_back(c);
  }
  for (const CountedCase& c : cases) {
    if (c.problem.weights != DType::none) continue;  // the second pass reads K again
    SCOPED_TRACE(c.name);
    std::vector<std::uint32_t> reads[2];
    const AttentionPlan plan = run(
        c.problem,
        [&](const AttentionArgs& args) {
          const std::size_t k_elements =
              static_cast<std::size_t>(c.problem.kv_heads * c.problem.keys * c.problem.head_dim);
          const std::size_t v_elements =
              static_cast<std::size_t>(c.problem.kv_heads * c.problem.keys * c.problem.value_dim);
          reads[0] = emulator::reads_of(args.k.data, k_elements * size_of(c.problem.dtype));
          reads[1] = emulator::reads_of(args.v.data, v_elements * size_of(c.problem.dtype));
        },
        c.kernel);
    // Rows of all heads of a group are packed, but by attention_sm80 only if a head is shorter than a block.
    const bool packed = std::string(plan.kernel) == "attention_simt" || c.problem.queries < plan.tile_queries;
    const std::int64_t group = c.problem.heads / c.problem.kv_heads;
    const auto blocks_of = [&](std::int64_t rows) { return (rows + plan.tile_queries - 1) / plan.tile_queries; };
    const auto blocks = static_cast<std::uint32_t>(packed ? blocks_of(group * c.problem.queries)
                                                          : group * blocks_of(c.problem.queries));
    for (const std::vector<std::uint32_t>& bytes : reads) {
      EXPECT_EQ(*std::min_element(bytes.begin(), bytes.end()), blocks);
      EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), blocks);
    }
  }
}

/// Tiles in which nothing can be attended are not loaded.
TEST_F(AttentionCounters, TilesThatNobodyAttendsAreNotRead) {
  AttentionCase c = aligned(DType::f32, 64);
  c.heads = c.kv_heads = 1;
  c.queries = 64;
  c.keys = 512;
  const auto rows_read = [&](const AttentionCase& problem) {
    std::set<std::int64_t> rows;
    run(problem, [&](const AttentionArgs& args) {
      for (const ConstTensorView& view : {args.k, args.v}) {
        const std::vector<std::uint32_t> bytes = emulator::reads_of(view.data, static_cast<std::size_t>(c.keys) * 256);
        for (std::size_t b = 0; b < bytes.size(); ++b) {
          if (bytes[b] > 0) rows.insert(static_cast<std::int64_t>(b / 256));
        }
      }
    });
    return rows;
  };
  EXPECT_EQ(rows_read(c).size(), 512U);

  AttentionCase causal = c;
  causal.causal = true;
  EXPECT_EQ(*rows_read(causal).rbegin(), 63);
  AttentionCase shorter = c;
  shorter.kv_lengths.values = {100};
  EXPECT_EQ(*rows_read(shorter).rbegin(), 99);
  AttentionCase windowed = c;
  windowed.align = Align::offsets;
  windowed.offsets.values = {300};
  windowed.window = {20, 10};
  EXPECT_EQ(*rows_read(windowed).begin(), 280);
  EXPECT_EQ(*rows_read(windowed).rbegin(), 373);
  AttentionCase masked = c;
  masked.mask.present = true;
  masked.mask.density = 0;
  EXPECT_TRUE(rows_read(masked).empty());
}

}  // namespace
}  // namespace sorot::support
