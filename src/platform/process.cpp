// SPDX-License-Identifier: Apache-2.0
// Starts a program with posix_spawn and reads its output until it ends, times out or is cancelled.
#include "platform/process.hpp"

#include <gemmery/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace gemmery::platform {
namespace {

using Clock = std::chrono::steady_clock;

// The longest delay until a cancellation is noticed.
constexpr std::chrono::milliseconds tick{50};

[[noreturn]] void throw_not_started(const std::string& program, int failure) {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = program,
               .expected = "a program that can be started",
               .got = std::strerror(failure)});
}

void require_absolute(const std::string& path, const char* role) {
  if (path.starts_with('/')) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = role,
               .expected = "an absolute path",
               .got = "\"" + path + "\""});
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int get() const noexcept { return descriptor_; }
  void close() noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
};

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  // Standard input empty, one pipe for all output, no other file of ours.
  void arrange(int output, const std::string& folder) {
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
  }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// A process group of its own, so that processes which the program starts are killed with it; signal
// handling as in a fresh process.
class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

pid_t start(const ProcessRequest& request, int output) {
  FileActions actions;
  actions.arrange(output, request.folder);
  const Attributes attributes;
  pid_t child = 0;
  const int failure =
      posix_spawn(&child, request.words.front().c_str(), actions.get(), attributes.get(),
                  pointers_to(request.words).data(), pointers_to(request.environment).data());
  if (failure != 0) throw_not_started(request.words.front(), failure);
  return child;
}

// Reads what the pipe holds now; false at its end.
bool read_available(int pipe, std::size_t limit, std::string& output) {
  std::array<char, 65536> buffer;
  const ssize_t bytes = ::read(pipe, buffer.data(), buffer.size());
  if (bytes < 0) return errno == EINTR || errno == EAGAIN;
  const std::size_t room = limit - std::min(limit, output.size());
  output.append(buffer.data(), std::min(room, static_cast<std::size_t>(bytes)));
  return bytes > 0;
}

// The program's exit status, if it has ended. A process that ignores SIGCHLD cannot read the status
// of its children: the end then counts as success, and the caller must judge by the output.
std::optional<ProcessResult> find_end(pid_t child) {
  int status = 0;
  const pid_t found = ::waitpid(child, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return std::nullopt;
  if (found < 0) return ProcessResult{};
  if (WIFSIGNALED(status))
    return ProcessResult{.end = ProcessResult::End::killed, .code = WTERMSIG(status), .output = {}};
  return ProcessResult{.code = WEXITSTATUS(status), .output = {}};
}

void kill_group(pid_t child) {
  ::kill(-child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

class Watch {
 public:
  Watch(const ProcessRequest& request, pid_t child, int pipe)
      : request_(request),
        child_(child),
        pipe_(pipe),
        deadline_(Clock::now() + request.time_limit) {}

  ProcessResult follow() {
    for (;;) {
      wait_for_output();
      // Checked before the last of the output is read: a program that has ended has written
      // everything.
      std::optional<ProcessResult> ended = find_end(child_);
      if (ended) {
        while (is_open_ && has_output(0)) read();
        return with_output(*ended);
      }
      if (request_.is_cancelled && request_.is_cancelled())
        return stop(ProcessResult::End::cancelled);
      if (Clock::now() > deadline_) return stop(ProcessResult::End::timed_out);
    }
  }

 private:
  bool has_output(int timeout_ms) const {
    pollfd poll{.fd = pipe_, .events = POLLIN, .revents = 0};
    return ::poll(&poll, 1, timeout_ms) > 0;
  }
  void read() { is_open_ = read_available(pipe_, request_.output_limit, output_); }

  void wait_for_output() {
    constexpr int after_the_end = 2;  // milliseconds from the end of output to the program's end
    if (!is_open_) {
      ::poll(nullptr, 0, after_the_end);
    } else if (has_output(static_cast<int>(tick.count()))) {
      read();
    }
  }

  ProcessResult stop(ProcessResult::End end) {
    kill_group(child_);
    return with_output({.end = end, .code = SIGKILL, .output = {}});
  }
  ProcessResult with_output(ProcessResult result) {
    result.output = std::move(output_);
    return result;
  }

  const ProcessRequest& request_;
  pid_t child_;
  int pipe_;
  Clock::time_point deadline_;
  bool is_open_ = true;
  std::string output_;
};

}  // namespace

ProcessResult run_process(const ProcessRequest& request) {
  require_absolute(request.words.empty() ? std::string() : request.words.front(), "program");
  require_absolute(request.folder, "folder");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_not_started(request.words.front(), errno);
  const File output(ends[0]);
  File input(ends[1]);
  const pid_t child = start(request, input.get());
  input.close();
  return Watch(request, child, output.get()).follow();
}

}  // namespace gemmery::platform
