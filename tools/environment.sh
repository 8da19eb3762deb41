# SPDX-License-Identifier: Apache-2.0
# Sourced by tools/setup.sh and tools/in_environment.sh: makes what lies in .deps/ and .venv/ visible, as if it were installed.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps
unpacked=$deps/root
multiarch=$(uname -m)-linux-gnu

if [ -d "$unpacked" ] && [[ :$PATH: != *:$deps/bin:* ]]; then
  PATH=$deps/bin:$PATH:$unpacked/usr/bin
  LD_LIBRARY_PATH=$unpacked/usr/lib/$multiarch:$unpacked/lib/$multiarch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export PATH LD_LIBRARY_PATH
fi

# The first libnvrtc of an installed CUDA toolkit; nothing when there is none or GEMMERY_HIDE_CUDA=1 hides it.
find_toolkit_nvrtc() {
  [ "${GEMMERY_HIDE_CUDA:-0}" = 1 ] && return
  local candidate
  for candidate in {"${CUDA_HOME:-/usr/local/cuda}","${CUDA_PATH:-/usr/local/cuda}",/usr/local/cuda-*,/usr}/{lib64,lib,"lib/$multiarch"}/libnvrtc.so.*; do
    [ -e "$candidate" ] && echo "$candidate" && return
  done
}

# The libnvrtc that tools/setup.sh put into .venv/, if it did.
find_private_nvrtc() {
  local candidate
  for candidate in "$root"/.venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13; do
    [ -e "$candidate" ] && echo "$candidate" && return
  done
}

if [ -z "${GEMMERY_NVRTC_LIBRARY:-}" ] && [ -z "$(find_toolkit_nvrtc)" ]; then
  GEMMERY_NVRTC_LIBRARY=$(find_private_nvrtc)
  [ -n "$GEMMERY_NVRTC_LIBRARY" ] && export GEMMERY_NVRTC_LIBRARY || unset GEMMERY_NVRTC_LIBRARY
fi
