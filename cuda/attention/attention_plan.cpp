#include "cuda/attention/attention_plan.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

namespace sorot::inline v0::cuda {

constinit const KernelInfo kAttentionKernelInfos[kAttentionKernels] = {
    {"attention", kAttentionSimt, "f32 64x64 d64"},
    {"attention", kAttentionSimt, "f32 8x64 d64"},
    {"attention", kAttentionSimt, "f32 64x32 d128"},
    {"attention", kAttentionSimt, "f32 8x64 d128"},
    {"attention", kAttentionSimt, "f32 32x16 d256"},
    {"attention", kAttentionSimt, "f32 8x32 d256"},
    {"attention", kAttentionSimt, "f16 64x64 d64"},
    {"attention", kAttentionSimt, "f16 8x64 d64"},
    {"attention", kAttentionSimt, "f16 64x32 d128"},
    {"attention", kAttentionSimt, "f16 8x64 d128"},
    {"attention", kAttentionSimt, "f16 32x16 d256"},
    {"attention", kAttentionSimt, "f16 8x32 d256"},
    {"attention", kAttentionSimt, "bf16 64x64 d64"},
    {"attention", kAttentionSimt, "bf16 8x64 d64"},
    {"attention", kAttentionSimt, "bf16 64x32 d128"},
    {"attention", kAttentionSimt, "bf16 8x64 d128"},
    {"attention", kAttentionSimt, "bf16 32x16 d256"},
    {"attention", kAttentionSimt, "bf16 8x32 d256"},
    {"attention", kAttentionSm80Plain, "f16 128x64 d32"},
    {"attention", kAttentionSm80Plain, "f16 128x64 d64"},
    {"attention", kAttentionSm80Plain, "f16 128x64 d96"},
    {"attention", kAttentionSm80Plain, "f16 128x64 d128"},
    {"attention", kAttentionSm80Plain, "f16 128x64 d192 dv128"},
    {"attention", kAttentionSm80Plain, "f16 128x64 d192"},
    {"attention", kAttentionSm80Plain, "f16 128x64 d256"},
    {"attention", kAttentionSm80Plain, "f16 64x64 d64"},
    {"attention", kAttentionSm80Plain, "f16 64x64 d128"},
    {"attention", kAttentionSm80Plain, "f16 64x64 d256"},
    {"attention", kAttentionSm80General, "f16 128x64 d64"},
    {"attention", kAttentionSm80General, "f16 128x64 d96"},
    {"attention", kAttentionSm80General, "f16 128x64 d128"},
    {"attention", kAttentionSm80General, "f16 128x64 d192"},
    {"attention", kAttentionSm80General, "f16 128x64 d256"},
    {"attention", kAttentionSm80General, "f16 64x64 d256"},
    {"attention", kAttentionSm80Plain, "bf16 128x64 d32"},
    {"attention", kAttentionSm80Plain, "bf16 128x64 d64"},
    {"attention", kAttentionSm80Plain, "bf16 128x64 d96"},
    {"attention", kAttentionSm80Plain, "bf16 128x64 d128"},
    {"attention", kAttentionSm80Plain, "bf16 128x64 d192 dv128"},
    {"attention", kAttentionSm80Plain, "bf16 128x64 d192"},
    {"attention", kAttentionSm80Plain, "bf16 128x64 d256"},
    {"attention", kAttentionSm80Plain, "bf16 64x64 d64"},
    {"attention", kAttentionSm80Plain, "bf16 64x64 d128"},
    {"attention", kAttentionSm80Plain, "bf16 64x64 d256"},
    {"attention", kAttentionSm80General, "bf16 128x64 d64"},
    {"attention", kAttentionSm80General, "bf16 128x64 d96"},
    {"attention", kAttentionSm80General, "bf16 128x64 d128"},
    {"attention", kAttentionSm80General, "bf16 128x64 d192"},
    {"attention", kAttentionSm80General, "bf16 128x64 d256"},
    {"attention", kAttentionSm80General, "bf16 64x64 d256"},
};

namespace {

using core::AttentionProblem;
using core::CudaDevice;

constexpr std::int64_t kMostBlocks = 0x7FFF'FFFF;  // of a one-dimensional grid
constexpr std::int64_t kMostHeadDim = 256;
constexpr int kMostSplits = 64;
constexpr std::int64_t kTilesPerSplit = 2;           // with fewer, reading Q and merging cost more than is won
constexpr std::int32_t kReservedSharedBytes = 1024;  // what CUDA keeps of every resident block
constexpr std::int32_t kRegistersFor = 2;            // blocks of 128 threads with up to 255 registers on an SM

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

Status unsupported(const char* format, long long value) {
  char message[200];
  std::snprintf(message, sizeof message, format, value);
  return {StatusCode::kUnsupported, message};
}

/// Position of a dtype in kAttentionKernelInfos, times 6; -1 for a type without a kernel.
int first_variant(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0;
    case DType::f16: return 6;
    case DType::bf16: return 12;
    default: return -1;
  }
}

/// Rows of `view` begin at multiples of `bytes`: data and every stride but the last, where it is used.
bool rows_aligned(const ConstTensorView& view, std::uint64_t bytes) {
  const std::uint64_t element = size_of(view.dtype);
  if (core::address_of(view.data) % bytes != 0) return false;
  for (int d = 0; d < 3; ++d) {
    if (view.shape[d] > 1 && static_cast<std::uint64_t>(view.strides[d]) * element % bytes != 0) return false;
  }
  return view.strides[3] == 1 || view.shape[3] == 1;
}

bool is_unit(std::int64_t stride) { return stride == 1 || stride == -1; }

tile::LoadPath load_path(const ConstTensorView& view) {
  const auto vector = static_cast<std::int64_t>(16 / size_of(view.dtype));
  if (view.shape[3] % vector == 0 && rows_aligned(view, 16)) return tile::LoadPath::vectors;
  return is_unit(view.strides[2]) && !is_unit(view.strides[3]) ? tile::LoadPath::along_rows
                                                               : tile::LoadPath::along_columns;
}

/// Blocks that the device runs at a time.
std::int64_t resident_blocks(const SimtTile& tile, const CudaDevice& device) {
  const auto shared = static_cast<std::int32_t>(simt_shared_bytes(tile)) + kReservedSharedBytes;
  const std::int32_t by_shared = device.shared_bytes_per_multiprocessor / shared;
  const std::int32_t by_threads = device.threads_per_multiprocessor / kSimtThreads;
  return std::int64_t{device.multiprocessors} * std::max(1, std::min({by_shared, by_threads, kRegistersFor}));
}

/// Keys that a row block visits at most, as far as the window tells.
std::int64_t visited_keys(const AttentionProblem& p, const SimtTile& tile) {
  if (p.window_left < 0 || p.window_right < 0) return p.keys;
  return std::min(p.keys, p.window_left + p.window_right + std::min<std::int64_t>(tile.queries, p.queries));
}

/// Enough splits for one full wave, but none of less than two tiles. One when the rows alone fill half of the device:
/// then a second wave would cost what the splits win.
std::int32_t choose_splits(const AttentionProblem& p, const SimtTile& tile, std::int64_t blocks,
                           const CudaDevice& device) {
  const std::int64_t room = resident_blocks(tile, device);
  if (blocks == 0 || blocks * 2 > room) return 1;
  const std::int64_t useful = divide_up(visited_keys(p, tile), tile.keys) / kTilesPerSplit;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(room / blocks, 1, std::clamp<std::int64_t>(useful, 1, kMostSplits)));
}

