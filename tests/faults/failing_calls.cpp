// SPDX-License-Identifier: Apache-2.0
// One wrapper per call, which fails or calls the real function, according to the plan.
#include "tests/faults/failing_calls.hpp"

#include <cerrno>
#include <utility>

namespace gemmery::tests {
namespace {

FaultPlan plan;
bool has_plan = false;
long calls = 0;  // calls that the plan counts, since it was set
bool was_interrupted = false;

const platform::FileCalls& real() { return platform::system_file_calls(); }

// Whether the plan applies to this call.
bool strikes(const char* name) {
  if (has_plan && !plan.only.empty() && plan.only != name) return false;
  const long number = calls++;
  return has_plan && number >= plan.first && number - plan.first < plan.count;
}

// Sets errno and returns true if the call must fail.
bool fails(const char* name, bool& is_struck) {
  is_struck = strikes(name);
  if (!is_struck) return false;
  if (plan.fault == Fault::error) {
    errno = plan.error;
    return true;
  }
  if (plan.fault == Fault::interrupted) {
    was_interrupted = !was_interrupted;
    if (!was_interrupted) return false;
    errno = EINTR;
    return true;
  }
  return false;
}

template <class Call>
auto guarded(const char* name, Call&& call) -> decltype(call()) {
  bool is_struck = false;
  if (fails(name, is_struck)) return -1;
  return call();
}

int openat(int folder, const char* name, int flags, mode_t mode) {
  return guarded("openat", [&] { return real().openat(folder, name, flags, mode); });
}
// Always closes, even if it reports a failure, so that descriptors do not run out.
int close(int file) {
  bool is_struck = false;
  const bool is_failure = fails("close", is_struck);
  const int error = errno;
  const int result = real().close(file);
  if (is_failure) errno = error;
  return is_failure ? -1 : result;
}
ssize_t read(int file, void* bytes, std::size_t count) {
  bool is_struck = false;
  if (fails("read", is_struck)) return -1;
  return real().read(file, bytes, is_struck && plan.fault == Fault::half ? (count + 1) / 2 : count);
}
ssize_t write(int file, const void* bytes, std::size_t count) {
  bool is_struck = false;
  if (fails("write", is_struck)) return -1;
  return real().write(file, bytes,
                      is_struck && plan.fault == Fault::half ? (count + 1) / 2 : count);
}
int fsync(int file) {
  return guarded("fsync", [&] { return real().fsync(file); });
}
int lie_about(struct stat* facts, int result) {
  facts->st_size = 0x7fffffffffff;
  facts->st_ino ^= 0xff;
  facts->st_mtim.tv_sec += 1'000'000'000;
  return result;
}
int fstat(int file, struct stat* facts) {
  bool is_struck = false;
  if (fails("fstat", is_struck)) return -1;
  const int result = real().fstat(file, facts);
  return is_struck && plan.fault == Fault::lie ? lie_about(facts, result) : result;
}
int fstatat(int folder, const char* name, struct stat* facts, int flags) {
  bool is_struck = false;
  if (fails("fstatat", is_struck)) return -1;
  const int result = real().fstatat(folder, name, facts, flags);
  if (!is_struck || plan.fault != Fault::lie) return result;
  if (result == 0) return lie_about(facts, result);
  return result;
}
int mkdirat(int folder, const char* name, mode_t mode) {
  return guarded("mkdirat", [&] { return real().mkdirat(folder, name, mode); });
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  bool is_struck = false;
  if (fails("renameat", is_struck)) return -1;
  const int result = real().renameat(from_folder, from, to_folder, to);
  if (!is_struck || plan.fault != Fault::lie) return result;
  errno = ENOENT;  // as on a network file system that repeats a successful call
  return -1;
}
int unlinkat(int folder, const char* name, int flags) {
  return guarded("unlinkat", [&] { return real().unlinkat(folder, name, flags); });
}
int futimens(int file, const struct timespec times[2]) {
  return guarded("futimens", [&] { return real().futimens(file, times); });
}
int flock(int file, int operation) {
  return guarded("flock", [&] { return real().flock(file, operation); });
}
int fstatfs(int file, struct statfs* facts) {
  return guarded("fstatfs", [&] { return real().fstatfs(file, facts); });
}

constexpr platform::FileCalls table{openat,  close,    read,     write,    fsync, fstat,  fstatat,
                                    mkdirat, renameat, unlinkat, futimens, flock, fstatfs};

}  // namespace

const platform::FileCalls& failing_calls() { return table; }

void set_fault_plan(const FaultPlan& wanted) {
  plan = wanted;
  has_plan = true;
  calls = 0;
  was_interrupted = false;
}

void clear_fault_plan() {
  has_plan = false;
  calls = 0;
}

long calls_made() { return calls; }

const std::vector<std::string>& call_names() {
  static const std::vector<std::string> names{
      "openat",  "close",    "read",     "write",    "fsync", "fstat",  "fstatat",
      "mkdirat", "renameat", "unlinkat", "futimens", "flock", "fstatfs"};
  return names;
}

}  // namespace gemmery::tests
