#include "tests/machine/isa_sm80_kernels.h"

#include "cuda/machine/isa.cuh"

namespace sorot::machine {
namespace {

struct Storage {
  Word4 rows[2][kWarpSize];
};

__device__ __forceinline__ void store_all(const Sm80Params& p, unsigned thread, const std::uint32_t (&r)[4]) {
  const auto* first = p.out + thread * kSm80Outputs;
  store_global(reinterpret_cast<Word4*>(const_cast<std::uint32_t*>(first)), Word4{r[0], r[1], r[2], r[3]});
}

__device__ __forceinline__ void store_all(const Sm80Params& p, unsigned thread, const Word4& w) {
  const std::uint32_t r[4] = {w.x, w.y, w.z, w.w};
  store_all(p, thread, r);
}

template <class T>
__device__ __forceinline__ void multiply(const Sm80Params& p, unsigned thread) {
  const auto in = [&](unsigned word) { return load_global(p.in + thread * kSm80Inputs + word); };
  const std::uint32_t a[4] = {in(0), in(1), in(2), in(3)};
  float d[4];
  for (unsigned i = 0; i < 4; ++i) d[i] = bits_as<float>(in(6 + i));
  mma_m16n8k16<T>(d, a, in(4), in(5));
  std::uint32_t words[4];
  for (unsigned i = 0; i < 4; ++i) words[i] = bits_as<std::uint32_t>(d[i]);
  store_all(p, thread, words);
}

template <Sm80Probe kProbe>
__global__ void __launch_bounds__(kWarpSize) sm80_probe_kernel(const __grid_constant__ Sm80Params p) {
  Storage& s = shared<Storage>();
  const unsigned lane = thread_index().x;
  const unsigned thread = block_index().x * kWarpSize + lane;
  const std::uint32_t* in = p.in + thread * kSm80Inputs;
  // Rows lie in shared memory in an order of their own.
  const auto slot = [](unsigned of) { return (of * 11 + 5) % kWarpSize; };
  Word4* row = &s.rows[0][slot(lane)];
  const Word4* other = &s.rows[0][slot(lane ^ 7)];
  if constexpr (kProbe == Sm80Probe::ldmatrix_x4 || kProbe == Sm80Probe::ldmatrix_x4_trans) {
    store_shared(row, load_global(reinterpret_cast<const Word4*>(in)));
    sync_block();
    std::uint32_t r[4];
    if constexpr (kProbe == Sm80Probe::ldmatrix_x4) ldmatrix_x4(shared_address(row), r);
    if constexpr (kProbe == Sm80Probe::ldmatrix_x4_trans) ldmatrix_x4_trans(shared_address(row), r);
    store_all(p, thread, r);
  } else if constexpr (kProbe == Sm80Probe::mma_f16) {
    multiply<float16>(p, thread);
  } else if constexpr (kProbe == Sm80Probe::mma_bf16) {
    multiply<bfloat16>(p, thread);
  } else if constexpr (kProbe == Sm80Probe::cp_async) {
    cp_async(shared_address(row), in);
    cp_async_commit();
    cp_async_wait<0>();
    sync_block();
    store_all(p, thread, load_shared(other));
  } else if constexpr (kProbe == Sm80Probe::cp_async_or_zero) {
    cp_async_or_zero(shared_address(row), in, load_global(in + 4) % 2 != 0);
    cp_async_commit();
    cp_async_wait<0>();
    sync_block();
    store_all(p, thread, load_shared(other));
  } else {
    cp_async(shared_address(row), in);
    cp_async_commit();
    cp_async(shared_address(&s.rows[1][lane]), in + 4);
    cp_async_commit();
    cp_async_wait<1>();
    const Word4 first = load_shared(row);
    cp_async_wait<0>();
    const Word4 second = load_shared(&s.rows[1][lane]);
    store_all(p, thread, Word4{first.x + second.x, first.y + second.y, first.z + second.z, first.w + second.w});
  }
}

template <Sm80Probe kProbe>
Status launch_one(unsigned blocks, const Sm80Params& params, Stream stream) {
  return launch({"sm80_probe_kernel", {blocks}, {kWarpSize}, sizeof(Storage), stream}, sm80_probe_kernel<kProbe>,
                params);
}

}  // namespace

Status launch_sm80_probe(Sm80Probe probe, unsigned blocks, const Sm80Params& params, Stream stream) {
  switch (probe) {
    case Sm80Probe::ldmatrix_x4: return launch_one<Sm80Probe::ldmatrix_x4>(blocks, params, stream);
    case Sm80Probe::ldmatrix_x4_trans: return launch_one<Sm80Probe::ldmatrix_x4_trans>(blocks, params, stream);
    case Sm80Probe::mma_f16: return launch_one<Sm80Probe::mma_f16>(blocks, params, stream);
    case Sm80Probe::mma_bf16: return launch_one<Sm80Probe::mma_bf16>(blocks, params, stream);
    case Sm80Probe::cp_async: return launch_one<Sm80Probe::cp_async>(blocks, params, stream);
    case Sm80Probe::cp_async_or_zero: return launch_one<Sm80Probe::cp_async_or_zero>(blocks, params, stream);
    case Sm80Probe::cp_async_groups: return launch_one<Sm80Probe::cp_async_groups>(blocks, params, stream);
  }
  return {StatusCode::kInternal, "there is no such probe"};
}

}  // namespace sorot::machine
