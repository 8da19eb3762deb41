// SPDX-License-Identifier: Apache-2.0
// The text of a key. A new ingredient of a compilation gets a line here.
#include "jit/cache_key.hpp"

#include <gemmery/version.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "jit/compiler_choice.hpp"
#include "jit/embedded.hpp"
#include "jit/nvcc.hpp"
#include "jit/nvrtc.hpp"

namespace gemmery::jit {
namespace {

std::string compiler_line() {
  if (chosen_compiler() == CompilerKind::nvcc)
    return fmt::format("nvcc {} {}", to_string(find_nvcc().version), find_nvcc().build);
  return "nvrtc " + nvrtc_identity();
}

std::vector<std::string> options_of(const CompileRequest& request) {
  return chosen_compiler() == CompilerKind::nvcc ? nvcc_options(request) : code_options(request);
}

// Text with its length, so that no text of one line can look like another line.
std::string counted(std::string_view text) { return fmt::format("{} {}", text.size(), text); }

// Options whose effect depends on their words alone.
constexpr std::array<std::string_view, 33> plain_options{"-D",
                                                         "--define-macro",
                                                         "-U",
                                                         "--undefine-macro",
                                                         "-std",
                                                         "--std",
                                                         "-maxrregcount",
                                                         "--maxrregcount",
                                                         "-use_fast_math",
                                                         "--use_fast_math",
                                                         "-fmad",
                                                         "--fmad",
                                                         "-ftz",
                                                         "--ftz",
                                                         "-prec-div",
                                                         "--prec-div",
                                                         "-prec-sqrt",
                                                         "--prec-sqrt",
                                                         "-lineinfo",
                                                         "--generate-line-info",
                                                         "-G",
                                                         "--device-debug",
                                                         "-default-device",
                                                         "--device-as-default-execution-space",
                                                         "-extra-device-vectorization",
                                                         "--extra-device-vectorization",
                                                         "-Xptxas",
                                                         "--ptxas-options",
                                                         "-w",
                                                         "--disable-warnings",
                                                         "--device-int128",
                                                         "--minimal",
                                                         "--split-compile"};

// "-DNAME=1", "--std=c++20"; the second word of a two-word option does not begin with '-'.
bool is_plain(std::string_view option) {
  const bool may_name_a_file = option.find('/') != std::string_view::npos ||
                               option.find("file") != std::string_view::npos ||
                               option.starts_with('@');
  if (may_name_a_file || !option.starts_with('-')) return !may_name_a_file;
  const std::string_view name = option.substr(0, option.find('='));
  return option.starts_with("-D") || option.starts_with("-U") ||
         std::ranges::find(plain_options, name) != plain_options.end();
}

}  // namespace

CacheKey key_of(const CompileRequest& request) {
  std::string lines = fmt::format("gemmery {} {}\ncompiler {}\ntarget {}\nform {}\n", version(),
                                  cache_format_version, compiler_line(), to_string(request.target),
                                  request.form == CodeForm::ptx ? "ptx" : "cubin");
  for (const std::string& option : options_of(request)) lines += "option " + counted(option) + "\n";
  lines += fmt::format("headers {}\nentry {}\nsource {}\n", embedded_digest(),
                       counted(request.entry), request.source.size());
  return {.conditions = std::move(lines), .source = request.source};
}

bool is_covered_by_key(const CompileRequest& request) {
  return !request.has_own_headers && std::ranges::all_of(request.extra_options, is_plain);
}

std::string_view condition(std::string_view conditions, std::string_view name) {
  while (!conditions.empty()) {
    const std::size_t end = std::min(conditions.find('\n'), conditions.size());
    const std::string_view line = conditions.substr(0, end);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ')
      return line.substr(name.size() + 1);
    conditions.remove_prefix(std::min(end + 1, conditions.size()));
  }
  return {};
}

}  // namespace gemmery::jit