void place_in_workspace(const AttentionProblem& p, AttentionSimtPlan& plan) {
  constexpr std::size_t kAlignment = 256;
  const auto rows = static_cast<std::size_t>(p.batch * p.kv_heads * plan.rows);
  const auto take = [&](std::size_t floats) {
    const std::size_t at = plan.workspace_bytes;
    plan.workspace_bytes += (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  };
  plan.partial_pitch = static_cast<std::int32_t>(divide_up(p.value_dim, 4) * 4);
  if (plan.splits > 1) {
    const std::size_t parts = rows * static_cast<std::size_t>(plan.splits);
    plan.partial_out_at = take(parts * static_cast<std::size_t>(plan.partial_pitch));
    plan.partial_sums_at = take(parts * 2);
  }
  if (wants_weights(p)) plan.row_sums_at = take(rows * 2);
}

}  // namespace

Status plan_attention_simt(const AttentionProblem& p, const CudaDevice& device, AttentionSimtPlan& plan) noexcept {
  AttentionSimtPlan made;
  const int first = first_variant(p.q.dtype);
  if (first < 0) {
    char message[96];
    std::snprintf(message, sizeof message, "attention_simt computes f32, f16 and bf16, not %s", name(p.q.dtype));
    return {StatusCode::kUnsupported, message};
  }
  if (p.head_dim > kMostHeadDim) return unsupported("attention_simt serves D up to 256, not %lld", p.head_dim);
  if (p.value_dim > kMostHeadDim) return unsupported("attention_simt serves Dv up to 256, not %lld", p.value_dim);

  const std::int64_t wider = std::max(p.head_dim, p.value_dim);
  const int head_dim = wider <= 64 ? 64 : wider <= 128 ? 128 : 256;
  made.rows = p.group * p.queries;
  const bool few_rows = made.rows <= kSimtFewRows;
  made.tile = simt_tile(head_dim, few_rows);
  made.variant = kAttentionKernelInfos[first +
                                       (head_dim == 64    ? 0
                                        : head_dim == 128 ? 2
                                                          : 4) +
                                       (few_rows ? 1 : 0)]
                     .variant;
  if (simt_shared_bytes(made.tile) > static_cast<std::size_t>(device.shared_bytes_per_block)) {
    return unsupported("attention_simt needs 58 KB of shared memory a block, this device has %lld bytes",
                       device.shared_bytes_per_block);
  }

  made.row_blocks = divide_up(made.rows, made.tile.queries);
  const std::int64_t row_blocks = p.batch * p.kv_heads * made.row_blocks;
  made.splits = choose_splits(p, made.tile, row_blocks, device);
  made.blocks = row_blocks * made.splits;
  if (made.blocks > kMostBlocks) {
    return unsupported("attention_simt launches at most 2147483647 blocks, and this takes %lld", made.blocks);
  }
  if (wants_weights(p)) {
    made.weights_tile = simt_tile(head_dim, false);
    made.weights_row_blocks = divide_up(made.rows, made.weights_tile.queries);
    made.weights_key_tiles = divide_up(p.keys, made.weights_tile.keys);
    made.weights_blocks = p.batch * p.kv_heads * made.weights_row_blocks * made.weights_key_tiles;
    if (made.weights_blocks > kMostBlocks) {
      return unsupported("attention_simt_weights launches at most 2147483647 blocks, and this takes %lld",
                         made.weights_blocks);
    }
  }

  made.q_path = load_path(p.q);
  made.k_path = load_path(p.k);
  made.v_path = load_path(p.v);
  made.out_vectors = rows_aligned(p.out, 4 * size_of(p.out.dtype)) && p.out.strides[3] == 1;
  made.weight_pairs =
      wants_weights(p) && size_of(p.weights.dtype) == 2 && p.weights.strides[3] == 1 && rows_aligned(p.weights, 4);
  place_in_workspace(p, made);
  plan = made;
  return {};
}

