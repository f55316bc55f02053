#!/usr/bin/env bash
# Sets up, builds the command `sorot` and runs attention on real data on every device of this build: one table, and a
# heatmap of all heads whose path is the last line. Takes no arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($# == 0)) || { echo "demo.sh takes no arguments, but got: $*" >&2 && exit 2; }

quietly() {
  local output
  output=$("$@" 2>&1) && return
  printf '%s\n' "$output" >&2
  echo "demo.sh: failed: $*" >&2
  exit 1
}

tools/setup.sh
echo "Building sorot (a few minutes, if nothing is built yet) ..." >&2
# CUDA is a row of the table either way: on a GPU if there is one, else emulated.
preset=default
build=build
nvidia-smi >/dev/null 2>&1 && tools/nvcc.sh >/dev/null && preset=cuda && build=build-cuda
quietly cmake --preset "$preset" -DPython3_EXECUTABLE="$PWD/.venv/bin/python"
cmake --build --preset "$preset" --target sorot_command -j "$(nproc)" >&2 || {
  echo "demo.sh: the build failed" >&2
  exit 1
}
exec .venv/bin/python tools/demo.py --sorot "$build/sorot" --out "$build/demo"
