// SPDX-License-Identifier: Apache-2.0
// Polls for the lock, since a wait in the system call could not be cancelled.
#include "platform/file_lock.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>

namespace gemmery::platform {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds first_pause{1};
constexpr milliseconds longest_pause{25};

enum class Try { held, busy, impossible };

Try try_lock(const Descriptor& file) {
  if (file.calls().flock(file.number(), LOCK_EX | LOCK_NB) == 0) return Try::held;
  return errno == EWOULDBLOCK || errno == EINTR ? Try::busy : Try::impossible;
}

// Finds the holder in the kernel's list of locks, which names a file by its inode number.
std::string holder_of(const Descriptor& file) {
  struct stat facts {};
  if (file.calls().fstat(file.number(), &facts) != 0) return "an unknown process";
  const std::string inode = ":" + std::to_string(facts.st_ino) + " ";
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("FLOCK") == std::string::npos || line.find(inode) == std::string::npos) continue;
    if (line.find("->") != std::string::npos) continue;  // a waiter, not the holder
    std::istringstream words(line);
    std::string number, kind, advice, access, process;
    words >> number >> kind >> advice >> access >> process;
    return "process " + process;
  }
  return "an unknown process";
}

}  // namespace

std::optional<FileLock> FileLock::acquire(const Folder& folder, const std::string& name,
                                          const Patience& patience) {
  Attempt<Descriptor> file = folder.open_shared_file(name);
  if (!file) return std::nullopt;
  const Clock::time_point start = Clock::now();
  bool is_told = !patience.tell;
  Try outcome = try_lock(*file);
  for (milliseconds pause = first_pause; outcome == Try::busy;
       pause = std::min(pause * 2, longest_pause)) {
    const Clock::duration waited = Clock::now() - start;
    if (waited >= patience.most) return std::nullopt;
    if (patience.is_given_up && patience.is_given_up()) return std::nullopt;
    if (!is_told && waited >= patience.until_told) {
      patience.tell(std::chrono::duration_cast<std::chrono::seconds>(waited), holder_of(*file));
      is_told = true;
    }
    std::this_thread::sleep_for(pause);
    outcome = try_lock(*file);
  }
  if (outcome == Try::impossible) return std::nullopt;
  FileLock lock(*std::move(file));
  lock.waited_ = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept
    : file_(std::move(other.file_)), waited_(other.waited_) {
  other.file_.reset();
}

// Unlocked explicitly: a forked child that still has the file open would keep the lock.
FileLock::~FileLock() {
  if (file_) file_->calls().flock(file_->number(), LOCK_UN);
}

}  // namespace gemmery::platform