// ---- attention_sm80

namespace {

constexpr std::int64_t kMostKeys = 0x7FFF'FFFF - kSm80Keys;  // of 32-bit numbers
constexpr std::int32_t kOldestWithTensorCores = 80;
constexpr std::int64_t kTensorCoreAdvantage = 16;  // of f16 products on them over f32 ones beside them, sm_80 and sm_90

bool is_moderate(double factor) { return factor >= 0x1p-100 && factor <= 0x1p100; }

/// What the plain kernel lacks, null if nothing.
const char* beyond_plain(const AttentionProblem& p) {
  if (p.mask.dtype != DType::none) return "a mask";
  if (p.bias.dtype != DType::none) return "a bias";
  if (p.alibi_slopes.dtype != DType::none) return "ALiBi slopes";
  if (p.sinks.dtype != DType::none) return "sinks";
  if (p.softcap != 0) return "a softcap";
  if (!is_moderate(p.scale)) return "a scale outside 2^-100..2^100";
  return nullptr;
}

/// What either kernel lacks, null if nothing.
const char* beyond_sm80(const AttentionProblem& p) {
  if (p.q.dtype != DType::f16 && p.q.dtype != DType::bf16) return "tensors other than f16 and bf16";
  if (p.head_dim > kMostHeadDim || p.value_dim > kMostHeadDim) return "D or Dv beyond 256";
  if (p.head_dim % 8 != 0 || p.value_dim % 8 != 0) return "D or Dv that is no multiple of 8";
  if (p.keys == 0) return "Skv = 0";
  if (p.keys > kMostKeys || p.queries > kMostKeys) return "more than 2147483583 queries or keys";
  for (const ConstTensorView& view : {p.q, p.k, p.v, ConstTensorView(p.out)}) {
    if (!rows_aligned(view, 16) || view.strides[3] != 1) return "rows of q, k, v or out that are not 16-byte vectors";
  }
  if (p.softcap != 0 && !is_moderate(p.softcap)) return "a softcap outside 2^-100..2^100";
  return nullptr;
}

/// Heads shorter than a block share blocks.
Sm80Rows block_rows(const AttentionProblem& p, const Sm80Tile& tile) {
  Sm80Rows rows;
  rows.packed = p.queries < tile.queries;
  rows.row_blocks = divide_up(rows.packed ? p.group * p.queries : p.queries, tile.queries);
  rows.heads = p.batch * (rows.packed ? p.kv_heads : p.heads);
  return rows;
}

bool has_tile(int tile, bool general) {
  if (!general) return true;
  return std::find(std::begin(kSm80GeneralTiles), std::end(kSm80GeneralTiles), tile) != std::end(kSm80GeneralTiles);
}

/// The smallest tile that D and Dv fit in and that fits in the device; of two, the one with less waste of rows. -1:
/// none.
int choose_tile(const AttentionProblem& p, const CudaDevice& device, bool general) {
  const bool few_rows = p.group * p.queries <= 64;
  int best = -1;
  const auto cost = [&](int n) {
    const Sm80Tile& tile = kSm80Tiles[n];
    return (tile.head_dim + tile.value_dim) * 2 + ((tile.queries == 64) == few_rows ? 0 : 1);
  };
  for (int n = 0; n < kSm80TileCount; ++n) {
    const Sm80Tile& tile = kSm80Tiles[n];
    const bool fits = has_tile(n, general) && tile.head_dim >= p.head_dim && tile.value_dim >= p.value_dim &&
                      sm80_shared_bytes(tile, general) <= static_cast<std::size_t>(device.shared_bytes_per_block);
    if (fits && (best < 0 || cost(n) < cost(best))) best = n;
  }
  return best;
}

const char* variant_of(DType dtype, int tile, bool general) {
  int index = kAttentionSimtKernels + (dtype == DType::bf16 ? kSm80TileCount + kSm80GeneralTileCount : 0) + tile;
  if (general) {
    const auto* at = std::find(std::begin(kSm80GeneralTiles), std::end(kSm80GeneralTiles), tile);
    index += kSm80TileCount - tile + static_cast<int>(at - std::begin(kSm80GeneralTiles));
  }
  return kAttentionKernelInfos[index].variant;
}

}  // namespace

