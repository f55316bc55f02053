#!/usr/bin/env bash
# Formats all C++ files by .clang-format (clang-format 14).
#   tools/format.sh           in place
#   tools/format.sh --check   changes nothing; exit code 1 if something would change
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  "") action=(-i) ;;
  --check) action=(--dry-run -Werror) ;;
  *) echo "format.sh: '$1' is no option; expected --check or nothing" >&2 && exit 2 ;;
esac

# Another version formats differently, and then every commit would fight the last one.
version=$(clang-format --version)
[[ $version == *"version 14."* ]] || { echo "format.sh: needs clang-format 14, found: $version" >&2 && exit 2; }

git ls-files -z --cached --others --exclude-standard '*.h' '*.cpp' '*.cuh' '*.cu' | xargs -0 -r clang-format "${action[@]}" ||
  { echo "format.sh: tools/format.sh mends this" >&2 && exit 1; }
