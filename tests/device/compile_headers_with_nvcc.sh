#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles device headers by themselves with nvcc, front end only: what NVRTC takes from memory must be good from files too.
# A short run takes a third of them, others each time; GEMMERY_SOAK=1 takes all.
# Exits with 77 (skipped) where there is no nvcc. Run in the repository's root.
nvcc=${CUDACXX:-nvcc}
if ! command -v "$nvcc" >/dev/null 2>&1; then
  nvcc=/usr/local/cuda/bin/nvcc
  [ -x "$nvcc" ] && [ -z "$GEMMERY_HIDE_CUDA" ] || { echo "skipped: no nvcc"; exit 77; }
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0
number=0
count=0
third=$(($(date +%s) % 3))
for header in $(cd src && find device -name '*.cuh' -o -name '*.hpp' | grep '^device/' | sort); do
  number=$((number + 1))
  [ -n "$GEMMERY_SOAK" ] || [ $((number % 3)) -eq "$third" ] || continue
  printf '#include <%s>\n' "$header" > "$folder/alone.cu"
  if ! "$nvcc" -std=c++20 -I src -I include -arch=sm_80 -ptx --Werror all-warnings -o "$folder/alone.ptx" "$folder/alone.cu"; then
    echo "does not compile alone: $header"
    failed=1
  fi
  count=$((count + 1))
done
echo "$count headers compiled alone"
[ "$count" -gt 0 ] && [ "$failed" -eq 0 ]
