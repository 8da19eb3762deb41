// SPDX-License-Identifier: Apache-2.0
#include "cli/emulated_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <thread>

#include <gemmery/error.hpp>
#include <nlohmann/json.hpp>

namespace gemmery::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

[[noreturn]] void refuse(std::string operand, std::string expected, std::string got,
                         std::string hint = {}) {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

// --- the libraries ------------------------------------------------------------------------------

// Beside the program in a build tree, or in the library folder of an installation.
std::string find_libraries() {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  std::string tried;
  for (const char* const folder : {"lib/gemmery/emulated", GEMMERY_LIBRARIES_FROM_PROGRAM}) {
    const fs::path candidate = (program / folder).lexically_normal();
    if (fs::exists(candidate / "libcuda.so.1")) return candidate.string();
    tried += (tried.empty() ? "" : ", ") + candidate.string();
  }
  refuse("the emulator's libcuda.so.1", "it in " + tried, "no such file",
         "cmake --install has it, a Python package does not");
}

// --- the environment ----------------------------------------------------------------------------

// Those of this process, with others set.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& set) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string name(*line, std::strcspn(*line, "="));
    if (!set.contains(name)) lines.emplace_back(*line);
  }
  for (const auto& [name, value] : set) lines.push_back(name + "=" + value);
  return lines;
}

