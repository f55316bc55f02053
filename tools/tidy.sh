#!/usr/bin/env bash
# Runs clang-tidy over the library, the command, the benchmark and the tests' support code; kernels (.cu) are not C++.
#   tools/tidy.sh [BUILD_DIR...]   configured builds (default: build), of which only compile_commands.json is read; a
#                                  file is checked as the first build compiles it that does
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

(($#)) || set -- build
databases=()
for build in "$@"; do
  [[ -f $build/compile_commands.json ]] && databases+=("$build")
done
if ((${#databases[@]} == 0)); then
  echo "tidy.sh: $1/compile_commands.json is missing; configure first: cmake --preset default" >&2
  exit 2
fi

# Files that a build compiles: a new file counts from the moment CMake knows it.
mapfile -t files < <(git ls-files --cached --others --exclude-standard cpu cuda tools/sorot bench tests/support |
  grep '\.cpp$')
jobs=()
for file in "${files[@]}"; do
  for build in "${databases[@]}"; do
    if grep -qF "/$file\"" "$build/compile_commands.json"; then
      jobs+=("$build" "$file")
      break
    fi
  done
done

# g++ has warnings to switch off that clang has not.
printf '%s\0' "${jobs[@]}" |
  xargs -0 -n 2 -P "$(nproc)" clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option -p 2> >(grep -v ' warnings\? generated\.$' >&2)
echo "tidy.sh: $((${#jobs[@]} / 2)) files, nothing found"
