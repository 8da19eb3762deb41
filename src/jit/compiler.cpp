// SPDX-License-Identifier: Apache-2.0
// One compilation: options, program, time limit, log, machine code.
#include "jit/compiler.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stop_token>

#include "jit/cancellation.hpp"
#include "jit/compile_log.hpp"
#include "jit/compile_outcome.hpp"
#include "jit/compiler_choice.hpp"
#include "jit/embedded.hpp"
#include "jit/exit_guard.hpp"
#include "jit/fork_guard.hpp"
#include "jit/nvcc.hpp"
#include "jit/nvrtc.hpp"
#include "platform/environment.hpp"
#include "platform/log.hpp"
#include "platform/parallel.hpp"

namespace gemmery::jit {
namespace {

using Clock = std::chrono::steady_clock;

// The name of the source in the compiler's messages. It is always the same, since it may show in
// the machine code.
constexpr const char* source_name = "kernel.cu";

// --- how many at a time -------------------------------------------------------------------------

// A compilation needs tens of megabytes, so many simultaneous requests must not become as many
// compilations.
class JobSlot {
 public:
  explicit JobSlot(const CompileRequest& request) {
    Jobs& all = jobs();
    const std::stop_token cancellation = current_cancellation();
    std::unique_lock lock(all.mutex);
    const auto is_free = [&all] { return all.running < all.limit; };
    if (!all.one_ended.wait(lock, cancellation, is_free) || cancellation.stop_requested())
      throw_cancelled(request);
    ++all.running;
  }
  ~JobSlot() {
    Jobs& all = jobs();
    {
      const std::lock_guard lock(all.mutex);
      --all.running;
    }
    all.one_ended.notify_all();  // notify_one might wake a cancelled one
  }
  JobSlot(const JobSlot&) = delete;
  JobSlot& operator=(const JobSlot&) = delete;

