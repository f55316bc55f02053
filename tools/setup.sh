#!/usr/bin/env bash
# Installs what building and testing Sorot takes, and nothing that is there already: Debian packages, Python packages in
# .venv at the repository root, and there also NVIDIA's CUDA compiler if the machine has none. For Debian 12, as root or
# with sudo. Quick when nothing is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($# == 0)) || { echo "setup.sh takes no arguments, but got: $*" >&2 && exit 2; }

packages=(
  g++ cmake ninja-build pkg-config git                                     # to build
  libcli11-dev libfmt-dev nlohmann-json3-dev libgtest-dev libbenchmark-dev # command, tests, benchmark
  python3 python3-venv                                                     # demo, plots, lint
  clang clang-format clang-tidy libclang-rt-14-dev                         # second compiler, checkers, fuzzer
)

fail() {
  echo "setup.sh: $*" >&2
  exit 1
}

# Runs a command in silence, but shows all of its output if it fails.
quietly() {
  local output
  output=$("$@" 2>&1) && return
  printf '%s\n' "$output" >&2
  fail "failed: $*"
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    grep -qxF "$package installed" <<<"$installed" || echo "$package"
  done
}

command -v dpkg-query >/dev/null || fail "this is not Debian; install by hand what matches: ${packages[*]}"
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
mapfile -t missing < <(missing_packages)
if ((${#missing[@]})); then
  as_root=(env DEBIAN_FRONTEND=noninteractive)
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "missing ${missing[*]}: run this as root, or install sudo"
    as_root=(sudo "${as_root[@]}")
  fi
  apt=("${as_root[@]}" apt-get -qq -o DPkg::Lock::Timeout=300)
  echo "setup.sh: installing ${missing[*]}" >&2
  quietly "${apt[@]}" update
  quietly "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
fi

# The stamp is a copy of the requirements, written last. `python3` on the PATH may be another interpreter.
if ! [[ -x .venv/bin/python ]] || ! cmp -s tools/requirements.txt .venv/requirements.txt; then
  echo "setup.sh: installing the Python packages into .venv" >&2
  rm -rf .venv
  quietly /usr/bin/python3 -m venv .venv
  quietly .venv/bin/python -m pip install --quiet --only-binary :all: -r tools/requirements.txt
  cp tools/requirements.txt .venv/requirements.txt
fi

# Installs the packages of a list into .venv, once; where that fails, says what goes without.
add_to_venv() {
  local list=tools/requirements-$1.txt what=$2 without=$3
  cmp -s "$list" ".venv/${list##*/}" && return
  echo "setup.sh: installing $what into .venv" >&2
  if ! .venv/bin/python -m pip install --quiet --only-binary :all: -r "$list"; then
    echo "setup.sh: $what could not be had; only $without" >&2
    return
  fi
  cp "$list" .venv/
}

# Kernels are compiled everywhere, GPU or not. Without a compiler the rest of Sorot still builds.
nvcc=$(tools/nvcc.sh || true)
if [[ -z $nvcc || $nvcc == */.venv/* ]]; then
  add_to_venv cuda "the CUDA compiler" "builds with SOROT_CUDA=ON miss it"
  # Compiler and CMake look for the runtime where NVIDIA's installer puts it.
  cuda=$(echo .venv/lib/python3*/site-packages/nvidia/cu13)
  if [[ -d $cuda/lib ]]; then
    ln -sfn lib "$cuda/lib64"
    ln -sf libcudart.so.13 "$cuda/lib/libcudart.so"
  fi
  nvcc=$(tools/nvcc.sh || true)
fi
if [[ -n $nvcc ]]; then
  add_to_venv sass "the disassembler" "tools/sass_mix.py and the test of machine code miss it"
fi
