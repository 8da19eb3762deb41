#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: install_test.sh BUILD COMPILER VERSION
# Installs BUILD into an empty prefix, moves that prefix, and builds and runs a scratch project against it: once with
# find_package, once with pkg-config. Nothing but the installed files may be needed.
set -euo pipefail
build=$1 compiler=$2 version=$3
consumer=$(cd "$(dirname "${BASH_SOURCE[0]}")/consumer" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() { echo "install_test: $*"; exit 1; }

run_consumer() {
  local said
  said=$("$1") || fail "the consumer built with $2 failed: $said"
  grep -qx "gemmery $version" <<<"$said" || fail "the consumer built with $2 said: $said"
  echo "$2: $said"
}

check_only_own_names_are_exported() {
  local foreign
  foreign=$(nm -D --defined-only "$(find "$prefix" -name libgemmery.so)" | awk '$2 == "T" && $3 !~ /gemmery/ {print $3}')
  [ -z "$foreign" ] || fail "libgemmery.so exports names that are not its own: $foreign"
}

check_only_standard_libraries_are_needed() {
  local library needed
  library=$(find "$prefix" -name 'libgemmery.so' | head -n 1)
  needed=$(objdump -p "$library" | awk '$1 == "NEEDED" {print $2}' |
    grep -vE '^(libc|libm|libstdc\+\+|libgcc_s|libdl|libpthread|ld-linux.*)\.so' || true)
  [ -z "$needed" ] || fail "libgemmery.so needs $needed"
}

cmake --install "$build" --prefix "$scratch/first" >"$scratch/install.log" || fail "$(cat "$scratch/install.log")"
prefix=$scratch/moved
mv "$scratch/first" "$prefix"
check_only_standard_libraries_are_needed
check_only_own_names_are_exported

cmake -S "$consumer" -B "$scratch/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  -DGEMMERY_WANTED_VERSION="${version%.*}" >"$scratch/log" 2>&1 &&
  cmake --build "$scratch/consumer" >>"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
run_consumer "$scratch/consumer/consumer" find_package
if cmake -S "$consumer" -B "$scratch/refused" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  -DGEMMERY_WANTED_VERSION=99.0 >/dev/null 2>&1; then
  fail "find_package(gemmery 99.0) was satisfied by $version"
fi

# --- CUDA programs on the emulator -------------------------------------------------------------------------------------

program=$build/tests/bin/cuda_program
if [ -x "$program" ]; then
  said=$(env -i "$(find "$prefix" -path '*bin/gemmery')" emulate "$program" right 2>&1) || fail "a CUDA program failed: $said"
  grep -qx right <<<"$said" || fail "a CUDA program said: $said"
fi

# --- pages, examples and device headers -------------------------------------------------------------------------------

pages=$(find "$prefix" -type d -path '*doc/gemmery')
source_only=(tests bench/peers src/providers src/model)
python3 tools/check_links.py "$pages" "${source_only[@]/#/--without=}" >"$scratch/log" || fail "$(cat "$scratch/log")"

cmake -S "$pages/examples" -B "$scratch/examples" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" >"$scratch/log" 2>&1 &&
  cmake --build "$scratch/examples" --target example_05_prepared_launch >>"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
"$scratch/examples/examples/05_prepared_launch" >"$scratch/log" || fail "an installed example failed: $(cat "$scratch/log")"

device_headers=$(find "$prefix" -type d -name gemmery-device)
abi=$(cd "$device_headers" && find device/abi -name '*.hpp')
printf '#include <%s>\n' initializer_list $abi >"$scratch/headers.cpp"  # which CUDA's compilers include by themselves
"$compiler" -std=c++20 -fsyntax-only -I"$device_headers" "$scratch/headers.cpp" || fail "device headers do not find each other"

# --- an older standard is refused by one line -------------------------------------------------------------------------

echo '#include <gemmery/gemmery.hpp>' >"$scratch/old.cpp"
if "$compiler" -std=c++17 -fsyntax-only -I"$prefix/include" "$scratch/old.cpp" 2>"$scratch/log"; then fail "C++17 was accepted"; fi
grep -m 1 'error:' "$scratch/log" | grep -q 'gemmery: expected C++20' || fail "C++17: $(cat "$scratch/log")"
[ "$(grep -c 'error:' "$scratch/log")" -le 2 ] || fail "C++17: more than one complaint: $(cat "$scratch/log")"

# --- pkg-config -------------------------------------------------------------------------------------------------------

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gemmery.pc)")
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion gemmery)" = "$version" ] || fail "pkg-config --modversion gemmery is not $version"
read -ra flags <<<"$(pkg-config --cflags --libs gemmery)"
[ -d "$(pkg-config --variable=device_includedir gemmery)/device" ] || fail "pkg-config's device_includedir has no device headers"
"$compiler" -std=c++20 "$consumer/consumer.cpp" -o "$scratch/by_pkg_config" "${flags[@]}" \
  -Wl,-rpath,"$(pkg-config --variable=libdir gemmery)"
run_consumer "$scratch/by_pkg_config" pkg-config
