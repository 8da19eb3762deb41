#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: build.sh PRESET TARGET…      configures the preset if that was not done yet, and builds the targets
# With UNITY=1 it is configured as a unity build, which takes less time from nothing (cmake/GemmeryUnity.cmake).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=$1
shift

if [ ! -f "build/$preset/build.ninja" ]; then
  mkdir -p "build/$preset"
  # Only its faults are of interest; the rest is kept for who looks for it.
  if ! cmake --preset "$preset" ${UNITY:+-DGEMMERY_UNITY_BUILD="$UNITY"} >"build/$preset/configure.log" 2>&1; then
    cat "build/$preset/configure.log" >&2
    exit 1
  fi
fi
exec cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}" --target "$@"
