#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adding an operation is one row: the room compiles and works with a table that has one more. It is
# compiled anew for that, so this runs in soak only.
set -eu
if [ "${GEMMERY_SOAK:-0}" != 1 ]; then
  echo "skipped: compiles a room; set GEMMERY_SOAK=1"
  exit 77
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
# The binding of tensors (arguments.cpp) is the one part that knows no operation.
sources=$(find src/epilogue -name '*.cpp' ! -name arguments.cpp)
# shellcheck disable=SC2086 # a list of words
"${CXX:-c++}" -std=c++20 -O0 -Wall -Wextra -DFMT_HEADER_ONLY -DXXH_INLINE_ALL -DGEMMERY_STATIC \
  -Itests/epilogue/one_more_op/include -Isrc -Iinclude tests/epilogue/one_more_op/main.cpp $sources \
  src/core/error.cpp src/core/dtype.cpp src/core/number.cpp -o "$program"
"$program"
echo "one more operation was read, compared, folded, evaluated and emitted"
