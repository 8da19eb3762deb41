#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: plain_c_test.sh EXAMPLES
# A file of kernels is made by one program and run by another, in C, that has no compiler and is given the emulator for a device.
# Exits with 77 (skipped) where there is no NVRTC to make the file with.
set -uo pipefail
examples=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "plain_c_test: $*"; exit 1; }

"$examples/08_ahead_of_time" "$scratch/kernels.gemmery" || exit $?
said=$(GEMMERY_HIDE_CUDA=1 PATH=/nowhere "$examples/09_plain_c" "$scratch/kernels.gemmery" emulated:h200) || fail "$said"
echo "$said"
[ "$(grep -c '0 of 32768 elements wrong' <<<"$said")" = 2 ] || fail "not every element was told right"

head -c 100000 "$scratch/kernels.gemmery" >"$scratch/cut.gemmery"
said=$("$examples/09_plain_c" "$scratch/cut.gemmery" emulated:h200) && fail "a file that was cut off was taken"
grep -q "GEMMERY_IO: .*cut.gemmery, size: .*cut off" <<<"$said" || fail "of a file that was cut off it said: $said"
said=$("$examples/09_plain_c" "$scratch/none" emulated:h200) && fail "a file that is not there was taken"
grep -q "GEMMERY_IO: .*none" <<<"$said" || fail "of a file that is not there it said: $said"
