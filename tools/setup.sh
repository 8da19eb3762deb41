#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gets what the build and the tests need and the machine lacks. Run again it finds everything in place and is done at once.
#
#   as root      Debian packages are installed
#   otherwise    the same packages are unpacked into .deps/, with whatever they depend on, and nothing outside is touched
#   NVRTC        where there is no CUDA toolkit, a pinned and hash-checked libnvrtc from PyPI into .venv/ (optional: without it the
#                tests that compile kernels are skipped)
#   Python       what the Python package is built and tested with, pinned and hash-checked, into .venv/ (optional: without it the
#                package is not built; GEMMERY_PYTHON=0 leaves it out)
set -euo pipefail
shopt -s nullglob
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/environment.sh

say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }

# --- what is missing --------------------------------------------------------------------------------------------------

has_command() { command -v "$1" >/dev/null; }
has_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ] || [ -e "$unpacked/usr/include/$1" ]; }
has_library() {
  local found=(/usr/lib/"$multiarch"/$1 /usr/lib64/$1 /usr/local/lib/$1 /usr/lib/$1 "$unpacked/usr/lib/$multiarch"/$1)
  [ ${#found[@]} -gt 0 ]
}
needs_private_nvrtc() { [ -z "${GEMMERY_NVRTC_LIBRARY:-}" ] && [ -z "$(find_toolkit_nvrtc)" ]; }
has_pip_wheel() { local wheels=(/usr/share/python-wheels/pip-*.whl "$unpacked"/usr/share/python-wheels/pip-*.whl); [ ${#wheels[@]} -gt 0 ]; }
needs_python_packages() { [ "${GEMMERY_PYTHON:-1}" != 0 ] && ! cmp -s tools/python-requirements.txt .venv/python-requirements.txt; }
has_python_header() { python3 -c 'import os, sysconfig; exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || has_header python3*/Python.h; }
can_install_from_pypi() { has_pip_wheel || python3 -c 'import ensurepip' 2>/dev/null; }

missing_packages() {
  has_command "${CXX:-g++}" || echo g++
  has_command cmake || echo cmake
  has_command ninja || echo ninja-build
  has_command python3 || echo python3
  has_command pkg-config || echo pkgconf
  has_header gtest/gtest.h || echo libgtest-dev
  has_header benchmark/benchmark.h || echo libbenchmark-dev
  has_header fmt/core.h || echo libfmt-dev
  has_header xxhash.h || echo libxxhash-dev
  has_header nlohmann/json.hpp || echo nlohmann-json3-dev
  has_header CLI/CLI.hpp || echo libcli11-dev
}

# Without these the build and all tests that do not need them work.
missing_optional_packages() {
  has_library 'libdnnl.so.[23]*' || echo libdnnl2
  has_library 'libzstd.so.1*' || echo libzstd1
  has_library 'liblz4.so.1*' || echo liblz4-1
  [ "${GEMMERY_PYTHON:-1}" = 0 ] || has_python_header || echo python3-dev
  if needs_private_nvrtc || needs_python_packages; then
    can_install_from_pypi || echo python3-venv
    [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
  fi
}

# --- Debian packages --------------------------------------------------------------------------------------------------

has_apt() { has_command apt-get && has_command dpkg; }
is_known() { "${apt_cache[@]}" show "$1" >/dev/null 2>&1; }

install_packages() {
  local log=$1
  shift
  DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -y --no-install-recommends "$@" >>"$log" 2>&1
}

# apt with its own lists and archives under .deps/, which needs no rights.
use_private_apt() {
  mkdir -p "$deps"/apt/{lists,archives}/partial
  local options=(-o "Debug::NoLocking=1" -o "Dir::Cache=$deps/apt" -o "Dir::Cache::archives=$deps/apt/archives" -o "Acquire::Retries=3")
  if ! apt-cache show g++ >/dev/null 2>&1; then
    options+=(-o "Dir::State::Lists=$deps/apt/lists")
  fi
  apt_get=(apt-get "${options[@]}")
  apt_cache=(apt-cache "${options[@]}")
}

unpack_packages() {
  local log=$1 archive
  shift
  "${apt_get[@]}" -y -d --no-install-recommends install "$@" >>"$log" 2>&1 || return 1
  mkdir -p "$unpacked"
  for archive in "$deps"/apt/archives/*.deb; do
    dpkg -x "$archive" "$unpacked" || return 1
    rm "$archive"
  done
  complete_links
}

# Of a library whose run-time half the system has, only links to that half are unpacked; here they find it.
complete_links() {
  local link library name
  for link in "$unpacked/usr/lib/$multiarch"/*.so*; do
    library=/usr/lib/$multiarch/$(readlink "$link")
    if [ ! -e "$link" ] && [ -e "$library" ]; then
      for name in "$(basename "$library")" "$(basename "$(realpath "$library")")"; do
        ln -sf "$library" "$unpacked/usr/lib/$multiarch/$name"
      done
    fi
  done
}

# g++ from .deps/ sees a system root of its own there; the C library in it is the machine's, the one that programs will run with.
wrap_unpacked_compiler() {
  local compiler=("$unpacked"/usr/bin/"$(uname -m)"-linux-gnu-g++-[0-9]*) name library
  [ ${#compiler[@]} -gt 0 ] || return 0
  mkdir -p "$deps/bin" "$unpacked/lib/$multiarch" "$unpacked/usr/lib/$multiarch"
  for library in /lib/"$multiarch"/{libc,libm,libmvec,libdl,libpthread,librt,ld-linux*}.so.*; do
    ln -sf "$library" "$unpacked/lib/$multiarch/"
  done
  [ ! -d /lib64 ] || { rm -rf "$unpacked/lib64" && ln -s /lib64 "$unpacked/lib64"; }
  for library in {/usr,}/lib/"$multiarch"/{libstdc++.so.6,libgcc_s.so.1}; do
    name=$unpacked/usr/lib/$multiarch/$(basename "$library")
    [ -e "$name" ] || ln -sf "$library" "$name"
  done
  for name in g++ c++; do
    printf '#!/bin/sh\nexec "%s" --sysroot="%s" "$@"\n' "${compiler[0]}" "$unpacked" >"$deps/bin/$name"
    chmod +x "$deps/bin/$name"
  done
}

get_packages() {
  local log=$deps/setup.log wanted=("$@")
  mkdir -p "$deps"
  : >"$log"
  has_apt || return 1
  if [ "$(id -u)" = 0 ]; then
    apt_get=(apt-get) apt_cache=(apt-cache)
    get() { install_packages "$log" "$@"; }
  else
    use_private_apt
    get() { unpack_packages "$log" "$@" && wrap_unpacked_compiler; }
  fi
  is_known "${wanted[0]}" && get "${wanted[@]}" && return
  # Lists that are absent or older than the archive: fetch them and try once more.
  "${apt_get[@]}" update >>"$log" 2>&1
  get "${wanted[@]}"
}

fail_without() {
  tail -n 5 "$deps/setup.log" >&2
  fail "cannot get these packages, please install them: apt-get install $*"
}

ensure_packages() {
  local required optional
  mapfile -t required < <(missing_packages)
  mapfile -t optional < <(missing_optional_packages)
  if [ ${#required[@]} -gt 0 ]; then
    say "getting ${required[*]} ${optional[*]}"
    if ! get_packages "${required[@]}" "${optional[@]}"; then
      get_packages "${required[@]}" || fail_without "${required[@]}"
      say "not available: ${optional[*]}"
    fi
    . tools/environment.sh  # .deps/ may be new
    mapfile -t required < <(missing_packages)
    [ ${#required[@]} -eq 0 ] || fail_without "${required[@]}"
  elif [ ${#optional[@]} -gt 0 ]; then
    say "getting ${optional[*]}"
    get_packages "${optional[@]}" || say "going on without ${optional[*]} (see .deps/setup.log)"
  fi
}

# --- from PyPI --------------------------------------------------------------------------------------------------------

# Installs a file of pinned and hash-checked requirements into .venv/.
install_from_pypi() {
  local wheels=("$unpacked"/usr/share/python-wheels/pip-*.whl /usr/share/python-wheels/pip-*.whl)
  [ -x .venv/bin/python ] || python3 -m venv --without-pip .venv || return 1
  if [ ${#wheels[@]} -gt 0 ]; then
    local pip=(env "PYTHONPATH=${wheels[0]}" .venv/bin/python -m pip)
  else
    .venv/bin/python -m ensurepip >/dev/null || return 1
    local pip=(.venv/bin/python -m pip)
  fi
  "${pip[@]}" install --quiet --disable-pip-version-check --no-input --retries 1 --timeout 20 \
    --only-binary :all: --no-deps --require-hashes -r "$1"
}

ensure_nvrtc() {
  needs_private_nvrtc || return 0
  say "no CUDA toolkit here: getting NVRTC from PyPI into .venv/"
  mkdir -p "$deps"
  install_from_pypi tools/nvrtc-requirements.txt >"$deps/nvrtc.log" 2>&1 && return
  say "NVRTC is not to be had ($(tail -n 1 "$deps/nvrtc.log")): tests that compile kernels will be skipped"
}

ensure_python_packages() {
  needs_python_packages || return 0
  say "getting what the Python package is built and tested with into .venv/"
  mkdir -p "$deps"
  if install_from_pypi tools/python-requirements.txt >"$deps/python.log" 2>&1; then
    cp tools/python-requirements.txt .venv/
  else
    say "not to be had ($(tail -n 1 "$deps/python.log")): the Python package is not built"
  fi
}

ensure_packages
. tools/environment.sh  # once more: .deps/ may be new
ensure_nvrtc
ensure_python_packages
