#!/usr/bin/env bash
# Prints the path of the CUDA compiler that a build here takes, in CMake's order; exit code 1 if there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for nvcc in "${CUDACXX:-}" "$(command -v nvcc)" "${CUDA_PATH:-}/bin/nvcc" /usr/local/cuda/bin/nvcc \
  "$PWD"/.venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
  [[ -n $nvcc ]] && "$nvcc" --version >/dev/null 2>&1 && echo "$nvcc" && exit 0
done
exit 1
