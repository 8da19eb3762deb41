// SPDX-License-Identifier: Apache-2.0
// Errors of compilations, checks of the result, and the sources that are kept of failures.
#include "jit/compile_outcome.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "jit/cancellation.hpp"
#include "jit/compile_log.hpp"
#include "platform/environment.hpp"
#include "platform/private_folder.hpp"

namespace gemmery::jit {
namespace {

// A program that tries thousands of sources must not fill the disk with failing ones.
constexpr int most_kept_sources = 8;
constexpr std::size_t most_kept_bytes = 1U << 20;

// The path of a file with the source; empty if none could be written.
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

// Emitted source begins with a comment that names the problems it is for.
std::string_view first_comment(std::string_view source) {
  if (!source.starts_with("// ")) return {};
  return source.substr(3, source.find('\n') - 3);
}

// "first, second"
std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string subject_of(const CompileRequest& request) {
  std::string subject = request.entry + " for " + to_string(request.target);
  const std::string_view line = first_comment(request.source);
  if (!line.empty()) subject += " (" + std::string(line) + ")";
  return subject;
}

[[noreturn]] void throw_missing_entry(const CompileRequest& request,
                                      const std::vector<std::string>& entries,
                                      const std::string& log) {
  const bool is_mangled =
      std::ranges::any_of(entries, [](const std::string& name) { return name.starts_with("_Z"); });
  throw Error({.kind = ErrorKind::compile,
               .operand = subject_of(request),
               .expected = "source that defines the __global__ function " + request.entry,
               .got = entries.empty() ? "none at all" : "only " + listed(entries),
               .hint = is_mangled ? "declare it extern \"C\": the names are those of C++" : "",
               .cause = log});
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
               .cause = errors_first(log, problem)});
}

void throw_late(const CompileRequest& request, const std::string& log) {
  throw_compile_error(request, "compilation within the time that GEMMERY_COMPILE_TIMEOUT allows",
                      "no end", log);
}

void throw_cancelled(const CompileRequest& request) {
  throw Cancelled({.kind = ErrorKind::compile,
                   .operand = subject_of(request),
                   .expected = "a compilation that runs to its end",
                   .got = "one that was cancelled"});
}

void refuse_warnings(const CompileRequest& request, const std::string& log) {
  if (const auto warning = find_warning(log))
    throw_compile_error(request, "source without warnings", *warning, log);
}

void check_entry(const CompileRequest& request, CompiledCode& code) {
  if (request.form == CodeForm::ptx) {
    const std::vector<std::string> entries = entries_of_ptx(code.ptx);
    // An empty name stands for all entries of a module.
    const bool has_entry =
        request.entry.empty() ? !entries.empty() : std::ranges::count(entries, request.entry) != 0;
    if (!has_entry) throw_missing_entry(request, entries, code.log);
    return;
  }
  const std::optional<CodeUsage> usage = parse_usage(code.log, request.entry);
  if (!usage) throw_missing_entry(request, entries_of_log(code.log), code.log);
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
