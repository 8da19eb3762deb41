// SPDX-License-Identifier: Apache-2.0
#include "cli/code_summary.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gemmery::cli {
namespace {

std::string design_text(const ArtifactSummary& kernel) {
  std::string text;
  for (const DesignField& field : kernel.design)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", field.name, field.value);
  return text;
}

std::string mix_text(const ArtifactSummary& kernel) {
  if (!kernel.no_instructions.empty()) return "not read: " + kernel.no_instructions;
  std::vector<std::pair<int, std::string>> by_count;
  for (const auto& [name, count] : kernel.instructions) by_count.emplace_back(-count, name);
  std::ranges::sort(by_count);
  std::string text;
  for (const auto& [negative, name] : by_count)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", -negative, name);
  return text;
}

void print_kernel(const ArtifactSummary& kernel, Output& output) {
  const auto line = [&](std::string_view field, std::string_view value) {
    output.write_prose(fmt::format("  {:<13} {}", field, value));
  };
  output.write_line(fmt::format("{} for {}", kernel.kernel_name, to_string(kernel.target)));
  for (const std::string& problem : kernel.problems) line("problem", problem);
  line("family",
       fmt::format("{}/{} version {}", kernel.provider, kernel.family, kernel.family_version));
  line("design", design_text(kernel));
  line("epilogue", kernel.epilogue);
  if (kernel.resources) {
    line("registers", fmt::format("{} of a thread", kernel.resources->registers));
    line("shared", fmt::format("{} bytes beside what a launch asks for",
                               kernel.resources->static_shared_bytes));
    line("spilled",
         fmt::format("{} bytes stored, {} loaded, {} of stack", kernel.resources->spill_store_bytes,
                     kernel.resources->spill_load_bytes, kernel.resources->stack_bytes));
  }
  const std::string ptx =
      kernel.ptx_bytes == 0 ? "" : fmt::format("PTX {} bytes, ", kernel.ptx_bytes);
  line("code", fmt::format("cubin {} bytes, {}compiled in {:.0f} ms", kernel.cubin_bytes, ptx,
                           kernel.compile_ms));
  line("instructions", mix_text(kernel));
  if (!kernel.refusal.empty()) line("NOT LOADED", kernel.refusal);
}

void write_kernel(const ArtifactSummary& kernel, Output& output) {
  Record record = {{"kernel_name", kernel.kernel_name}, {"target", to_string(kernel.target)},
                   {"problems", kernel.problems},       {"provider", kernel.provider},
                   {"family", kernel.family},           {"family_version", kernel.family_version},
                   {"design", design_text(kernel)},     {"epilogue", kernel.epilogue},
                   {"cubin_bytes", kernel.cubin_bytes}, {"ptx_bytes", kernel.ptx_bytes},
                   {"compile_ms", kernel.compile_ms}};
  const CodeResources resources = kernel.resources.value_or(CodeResources{});
  record["registers"] = resources.registers;
  record["static_shared_bytes"] = resources.static_shared_bytes;
  record["spill_store_bytes"] = resources.spill_store_bytes;
  record["spill_load_bytes"] = resources.spill_load_bytes;
  record["stack_bytes"] = resources.stack_bytes;
  record["instructions"] = kernel.instructions;
  record["no_instructions"] = kernel.no_instructions;
  record["refusal"] = kernel.refusal;
  output.write_record(record);
}

}  // namespace

void print_summary(const ArtifactSummary& kernel, Output& output) {
  if (output.is_text()) {
    print_kernel(kernel, output);
  } else {
    write_kernel(kernel, output);
  }
}

ExitCode print_file(const std::string& path, Output& output) {
  const ArtifactFileSummary file = inspect_artifacts(path);
  if (output.is_text()) {
    output.write_line(fmt::format("{}: {} kernel{}, {} bytes, made by gemmery {}", path,
                                  file.kernels.size(), file.kernels.size() == 1 ? "" : "s",
                                  file.bytes, file.library_version));
  }
  bool is_loadable = true;
  for (const ArtifactSummary& kernel : file.kernels) {
    print_summary(kernel, output);
    is_loadable = is_loadable && kernel.refusal.empty();
  }
  return is_loadable ? ExitCode::success : ExitCode::not_served;
}

}  // namespace gemmery::cli