Status plan_attention_sm80(const AttentionProblem& p, const CudaDevice& device, bool general,
                           AttentionSm80Plan& plan) noexcept {
  const char* kernel = general ? kAttentionSm80General : kAttentionSm80Plain;
  char message[200];
  if (device.compute_capability < kOldestWithTensorCores) {
    std::snprintf(message, sizeof message, "%s needs compute capability 8.0, this device has %d.%d", kernel,
                  device.compute_capability / 10, device.compute_capability % 10);
    return {StatusCode::kUnsupported, message};
  }
  const char* lacks = beyond_sm80(p);
  if (lacks == nullptr && !general) lacks = beyond_plain(p);
  if (lacks != nullptr) {
    std::snprintf(message, sizeof message, "%s does not serve %s", kernel, lacks);
    return {StatusCode::kUnsupported, message};
  }

  AttentionSm80Plan made;
  made.general = general;
  made.tile = choose_tile(p, device, general);
  if (made.tile < 0)
    return unsupported("attention_sm80 has no tile for %lld bytes of shared memory a block",
                       device.shared_bytes_per_block);
  made.variant = variant_of(p.q.dtype, made.tile, general);
  made.rows = block_rows(p, kSm80Tiles[made.tile]);
  made.blocks = made.rows.row_blocks * made.rows.heads;
  made.long_first = p.window_right >= 0 && made.rows.row_blocks > 1;
  if (wants_weights(p)) {
    made.weights_tile = p.head_dim <= 64 ? 0 : p.head_dim <= 128 ? 1 : 2;
    made.weights_rows = block_rows(p, kSm80WeightsTiles[made.weights_tile]);
    made.weights_key_tiles = divide_up(p.keys, kSm80Keys);
    made.weights_blocks = made.weights_rows.row_blocks * made.weights_rows.heads * made.weights_key_tiles;
    made.weights_vectors = rows_aligned(p.weights, 16) && p.weights.strides[3] == 1;
    made.workspace_bytes = static_cast<std::size_t>(p.batch * p.heads * p.queries) * sizeof(machine::Float4);
    made.workspace_bytes = (made.workspace_bytes + 255) / 256 * 256;
  }
  const std::int64_t most = std::max(made.blocks, made.weights_blocks);
  if (most > kMostBlocks) {
    return unsupported("attention_sm80 launches at most 2147483647 blocks, and this takes %lld", most);
  }
  made.bias_vectors = p.bias.dtype != DType::none && rows_aligned(p.bias, 16) && p.bias.strides[3] == 1;
  made.mask_vectors = p.mask.dtype != DType::none && rows_aligned(p.mask, 16) && p.mask.strides[3] == 1;
  plan = made;
  return {};
}

