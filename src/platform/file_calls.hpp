// SPDX-License-Identifier: Apache-2.0
// The system calls for files and folders, as a table: the real ones, or a test's, which fail on
// demand.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstddef>

namespace gemmery::platform {

// Each as in its manual page: returns -1 and sets errno on failure.
struct FileCalls {
  int (*openat)(int folder, const char* name, int flags, mode_t mode);
  int (*close)(int file);
  ssize_t (*read)(int file, void* bytes, std::size_t count);
  ssize_t (*write)(int file, const void* bytes, std::size_t count);
  int (*fsync)(int file);
  int (*fstat)(int file, struct stat* facts);
  int (*fstatat)(int folder, const char* name, struct stat* facts, int flags);
  int (*mkdirat)(int folder, const char* name, mode_t mode);
  int (*renameat)(int from_folder, const char* from, int to_folder, const char* to);
  int (*unlinkat)(int folder, const char* name, int flags);
  int (*futimens)(int file, const struct timespec times[2]);
  int (*flock)(int file, int operation);
  int (*fstatfs)(int file, struct statfs* facts);
};

const FileCalls& system_file_calls() noexcept;

// Repeats a call that a signal interrupted. A call that is interrupted this often in a row is not
// interrupted by signals.
inline constexpr int most_interruptions = 1000;

template <class Call>
auto uninterrupted(Call&& call) {
  auto result = call();
  for (int turn = 0; result < 0 && errno == EINTR && turn < most_interruptions; ++turn)
    result = call();
  return result;
}

}  // namespace gemmery::platform