 private:
  struct Jobs {
    std::mutex mutex;
    std::condition_variable_any one_ended;
    int limit = job_limit();
    int running = 0;
  };
  static Jobs& jobs() {
    static Jobs* const instance = new Jobs;
    return *instance;
  }
};

// --- a program of NVRTC -------------------------------------------------------------------------

struct HeaderList {
  std::vector<const char*> names;
  std::vector<const char*> texts;
};

const HeaderList& header_list() {
  static const HeaderList* const instance = [] {
    auto* const list = new HeaderList;
    for (const EmbeddedHeader& header : embedded_headers()) {
      list->names.push_back(header.name);
      list->texts.push_back(header.text);
    }
    return list;
  }();
  return *instance;
}

class Program {
 public:
  Program(const NvrtcApi& api, const std::string& source) : api_(api) {
    const HeaderList& headers = header_list();
    check(api_.nvrtcCreateProgram(&handle_, source.c_str(), source_name,
                                  static_cast<int>(headers.names.size()), headers.texts.data(),
                                  headers.names.data()),
          "nvrtcCreateProgram");
  }
  ~Program() { api_.nvrtcDestroyProgram(&handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtc::Result compile(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    return api_.nvrtcCompileProgram(handle_, static_cast<int>(words.size()), words.data());
  }

  // When to give up a compilation.
  struct Limits {
    Clock::time_point deadline;
    std::stop_token cancellation;
  };

  // The limits must outlive the compilation. Libraries without this call cannot be interrupted.
  void keep_to(const Limits& limits) {
    if (api_.nvrtcSetFlowCallback == nullptr) return;
    const auto is_over = [](void* payload, void*) -> int {
      const Limits& own = *static_cast<const Limits*>(payload);
      return InsideNvrtc::must_leave() || own.cancellation.stop_requested() ||
             Clock::now() > own.deadline;
    };
    api_.nvrtcSetFlowCallback(handle_, is_over, const_cast<Limits*>(&limits));
  }

  std::string log() const {
    std::size_t bytes = 0;
    check(api_.nvrtcGetProgramLogSize(handle_, &bytes), "nvrtcGetProgramLogSize");
    std::string text(bytes, '\0');
    if (bytes > 0) check(api_.nvrtcGetProgramLog(handle_, text.data()), "nvrtcGetProgramLog");
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  std::string ptx() const {
    std::size_t bytes = 0;  // including the terminating zero
    check(api_.nvrtcGetPTXSize(handle_, &bytes), "nvrtcGetPTXSize");
    std::string text(bytes, '\0');
    check(api_.nvrtcGetPTX(handle_, text.data()), "nvrtcGetPTX");
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  std::vector<std::byte> cubin() const {
    std::size_t bytes = 0;
    check(api_.nvrtcGetCUBINSize(handle_, &bytes), "nvrtcGetCUBINSize");
    std::vector<std::byte> code(bytes);
    check(api_.nvrtcGetCUBIN(handle_, reinterpret_cast<char*>(code.data())), "nvrtcGetCUBIN");
    return code;
  }

 private:
  void check(nvrtc::Result result, const char* call) const {
    if (result == nvrtc::Result::success) return;
    throw Error({.kind = result == nvrtc::Result::out_of_memory ? ErrorKind::out_of_memory
                                                                : ErrorKind::compile,
                 .operand = call,
                 .expected = {},
                 .got = api_.nvrtcGetErrorString(result)});
  }

  const NvrtcApi& api_;
  nvrtc::Program handle_ = nullptr;
};

// --- what may go wrong --------------------------------------------------------------------------

void check_target(const Nvrtc& compiler, Target target) {
  if (!target.is_cpu() && compiler.knows(target)) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "target",
               .expected = "one that NVRTC " + to_string(compiler.version) + " at " +
                           compiler.path + " compiles for",
               .got = to_string(target),
               .hint = "a later NVRTC may know it"});
}

void check_outcome(const NvrtcApi& api, const CompileRequest& request, nvrtc::Result result,
                   const std::string& log) {
  if (result == nvrtc::Result::cancelled) {
    if (current_cancellation().stop_requested() || is_process_ending()) throw_cancelled(request);
    throw_late(request, log);
  }
  if (result != nvrtc::Result::success) {
    const std::string_view problem =
        log.empty() ? std::string_view(api.nvrtcGetErrorString(result)) : find_problem_line(log);
    throw_compile_error(request, "source that compiles", problem, log);
  }
  refuse_warnings(request, log);
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// NVRTC prefixes the names of in-memory files with the working directory.
std::string without_working_directory(std::string ptx) {
  std::error_code failure;
  const std::string folder = std::filesystem::current_path(failure).string();
  if (failure) return ptx;
  // The quote makes sure that only file names are touched.
  for (const std::string prefix = "\"" + folder + "/";;) {
    const std::size_t found = ptx.find(prefix);
    if (found == std::string::npos) return ptx;
    ptx.erase(found + 1, prefix.size() - 1);
  }
}

// "compute_90a": the virtual architecture for which PTX is made.
std::string virtual_architecture(Target target) {
  return "compute_" + to_string(target).substr(std::string_view("sm_").size());
}

CompiledCode compile_with_nvrtc(const CompileRequest& request) {
  const Nvrtc& compiler = find_nvrtc();
  refuse_blocked(CompilerKind::nvrtc, compiler.version);
  check_target(compiler, request.target);
  const Clock::time_point start = Clock::now();
  const Program::Limits limits{start + compile_time_limit(), current_cancellation()};
  const InsideNvrtc inside;
  Program program(compiler.api, request.source);
  program.keep_to(limits);
  const nvrtc::Result result = program.compile(compile_options(request));
  CompiledCode code;
  code.log = program.log();
  check_outcome(compiler.api, request, result, code.log);
  if (request.form == CodeForm::ptx) {
    code.ptx = without_working_directory(program.ptx());
  } else {
    code.cubin = program.cubin();
  }
  code.compile_ms = milliseconds_since(start);
  check_entry(request, code);
  return code;
}

// Compilers end the source, and options, at a null character.
void refuse_null_characters(const CompileRequest& request) {
  const auto check = [](std::string_view role, std::string_view text) {
    const std::size_t at = text.find('\0');
    if (at == std::string_view::npos) return;
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = std::string(role),
                 .expected = "text without a null character",
                 .got = "one at byte " + std::to_string(at)});
  };
  check("source", request.source);
  check("entry", request.entry);
  for (const std::string& option : request.extra_options) check("compiler option", option);
}

}  // namespace

int job_limit() {
  const auto asked = platform::read_environment_integer("GEMMERY_NUM_COMPILE_JOBS", 1, 1024);
  return asked ? static_cast<int>(*asked) : platform::thread_count();
}

std::vector<std::string> code_options(const CompileRequest& request) {
  const bool is_ptx = request.form == CodeForm::ptx;
  std::vector<std::string> options{
      "--gpu-architecture=" +
          (is_ptx ? virtual_architecture(request.target) : to_string(request.target)),
      is_ptx ? "--generate-line-info"  // for reports by source line
             : "--ptxas-options=-v",   // resources of the entry, in the log
  };
  if (!names_standard(request.extra_options)) options.emplace_back("--std=c++20");
  if (!request.has_own_headers) {
    // Otherwise the working directory is searched, too.
    options.emplace_back("--no-source-include");
    // Leaves out the CUDA runtime's declarations, which none of our sources uses: a fifth of the
    // time of an empty kernel, for the same code (NVRTC 12.4 and later).
    options.emplace_back("--minimal");
  }
  options.insert(options.end(), request.extra_options.begin(), request.extra_options.end());
  return options;
}

std::vector<std::string> compile_options(const CompileRequest& request) {
  std::vector<std::string> options = code_options(request);
  // From this version on NVRTC has a cache of its own, which would hide the cost of compiling.
  constexpr CompilerVersion first_with_cache{12, 9};
  if (find_nvrtc().version >= first_with_cache) options.emplace_back("--no-cache");
  return options;
}

bool names_standard(const std::vector<std::string>& options) {
  return std::ranges::any_of(options, [](std::string_view option) {
    return option.starts_with("-std=") || option.starts_with("--std=");
  });
}

CompiledCode compile(const CompileRequest& request) {
  refuse_null_characters(request);
  const CompilationInFlight in_flight;
  const JobSlot slot(request);
  CompiledCode code = chosen_compiler() == CompilerKind::nvcc ? compile_with_nvcc(request)
                                                              : compile_with_nvrtc(request);
  if (platform::is_logged(LogLevel::debug)) {
    platform::log(LogLevel::debug, "compiled " + request.entry + " for " +
                                       to_string(request.target) + " in " +
                                       std::to_string(code.compile_ms) + " ms");
  }
  return code;
}

}  // namespace gemmery::jit
