#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles device headers by themselves with nvcc, front end only: what NVRTC takes from memory must be good from files too.
# A short run takes a third of them, others each time; GEMMERY_SOAK=1 takes all.
# Then the source of a kernel of each family, which users may compile so, too.
# usage: compile_headers_with_nvcc.sh GEMMERY
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
while read -r line; do
  "$1" inspect $line --device h200 --source > "$folder/kernel.cu" || failed=1
  if ! "$nvcc" -std=c++20 -I src -I include -arch=sm_90a -ptx --Werror all-warnings -o "$folder/kernel.ptx" "$folder/kernel.cu"; then
    echo "its source does not compile: $line"
    failed=1
  fi
done <<'LINES'
--design schedule=pingpong gemm 4096x4096x4096 a=bf16
--design instruction=mma gemm 64x7168x2048 a=bf16 b=bf16:c
--design instruction=fma gemm 1x8192x8192 a=bf16 b=bf16:c
--design instruction=fma gemm 512x512x512 a=f32
--design instruction=fma gemm 512x512x512 a=f16 program_a=A=relu(a)*s s=f32[k]
gemm 4096x4096x4096 a=e4m3 b=e4m3:c out=bf16 scale_a=f32[1x128]:m scale_b=f32[128x128]
conv2d_fprop 8x28x28x64 k=64 r=3 s=3 pad=1 groups=64 a=f16
LINES
[ "$count" -gt 0 ] && [ "$failed" -eq 0 ]
