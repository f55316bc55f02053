#!/usr/bin/env bash
# run_tests.sh FOLDER PREFIX: runs every GoogleTest executable below FOLDER but machine_test, in one process each, which
# starts the GPU once where CTest would do so for every test; PREFIX.<executable>.json says what came of it.
set -euo pipefail

mapfile -t tests < <(find "$1" -name install -prune -o -name '*_test' ! -name machine_test -type f -executable -print | sort)
((${#tests[@]})) || { echo "run_tests.sh: no tests below $1" >&2 && exit 1; }
code=0
for test in "${tests[@]}"; do
  "$test" --gtest_brief=1 --gtest_output=json:"$2.${test##*/}.json" || code=1
done
exit $code
