#!/usr/bin/env bash
# Runs clang-tidy over the library, the command, the benchmark and the tests' support code.
#   tools/tidy.sh [BUILD_DIR]   BUILD_DIR (default: build) is a configured build; only its compile_commands.json is read
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${1:-build}
if ! [[ -f $build/compile_commands.json ]]; then
  echo "tidy.sh: $build/compile_commands.json is missing; configure first: cmake --preset default" >&2
  exit 2
fi

# Files that the build compiles: a new file counts from the moment CMake knows it.
mapfile -t files < <(git ls-files --cached --others --exclude-standard cpu tools/sorot bench tests/support |
  grep '\.cpp$' | while read -r file; do grep -qF "/$file\"" "$build/compile_commands.json" && echo "$file"; done)

printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2> >(grep -v ' warnings\? generated\.$' >&2)
echo "tidy.sh: ${#files[@]} files, nothing found"