const char* choose_attention_kernel(const AttentionProblem& p, const CudaDevice& device, char* reason,
                                    std::size_t bytes) noexcept {
  AttentionSm80Plan plan;
  const bool general = beyond_plain(p) != nullptr;
  const Status status = plan_attention_sm80(p, device, general, plan);
  if (!status.ok()) {
    std::snprintf(reason, bytes, "no tensor cores: %s", status.message());
    return kAttentionSimt;
  }
  AttentionSimtPlan simt;
  if (plan_attention_simt(p, device, simt).ok()) {
    if (simt.tile.few_rows) {
      std::snprintf(reason, bytes, "no tensor cores: %lld rows a kv head, reading K and V is what takes time",
                    static_cast<long long>(simt.rows));
      return kAttentionSimt;
    }
    if (simt.splits >= kTensorCoreAdvantage) {
      std::snprintf(reason, bytes,
                    "no tensor cores: they would keep %lld of %d multiprocessors busy, %d splits do more",
                    static_cast<long long>(plan.blocks), device.multiprocessors, simt.splits);
      return kAttentionSimt;
    }
  }
  if (general) {
    std::snprintf(reason, bytes, "tensor cores; the plain kernel does not serve %s", beyond_plain(p));
    return kAttentionSm80General;
  }
  std::snprintf(reason, bytes, "tensor cores; positions and scale only");
  return kAttentionSm80Plain;
}

}  // namespace sorot::inline v0::cuda
