// SPDX-License-Identifier: Apache-2.0
// Errors of compilations, the checks of what came out, and the sources that are kept of failures.
#include "jit/compile_outcome.hpp"

#include <gemmery/error.hpp>

#include <atomic>
#include <optional>
#include <utility>

#include "jit/cancellation.hpp"
#include "jit/compile_log.hpp"
#include "platform/environment.hpp"
#include "platform/private_folder.hpp"

namespace gemmery::jit {
namespace {

// A program that tries thousands of sources must not fill the disk with those that fail.
constexpr int most_kept_sources = 8;
constexpr std::size_t most_kept_bytes = 1U << 20;

// The path of a file with the source; empty where none could be written.
std::string keep_source(const std::string& source) noexcept {
  static std::atomic<int> kept = 0;
  if (source.size() > most_kept_bytes || kept.fetch_add(1) >= most_kept_sources) return {};
  try {
    platform::PrivateFolder folder("gemmery-failed");
    std::string path = folder.write("kernel.cu", source);
    folder.keep();
    return path;
  } catch (const std::exception&) {
    return {};
  }
}

// Emitted source begins with a comment that says which problems it is for.
std::string_view first_comment(std::string_view source) {
  if (!source.starts_with("// ")) return {};
  return source.substr(3, source.find('\n') - 3);
}

std::string subject_of(const CompileRequest& request) {
  std::string subject = request.entry + " for " + to_string(request.target);
  const std::string_view line = first_comment(request.source);
  if (!line.empty()) subject += " (" + std::string(line) + ")";
  return subject;
}

}  // namespace

std::chrono::seconds compile_time_limit() {
  return std::chrono::seconds(
      platform::read_environment_integer("GEMMERY_COMPILE_TIMEOUT", 1, 86400).value_or(300));
}

void throw_compile_error(const CompileRequest& request, std::string expected,
                         std::string_view problem, const std::string& log) {
  const std::string path = keep_source(request.source);
  throw Error({.kind = ErrorKind::compile,
               .operand = subject_of(request),
               .expected = std::move(expected),
               .got = std::string(problem),
               .hint = path.empty() ? std::string() : "the source is at " + path,
               .cause = log});
}

void throw_late(const CompileRequest& request, const std::string& log) {
  throw_compile_error(request, "compilation within the time that GEMMERY_COMPILE_TIMEOUT allows",
                      "no end", log);
}

void throw_cancelled(const CompileRequest& request) {
  throw Cancelled({.kind = ErrorKind::compile,
                   .operand = subject_of(request),
                   .expected = "a compilation that goes on to its end",
                   .got = "one that was cancelled"});
}

void refuse_warnings(const CompileRequest& request, const std::string& log) {
  if (const auto warning = find_warning(log))
    throw_compile_error(request, "source without warnings", *warning, log);
}

void check_entry(const CompileRequest& request, CompiledCode& code) {
  if (request.form == CodeForm::ptx) {
    if (code.ptx.find(".entry " + request.entry) != std::string::npos) return;
    throw_compile_error(request, "an entry of this name", "none in the PTX", code.log);
  }
  const std::optional<CodeUsage> usage = parse_usage(code.log, request.entry);
  if (!usage)
    throw_compile_error(request, "an entry of this name", "none in the compiler's report",
                        code.log);
  code.usage = *usage;
}

std::string without_folder(std::string text, const std::string& folder) {
  const std::string prefix = folder + "/";
  for (std::size_t found = text.find(prefix); found != std::string::npos;
       found = text.find(prefix, found))
    text.erase(found, prefix.size());
  return text;
}

}  // namespace gemmery::jit
