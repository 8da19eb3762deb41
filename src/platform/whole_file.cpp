// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files by descriptor.
#include "platform/whole_file.hpp"

#include <gemmery/error.hpp>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace gemmery::platform {
namespace {

[[noreturn]] void throw_io(const std::string& path, const char* expected, std::string got) {
  throw Error(
      {.kind = ErrorKind::io, .operand = path, .expected = expected, .got = std::move(got)});
}

[[noreturn]] void throw_system(const std::string& path, const char* expected) {
  throw_io(path, expected, std::strerror(errno));
}

class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  ~OpenFile() { close(); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool is_open() const noexcept { return descriptor_ >= 0; }
  int get() const noexcept { return descriptor_; }
  bool close() noexcept {
    const int result = descriptor_ < 0 ? 0 : ::close(descriptor_);
    descriptor_ = -1;
    return result == 0;
  }

 private:
  int descriptor_;
};

std::size_t checked_size(const OpenFile& file, const std::string& path, std::size_t most_bytes) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_system(path, "a file that can be read");
  if (!S_ISREG(status.st_mode)) throw_io(path, "a regular file", "something else");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes > most_bytes) {
    throw_io(path, "a file of sensible size",
             std::to_string(bytes) + " bytes, more than " + std::to_string(most_bytes));
  }
  return bytes;
}

bool write_all(const OpenFile& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

// A name in the folder of `path` that no other process uses at the same time.
std::string name_aside(const std::string& path) {
  static std::atomic<unsigned> calls = 0;
  return path + ".part-" + std::to_string(::getpid()) + "-" + std::to_string(calls++);
}

}  // namespace

std::vector<std::byte> read_whole_file(const std::string& path, std::size_t most_bytes) {
  // O_NONBLOCK: an open of a pipe does not wait for its other end.
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) throw_system(path, "a file that can be read");
  std::vector<std::byte> bytes(checked_size(file, path, most_bytes));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system(path, "a file that can be read");
    if (got == 0) break;  // the file has been truncated meanwhile
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void write_whole_file(const std::string& path, std::span<const std::byte> bytes) {
  constexpr const char* expected = "a file that can be written";
  const std::string aside = name_aside(path);
  OpenFile file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file.is_open()) throw_system(path, expected);
  const bool is_written = write_all(file, bytes) && ::fsync(file.get()) == 0 && file.close();
  if (is_written && ::rename(aside.c_str(), path.c_str()) == 0) return;
  const int failure = errno;
  ::unlink(aside.c_str());
  errno = failure;
  throw_system(path, expected);
}

}  // namespace gemmery::platform
