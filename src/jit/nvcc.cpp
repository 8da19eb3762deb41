// SPDX-License-Identifier: Apache-2.0
// Finds and runs nvcc. The caller's variables and folders do not reach it: nvcc obeys
// NVCC_PREPEND_FLAGS, NVCC_APPEND_FLAGS, CPATH and CPLUS_INCLUDE_PATH, and finds headers in its
// working directory (each was seen to change the code).
#include "jit/nvcc.hpp"

#include <gemmery/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "jit/cancellation.hpp"
#include "jit/compile_log.hpp"
#include "jit/compile_outcome.hpp"
#include "jit/embedded.hpp"
#include "jit/toolkit_places.hpp"
#include "platform/environment.hpp"
#include "platform/private_folder.hpp"
#include "platform/process.hpp"

namespace gemmery::jit {
namespace {

using Clock = std::chrono::steady_clock;
using platform::PrivateFolder;
using platform::ProcessResult;

constexpr CompilerVersion oldest_nvcc{12, 4};

// --- the search ---------------------------------------------------------------------------------

std::vector<std::string> candidate_paths() {
  std::vector<std::string> candidates;
  for (const std::string& root : named_toolkits()) candidates.push_back(root + "/bin/nvcc");
  for (const std::string& folder : listed_folders("PATH")) candidates.push_back(folder + "/nvcc");
  candidates.push_back(usual_toolkit + std::string("/bin/nvcc"));
  return candidates;
}

// nvcc calls the host compiler, by name, as its preprocessor. It passes paths through a shell,
// which would interpret characters of a folder's name, so the paths are relative and plain.
std::vector<std::string> own_environment() {
  std::string path;
  for (const std::string& one : listed_folders("PATH")) path += one + ":";
  return {"PATH=" + path + "/usr/bin:/bin", "TMPDIR=../scratch", "LC_ALL=C"};
}

// The folder in which nvcc runs contains the source and nothing that an #include could find.
std::string make_source_folder(const PrivateFolder& folder, std::string_view source) {
  folder.write("scratch/empty", {});  // nvcc creates no folders
  folder.write("source/kernel.cu", source);
  return folder.path() + "/source";
}

// The text between two marks; empty if one of them does not occur.
std::string between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t found = text.find(begin);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = text.substr(found + begin.size());
  return std::string(rest.substr(0, rest.find(end)));
}

CompilerVersion parse_version(std::string_view text) {
  CompilerVersion version;
  const char* const end = text.data() + text.size();
  const auto [dot, failure] = std::from_chars(text.data(), end, version.major);
  if (failure != std::errc{} || dot == end) return {};
  std::from_chars(dot + 1, end, version.minor);
  return version;
}

// "Cuda compilation tools, release 13.0, V13.0.88", "Build cuda_13.0.r13.0/compiler.36424714_0"
std::optional<Nvcc> ask_version(const std::string& path) {
  const PrivateFolder folder("gemmery-nvcc");
  const ProcessResult result = platform::run_process({.words = {path, "--version"},
                                                      .environment = own_environment(),
                                                      .folder = make_source_folder(folder, {}),
                                                      .time_limit = std::chrono::seconds(60)});
  if (!result.is_success()) return std::nullopt;
  Nvcc nvcc{.path = path,
            .version = parse_version(between(result.output, "release ", ",")),
            .build = between(result.output, "Build ", "\n")};
  if (nvcc.version < oldest_nvcc) return std::nullopt;
  return nvcc;
}

[[noreturn]] void throw_nvcc_not_found(const std::string& tried) {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "nvcc",
               .expected = "nvcc of version " + to_string(oldest_nvcc) + " or later",
               .got = tried.empty() ? "no place to search: GEMMERY_HIDE_CUDA is set"
                                    : "looked for " + tried,
               .hint = "set CUDA_HOME to the absolute path of a toolkit, or unset "
                       "GEMMERY_COMPILER: NVRTC needs no toolkit"});
}

std::unique_ptr<Nvcc> search_nvcc() {
  std::string tried;
  if (platform::read_environment_flag("GEMMERY_HIDE_CUDA")) throw_nvcc_not_found(tried);
  for (const std::string& path : candidate_paths()) {
    const bool is_program = ::access(path.c_str(), X_OK) == 0;
    if (is_program) {
      if (std::optional<Nvcc> found = ask_version(path)) return std::make_unique<Nvcc>(*found);
    }
    tried += (tried.empty() ? "" : ", ") + path;
    if (is_program) tried += " (did not tell a version of " + to_string(oldest_nvcc) + " or later)";
  }
  throw_nvcc_not_found(tried);
}

// --- one compilation ----------------------------------------------------------------------------

