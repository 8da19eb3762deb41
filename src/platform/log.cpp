// SPDX-License-Identifier: Apache-2.0
// The user's sink, guarded by a lock, and the environment's sink, which needs no lock.
#include "platform/log.hpp"

#include <gemmery/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platform/environment.hpp"

namespace gemmery {
namespace {

constexpr int silent = 255;
constexpr std::array<std::string_view, 4> level_names{"debug", "info", "warning", "error"};

struct SinkState {
  std::mutex mutex;
  LogSink sink;
  std::atomic<int> least{silent};
};

// Leaked on purpose: threads of the user may log while static objects are being destroyed.
SinkState& sink_state() {
  static auto* const state = new SinkState;
  return *state;
}

// --- the environment's sink ---------------------------------------------------------------------

// Each message is one write at the end of a file: threads and processes do not mix their lines, and
// a forked child inherits no held lock.
struct EnvironmentSink {
  int file = -1;
  int least = silent;
  std::exception_ptr failure;  // why there is no sink although the environment asks for one
};

constexpr const char* level_variable = "GEMMERY_LOG_LEVEL";
constexpr const char* file_variable = "GEMMERY_LOG_FILE";

int parse_level(const std::string& word) {
  for (std::size_t level = 0; level < level_names.size(); ++level) {
    if (word == level_names[level]) return static_cast<int>(level);
  }
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = level_variable,
               .expected = fmt::format("{}", fmt::join(level_names, ", ")),
               .got = "\"" + word + "\"",
               .hint = "unset the environment variable or correct it"});
}

int open_log_file(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
  if (file >= 0) return file;
  throw Error({.kind = ErrorKind::io,
               .operand = file_variable,
               .expected = "a writable file in a folder that exists",
               .got = path + ": " + std::generic_category().message(errno),
               .hint = "unset the environment variable or correct it"});
}

EnvironmentSink open_environment_sink() {
  EnvironmentSink sink;
  try {
    const auto level = platform::read_environment(level_variable);
    const auto path = platform::read_environment_path(file_variable);
    if (!level && !path) return sink;
    const int least = level ? parse_level(*level) : static_cast<int>(LogLevel::info);
    sink.file = path ? open_log_file(*path) : STDERR_FILENO;
    sink.least = least;
  } catch (...) {
    sink.failure = std::current_exception();
  }
  return sink;
}

// The sink that the environment names, read at the first use. Leaked, as the user's sink is.
const EnvironmentSink& environment_sink() {
  static const auto* const sink = new EnvironmentSink(open_environment_sink());
  return *sink;
}

// Indents further lines of a message and escapes control characters, which file names may contain,
// so that a part of a message cannot look like another message.
std::string printable(std::string_view message) {
  std::string text;
  for (const char character : message) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '\n')
      text += "\n  ";
    else if ((code < 0x20 && character != '\t') || code == 0x7f)
      text += fmt::format("\\x{:02x}", code);
    else
      text += character;
  }
  return text;
}

void write_to_environment(const EnvironmentSink& sink, LogLevel level, std::string_view message) {
  using std::chrono::milliseconds;
  using std::chrono::system_clock;
  const auto now = system_clock::now();
  const auto fraction = std::chrono::duration_cast<milliseconds>(now.time_since_epoch()) % 1000;
  const std::string line = fmt::format(
      "{:%Y-%m-%dT%H:%M:%S}.{:03}Z gemmery[{}] {}: {}\n", fmt::gmtime(system_clock::to_time_t(now)),
      fraction.count(), getpid(), level_names[static_cast<std::size_t>(level)], printable(message));
  [[maybe_unused]] const ssize_t written = write(sink.file, line.data(), line.size());
}

}  // namespace

void set_log_sink(LogSink sink, LogLevel least) {
  SinkState& state = sink_state();
  const std::scoped_lock lock(state.mutex);
  state.least = sink ? static_cast<int>(least) : silent;
  state.sink = std::move(sink);
}

namespace platform {

void check_log_environment() {
  if (const std::exception_ptr& failure = environment_sink().failure)
    std::rethrow_exception(failure);
}

bool is_logged(LogLevel level) noexcept {
  const int number = static_cast<int>(level);
  return number >= sink_state().least.load(std::memory_order_relaxed) ||
         number >= environment_sink().least;
}

void log(LogLevel level, std::string_view message) noexcept {
  try {
    const EnvironmentSink& environment = environment_sink();
    if (static_cast<int>(level) >= environment.least)
      write_to_environment(environment, level, message);
    SinkState& state = sink_state();
    if (static_cast<int>(level) < state.least.load(std::memory_order_relaxed)) return;
    const std::scoped_lock lock(state.mutex);
    if (state.sink) state.sink(level, message);
  } catch (...) {  // a failing sink must not fail the work that it reports
  }
}

}  // namespace platform
}  // namespace gemmery
