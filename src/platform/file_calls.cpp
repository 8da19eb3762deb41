// SPDX-License-Identifier: Apache-2.0
// The real system calls.
#include "platform/file_calls.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>

namespace gemmery::platform {
namespace {

int open_at(int folder, const char* name, int flags, mode_t mode) {
  return ::openat(folder, name, flags, mode);
}

constexpr FileCalls real_calls{
    .openat = open_at,
    .close = ::close,
    .read = ::read,
    .write = ::write,
    .fsync = ::fsync,
    .fstat = ::fstat,
    .fstatat = ::fstatat,
    .mkdirat = ::mkdirat,
    .renameat = ::renameat,
    .unlinkat = ::unlinkat,
    .futimens = ::futimens,
    .flock = ::flock,
    .fstatfs = ::fstatfs,
};

}  // namespace

const FileCalls& system_file_calls() noexcept { return real_calls; }

}  // namespace gemmery::platform
