#!/usr/bin/env bash
# Everything that only a GPU can answer, in less than 10 minutes: builds for the GPU that is there, compares every
# instruction wrapper with its definition, runs all tests, the smallest cases under compute-sanitizer, the benchmark, and
# beside it PyTorch's attention and an unfused one (cuBLAS). One table at the end.
#   --out FOLDER    where logs and JSON files go (default: gpu-check/ in the build folder)
#   --build FOLDER  an existing build of this source tree, instead of building into build-gpu/
#   --plan          prints the steps and what time each may take, and runs nothing
# Exit code 0 if all steps passed, 1 if one did not, 2 for wrong options, 3 without GPU or compiler.
set -euo pipefail

fail() {
  echo "gpu_check.sh: $2" >&2
  exit "$1"
}

plan=false
out=
build=
while (($#)); do
  case $1 in
    --plan) plan=true ;;
    --out | --build)
      (($# > 1)) || fail 2 "$1 needs a folder"
      [[ $1 == --out ]] && out=$(realpath -m -- "$2") || build=$(realpath -m -- "$2")
      shift
      ;;
    -h | --help) sed -n '2,9s/^# \?//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) fail 2 "no option '$1'; there are --out, --build and --plan" ;;
  esac
  shift
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

model="the GPU"
capability=NN
nvcc=nvcc
if ! $plan; then
  model=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || model=
  [[ -n $model ]] || fail 3 "there is no NVIDIA GPU on this machine (nvidia-smi shows none); --plan says what one is for"
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  if [[ -z $build ]]; then
    nvcc=$(tools/nvcc.sh) || fail 3 "there is no nvcc; tools/setup.sh installs one"
  elif ! [[ -x $build/sorot ]]; then
    fail 2 "$build is not a build of Sorot: it has no sorot"
  fi
fi
make=$([[ -z $build ]] && echo true || echo false)
build=${build:-build-gpu}
out=${out:-$build/gpu-check}
planned=0
passed=true

# step NAME SECONDS COMMAND...: one line of the table. The output goes to OUT/NAME.log.
step() {
  local name=$1 most=$2 begin=$SECONDS result=passed
  shift 2
  planned=$((planned + most))
  if $plan; then
    printf '%-14s %4d s  %s\n' "$name" "$most" "$*"
    return
  fi
  echo "gpu_check.sh: $name, at most $most s ..." >&2
  timeout --kill-after=5 "$most" "$@" >"$out/$name.log" 2>&1 || case $? in
    124 | 137) result="out of time" ;;
    *) result=FAILED ;;
  esac
  [[ $result == passed ]] || { passed=false && tail -n 20 "$out/$name.log" >&2; }
  printf '{"step": "%s", "result": "%s", "seconds": %d}\n' "$name" "$result" $((SECONDS - begin)) >>"$out/steps.jsonl"
  [[ $result == passed ]]
}

# skip NAME WHY
skip() {
  $plan || printf '{"step": "%s", "result": "skipped: %s", "seconds": 0}\n' "$1" "$2" >>"$out/steps.jsonl"
}

# A PyTorch that sees the GPU, in whatever Python has one.
python_with_torch() {
  local python
  for python in "${PYTHON:-}" python3 .venv/bin/python; do
    [[ -n $python ]] || continue
    "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null && echo "$python" && return
  done
  return 1
}

render() {
  python3 tools/gpu/table.py "$out" --title "$model (sm_$capability)"
}

if ! $plan; then
  mkdir -p "$out"
  rm -f "$out"/*.json "$out"/*.jsonl "$out"/*.log
fi

if $make; then
  # Its own folder, for machine code of this GPU alone.
  if ! { step configure 30 cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSOROT_CUDA=ON \
    -DCMAKE_CUDA_COMPILER="$nvcc" -DSOROT_CUDA_ARCHITECTURES="$capability-real" &&
    step build 180 cmake --build "$build" -j "$(nproc)"; }; then
    render
    exit 1
  fi
fi

if ! $plan; then
  problem=$("$build/sorot" check --op attention --device cuda --fuzz 1 2>&1) || (($? != 3)) || fail 3 "$problem"
fi
step instructions 20 "$build/tests/machine/machine_test" --gtest_output=json:"$out/instructions.machine_test.json" || true

step tests 120 tools/gpu/run_tests.sh "$build/tests" "$out/tests" || true
step fuzz 30 "$build/sorot" check --op attention --device cuda --fuzz 2000 || true

sanitizer=$(PATH=$PATH:$(dirname "$nvcc"):/usr/local/cuda/bin command -v compute-sanitizer || true)
for tool in memcheck racecheck synccheck initcheck; do
  if [[ -n $sanitizer ]] || $plan; then
    step "$tool" 20 "${sanitizer:-compute-sanitizer}" --tool "$tool" --error-exitcode 1 "$build/sorot" check \
      --op attention --device cuda --fuzz 3 || true
  else
    skip "$tool" "no compute-sanitizer"
  fi
done

step benchmark 60 "$build/sorot_bench" --benchmark_filter=/cuda --benchmark_min_time=0.2 \
  --benchmark_out="$out/benchmark.json" --benchmark_out_format=json || true
if $plan || python=$(python_with_torch); then
  step peers 60 "${python:-python3}" tools/gpu/peers.py bench/cases/attention.json --out "$out/peers.json" || true
else
  skip peers "no PyTorch that sees the GPU, hence no baseline and no peaks"
fi

if $plan; then
  echo "at most $planned s; logs and JSON files in $out"
  exit 0
fi
render
$passed
