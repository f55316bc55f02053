#!/usr/bin/env bash
# Sets up, builds everything and runs all tests, kernels on the emulator; compiles the kernels for GPUs too, and tests
# what can be tested of that here (all of it where there is a GPU). CTest's summary closes the output. Stops at the first
# step that fails.
#   --full   first: format, lint, clang-tidy, 60 s of libFuzzer, all tests under ASan and UBSan
#   --sweep  first: 100,000 random problems through `sorot check` on reference and 10,000 on cuda
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

full=false
sweep=false
for argument in "$@"; do
  case $argument in
    --full) full=true ;;
    --sweep) sweep=true ;;
    -h | --help) sed -n '2,6s/^# \?//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) echo "test.sh: no option '$argument'; there are --full and --sweep" >&2 && exit 2 ;;
  esac
done

jobs=$(nproc)
step="start"
trap 'echo "test.sh: FAILED in step: $step" >&2' EXIT

begin() {
  step=$1
  echo
  echo "=== $step (at $SECONDS s)"
}

configure() {
  cmake --preset "$1" -DPython3_EXECUTABLE="$PWD/.venv/bin/python"
}

# build PRESET [OPTION...]
build() {
  configure "$1" >/dev/null
  cmake --build --preset "$1" -j "$jobs" "${@:2}"
}

# run_tests PRESET [OPTION...]
run_tests() {
  ctest --preset "$1" -j "$jobs" --no-tests=error "${@:2}"
}

# Without a GPU: the library, the command, and the tests in which this build differs from the emulated one - the
# packages, the machine code, the checks on the CPU in short. The other tests would only repeat themselves.
build_and_test_cuda() {
  if nvidia-smi >/dev/null 2>&1; then
    build cuda
    run_tests cuda
  else
    build cuda --target sorot_command core_test
    run_tests cuda --label-regex '^(core_test|cuda|install)$'
  fi
}

fuzz_npy() {
  cmake -S . -B build-fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++ -DSOROT_FUZZ=ON \
    -DSOROT_CUDA=OFF -DPython3_EXECUTABLE="$PWD/.venv/bin/python" >/dev/null
  cmake --build build-fuzz --target npy_fuzz -j "$jobs"
  rm -rf build-fuzz/corpus
  cp -r tests/fuzz/seeds/npy build-fuzz/corpus
  if ! build-fuzz/tests/fuzz/npy_fuzz build-fuzz/corpus -artifact_prefix=build-fuzz/ -max_total_time=60 -timeout=10 \
    >build-fuzz/fuzz.log 2>&1; then
    tail -n 40 build-fuzz/fuzz.log >&2
    return 1
  fi
  tail -n 1 build-fuzz/fuzz.log
}

begin "set-up"
tools/setup.sh
has_nvcc=false
tools/nvcc.sh >/dev/null && has_nvcc=true

if $full; then
  begin "clang-format"
  tools/format.sh --check
  begin "lint"
  .venv/bin/python tools/lint.py
  begin "clang-tidy"
  configure emulated >/dev/null
  $has_nvcc && configure cuda >/dev/null
  tools/tidy.sh build build-cuda
  begin "libFuzzer on .npy files, 60 s"
  fuzz_npy
  begin "build with ASan and UBSan"
  build asan
  begin "tests under ASan and UBSan"
  run_tests asan
fi

if $has_nvcc; then
  begin "build and tests with nvcc"
  build_and_test_cuda
else
  begin "no nvcc: kernels are not compiled for GPUs"
fi

begin "build"
build emulated

if $sweep; then
  for seed in 11 12 13 14 15; do
    begin "sweep, seed $seed"
    build/sorot check --op attention --device reference --fuzz 20000 --seed "$seed"
    build/sorot check --op attention --device cuda --fuzz 2000 --seed "$seed"
  done
fi

begin "tests"
trap - EXIT
run_tests emulated