std::string loader_path(const std::string& folder) {
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  return path == nullptr || *path == '\0' ? folder : folder + ":" + path;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// --- the process --------------------------------------------------------------------------------

// A file that is removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() : path_((fs::temp_directory_path() / "gemmery-emulate-XXXXXX").string()) {
    const int file = mkstemp(path_.data());
    if (file < 0) refuse(path_, "a file that can be written", std::strerror(errno));
    close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

// What the handler below reads and writes.
volatile std::sig_atomic_t child_in_wait = 0;
volatile std::sig_atomic_t signal_to_us = 0;

void pass_on(int signal) {
  signal_to_us = signal;
  if (child_in_wait > 0) kill(static_cast<pid_t>(child_in_wait), signal);
}

// While it lives, signals that would end this process are passed on to the program that is run,
// which then ends first.
class SignalsPassedOn {
 public:
  SignalsPassedOn() {
    signal_to_us = 0;
    struct sigaction action {};
    action.sa_handler = pass_on;
    for (std::size_t index = 0; index < signals.size(); ++index)
      install(signals[index], action, before_[index]);
  }
  SignalsPassedOn(const SignalsPassedOn&) = delete;
  SignalsPassedOn& operator=(const SignalsPassedOn&) = delete;
  ~SignalsPassedOn() {
    child_in_wait = 0;
    for (std::size_t index = 0; index < signals.size(); ++index)
      sigaction(signals[index], &before_[index], nullptr);
  }

  void go_to(pid_t child) const noexcept {
    child_in_wait = child;
    if (signal_to_us != 0) kill(child, signal_to_us);
  }
  int received() const noexcept { return signal_to_us; }

 private:
  // A signal that is ignored stays so.
  static void install(int signal, const struct sigaction& action, struct sigaction& before) {
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }

  static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, signals.size()> before_{};
};

// Turns this process, which has just been forked, into the program; ends it if that fails. It ends
// with `parent`, even one that is killed.
[[noreturn]] void become_program(char* const* words, char* const* environment, bool keeps_output,
                                 pid_t parent, int errors) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (keeps_output) dup2(STDERR_FILENO, STDOUT_FILENO);
  std::signal(SIGPIPE, SIG_DFL);  // which this program ignores
  execvpe(words[0], words, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(errors, &error, sizeof error);
  _exit(127);
}

pid_t start(const EmulatedProcess& process, std::vector<std::string> environment) {
  std::vector<std::string> words = process.words;
  const std::vector<char*> arguments = pointers_to(words), variables = pointers_to(environment);
  std::array<int, 2> errors{};
  if (pipe2(errors.data(), O_CLOEXEC) != 0) refuse("a pipe", "one", std::strerror(errno));
  const pid_t parent = getpid(), child = fork();
  if (child == 0)
    become_program(arguments.data(), variables.data(), process.keeps_output_free, parent,
                   errors[1]);
  int error = child < 0 ? errno : 0;
  close(errors[1]);
  if (child > 0 && read(errors[0], &error, sizeof error) > 0) waitpid(child, nullptr, 0);
  close(errors[0]);
  if (error != 0) refuse(words.front(), "a program that can be started", std::strerror(error));
  return child;
}

// Waits for the end; kills it once the time is over. Returns the status of waitpid.
int wait_for(pid_t child, double timeout_s, bool& timed_out) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  int status = 0;
  while (true) {
    const bool has_limit = timeout_s > 0 && !timed_out;
    const pid_t ended = waitpid(child, &status, has_limit ? WNOHANG : 0);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (!has_limit) continue;
    if (Clock::now() >= end) {
      timed_out = true;
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// --- what was recorded --------------------------------------------------------------------------

EmulatedPlace place_of(const Json& record) {
  EmulatedPlace place;
  record.at("kernel").get_to(place.kernel);
  record.at("block").get_to(place.block);
  record.at("warp").get_to(place.warp);
  record.at("lane").get_to(place.lane);
  record.at("ptx_line").get_to(place.ptx_line);
  record.at("ptx").get_to(place.ptx_text);
  record.at("file").get_to(place.source_file);
  record.at("line").get_to(place.source_line);
  record.at("call_file").get_to(place.call_file);
  record.at("call_line").get_to(place.call_line);
  return place;
}

EmulationFinding finding_of(const Json& record) {
  return {.kind = record.at("kind"),
          .message = record.at("message"),
          .place = place_of(record.at("at")),
          .other = place_of(record.at("with")),
          .report = record.at("report"),
          .is_by_the_letter = record.at("by_the_letter"),
          .ended_block = record.at("ended_block"),
          .count = 1,
          .seeds = {record.at("seed").get<std::uint64_t>()},
          .rule = {}};
}

// Records of one process and of those that it started: one finding for each place.
class RecordReader {
 public:
  explicit RecordReader(EmulatedProcessResult& result) : result_(result) {}
  void read(const Json& record);

 private:
  std::size_t index_of(const std::string& place);

  EmulatedProcessResult& result_;
};

std::size_t RecordReader::index_of(const std::string& place) {
  return static_cast<std::size_t>(std::ranges::find(result_.places, place) -
                                  result_.places.begin());
}

void RecordReader::read(const Json& record) {
  const std::string what = record.at("record");
  if (what == "refusal") {
    result_.refusals.push_back(record.at("text"));
  } else if (what == "summary") {
    result_.launches += record.at("launches").get<std::uint64_t>();
    result_.warp_instructions += record.at("warp_instructions").get<std::uint64_t>();
    result_.lane_instructions += record.at("lane_instructions").get<std::uint64_t>();
  } else if (what == "finding" && index_of(record.at("place")) == result_.places.size()) {
    result_.places.push_back(record.at("place"));
    result_.findings.push_back(finding_of(record));
  } else if (what == "count") {
    const std::size_t index = index_of(record.at("place"));
    if (index < result_.findings.size()) {
      std::uint64_t& count = result_.findings[index].count;
      count = std::max(count, record.at("count").get<std::uint64_t>());
    }
  }
}

void read_records(const std::string& file, EmulatedProcessResult& result) {
  std::ifstream stream(file);
  RecordReader reader(result);
  for (std::string line; std::getline(stream, line);) {
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_discarded()) reader.read(record);  // a line of a process that was killed
  }
}

}  // namespace

EmulatedProcessResult run_emulated(const EmulatedProcess& process) {
  const TemporaryFile record;
  const std::string folder = find_libraries();
  EmulatedProcessResult result;
  const SignalsPassedOn signals;
  const pid_t child =
      start(process, environment_with({{"LD_LIBRARY_PATH", loader_path(folder)},
                                       {"GEMMERY_EMULATED_DEVICES", process.devices},
                                       {"GEMMERY_EMULATOR_SEED", std::to_string(process.seed)},
                                       {"GEMMERY_EMULATION_RECORD", record.path()}}));
  signals.go_to(child);
  const int status = wait_for(child, process.timeout_s, result.timed_out);
  result.interrupted_by = signals.received();
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  read_records(record.path(), result);
  return result;
}

bool is_program(const std::string& word) {
  if (word.ends_with(".cu") || word.ends_with(".ptx")) return false;
  const auto can_start = [](const fs::path& file) {
    std::error_code error;
    return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
  };
  if (word.find('/') != std::string::npos) return can_start(word);
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (!path.empty()) {
    const std::size_t end = path.find(':');
    if (can_start(fs::path(path.substr(0, end)) / word)) return true;
    if (end == std::string_view::npos) return false;
    path.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace gemmery::cli