ProcessResult run_nvcc(const Nvcc& nvcc, const CompileRequest& request,
                       const PrivateFolder& folder) {
  for (const EmbeddedHeader& header : embedded_headers())
    folder.write(std::string("headers/") + header.name, {header.text, header.size});
  std::vector<std::string> words{nvcc.path};
  for (std::string& option : nvcc_options(request)) words.push_back(std::move(option));
  words.insert(words.end(), {"-I", "../headers", "-o", "code", "kernel.cu"});
  const auto is_cancelled = [token = current_cancellation()] { return token.stop_requested(); };
  return platform::run_process({.words = std::move(words),
                                .environment = own_environment(),
                                .folder = make_source_folder(folder, request.source),
                                .time_limit = compile_time_limit(),
                                .is_cancelled = is_cancelled});
}

// Removes the folders of the source and the headers from a text.
std::string without_own_folders(std::string text, const PrivateFolder& folder) {
  for (const std::string& own : {folder.path() + "/headers", folder.path() + "/source",
                                 folder.path() + "/source/../headers", std::string("../headers")})
    text = without_folder(std::move(text), own);
  return text;
}

void check_end(const CompileRequest& request, const ProcessResult& result, const std::string& log) {
  switch (result.end) {
    case ProcessResult::End::timed_out:
      throw_late(request, log);
    case ProcessResult::End::cancelled:
      throw_cancelled(request);
    case ProcessResult::End::killed:
      throw_compile_error(request, "nvcc to end by itself",
                          "killed by signal " + std::to_string(result.code), log);
    case ProcessResult::End::exited:
      break;
  }
  if (result.code == 0) return;
  const std::string_view problem = find_problem_line(log);
  throw_compile_error(
      request, "source that compiles",
      problem.empty() ? "nvcc exited with " + std::to_string(result.code) : std::string(problem),
      log);
}

// nvcc reports an unknown target while it runs; NVRTC lists its targets beforehand.
void refuse_unknown_target(const CompileRequest& request, const Nvcc& nvcc,
                           const std::string& log) {
  if (log.find("Unsupported gpu architecture") == std::string::npos &&
      log.find("is not defined for option 'gpu-architecture'") == std::string::npos)
    return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "target",
               .expected = "one that nvcc " + to_string(nvcc.version) + " at " + nvcc.path +
                           " compiles for",
               .got = to_string(request.target),
               .hint = "a later nvcc may know it"});
}

std::string read_code(const CompileRequest& request, const PrivateFolder& folder,
                      const std::string& log) {
  std::optional<std::string> code = folder.read("source/code");
  if (!code || code->empty())
    throw_compile_error(request, "a file with code from nvcc", "none", log);
  return *std::move(code);
}

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void refuse_cpu(const CompileRequest& request, const Nvcc& nvcc) {
  if (!request.target.is_cpu()) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "target",
               .expected = "a GPU's, for nvcc " + to_string(nvcc.version),
               .got = "cpu"});
}

}  // namespace

const Nvcc& find_nvcc() {
  // Searches again if the last search failed or used other places. Never destroyed: others may
  // still compile with an earlier result.
  static std::mutex& searching = *new std::mutex;
  static auto& searched = *new std::vector<std::string>;
  static const Nvcc* found = nullptr;
  const std::lock_guard lock(searching);
  std::vector<std::string> candidates = candidate_paths();
  if (found != nullptr && candidates == searched) return *found;
  found = search_nvcc().release();
  searched = std::move(candidates);
  return *found;
}

CompilerStatus nvcc_status() noexcept {
  try {
    const Nvcc& nvcc = find_nvcc();
    return {.found = true, .path = nvcc.path, .version = to_string(nvcc.version), .searched = {}};
  } catch (const std::exception& error) {
    return {.found = false, .path = {}, .version = {}, .searched = error.what()};
  }
}

std::vector<std::string> nvcc_options(const CompileRequest& request) {
  const bool is_ptx = request.form == CodeForm::ptx;
  const std::string architecture = to_string(request.target).substr(3);  // behind "sm_"
  std::vector<std::string> options{
      is_ptx ? "--ptx" : "--cubin",
      "--gpu-architecture=" + ((is_ptx ? "compute_" : "sm_") + architecture),
      is_ptx ? "--generate-line-info" : "--ptxas-options=-v",
  };
  if (!names_standard(request.extra_options)) options.emplace_back("--std=c++20");
  options.insert(options.end(), request.extra_options.begin(), request.extra_options.end());
  return options;
}

CompiledCode compile_with_nvcc(const CompileRequest& request) {
  const Clock::time_point start = Clock::now();
  const Nvcc& nvcc = find_nvcc();
  refuse_blocked(CompilerKind::nvcc, nvcc.version);
  refuse_cpu(request, nvcc);
  const PrivateFolder folder("gemmery-nvcc");
  ProcessResult result = run_nvcc(nvcc, request, folder);
  CompiledCode code;
  code.log = without_own_folders(std::move(result.output), folder);
  refuse_unknown_target(request, nvcc, code.log);
  check_end(request, result, code.log);
  refuse_warnings(request, code.log);
  std::string bytes = read_code(request, folder, code.log);
  if (request.form == CodeForm::ptx) {
    code.ptx = without_own_folders(std::move(bytes), folder);
  } else {
    code.cubin = to_bytes(bytes);
  }
  code.compile_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  check_entry(request, code);
  return code;
}

}  // namespace gemmery::jit
