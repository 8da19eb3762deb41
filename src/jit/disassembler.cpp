// SPDX-License-Identifier: Apache-2.0
// nvdisasm: finds it, runs it, parses its text. The form of the text is that of nvdisasm 12.4 to
// 13.5 with --print-code.
#include "jit/disassembler.hpp"

#include <gemmery/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/trimmed.hpp"
#include "jit/toolkit_places.hpp"
#include "platform/environment.hpp"
#include "platform/private_folder.hpp"
#include "platform/process.hpp"

namespace gemmery::jit {
namespace {

namespace fs = std::filesystem;

constexpr const char* program_variable = "GEMMERY_NVDISASM";
constexpr const char* disassembler_name = "nvdisasm";
// Within a folder of Python packages.
constexpr std::array<const char*, 3> package_folders{"nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin",
                                                     "triton/backends/nvidia/bin"};

// --- places -------------------------------------------------------------------------------------

std::vector<std::string> program_folders() {
  std::vector<std::string> folders;
  for (const std::string& root : named_toolkits()) folders.push_back(root + "/bin");
  for (const std::string& folder : listed_folders("PATH")) folders.push_back(folder);
  folders.push_back(usual_toolkit + std::string("/bin"));
  for (const std::string& packages : python_folders()) {
    for (const char* const folder : package_folders) folders.push_back(packages + "/" + folder);
  }
  return folders;
}

bool is_program(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// --- text ---------------------------------------------------------------------------------------

constexpr std::string_view blanks = " \t";

// Removes and returns the first word.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of(blanks), text.size());
  const std::string_view word = text.substr(0, end);
  text = trimmed(text.substr(end), blanks);
  return word;
}

// " /*05d0*/ @!P0 BRA `(.L_x_2) ;"; nothing for lines of another form.
std::optional<SassInstruction> read_instruction(std::string_view line) {
  line = trimmed(line, blanks);
  const std::size_t address_end = line.find("*/");
  const std::size_t end = line.find(';');
  if (!line.starts_with("/*") || address_end > end || end == std::string_view::npos)
    return std::nullopt;
  std::string_view rest = trimmed(line.substr(address_end + 2, end - address_end - 2), blanks);
  SassInstruction instruction;
  if (rest.starts_with('@')) instruction.guard = take_word(rest);
  instruction.mnemonic = take_word(rest);
  instruction.operands = rest;
  return instruction;
}

}  // namespace

void for_each_instruction(std::string_view sass,
                          const std::function<void(const SassInstruction&)>& visit) {
  while (!sass.empty()) {
    const std::size_t end = std::min(sass.find('\n'), sass.size());
    if (const auto instruction = read_instruction(sass.substr(0, end))) visit(*instruction);
    sass.remove_prefix(std::min(end + 1, sass.size()));
  }
}

InstructionMix count_instructions(std::string_view sass) {
  InstructionMix mix;
  for_each_instruction(
      sass, [&](const SassInstruction& instruction) { ++mix[std::string(instruction.mnemonic)]; });
  return mix;
}

int count_of(const InstructionMix& mix, std::string_view kind) {
  int count = 0;
  for (const auto& [mnemonic, times] : mix) {
    const bool is_kind = mnemonic.starts_with(kind) &&
                         (mnemonic.size() == kind.size() || mnemonic[kind.size()] == '.');
    if (is_kind) count += times;
  }
  return count;
}

std::string Disassembler::disassemble(std::span<const std::byte> cubin) const {
  const platform::PrivateFolder folder("gemmery-disassembly");
  const std::string file =
      folder.write("kernel.cubin", {reinterpret_cast<const char*>(cubin.data()), cubin.size()});
  // Without data-flow analysis it takes a quarter less time and prints the same.
  const platform::ProcessResult result =
      platform::run_process({.words = {path_, "--print-code", "--no-dataflow", file},
                             .environment = {},
                             .folder = folder.path()});
  if (result.is_success()) return result.output;
  throw Error({.kind = ErrorKind::unavailable,
               .operand = path_,
               .expected = "a disassembly of the cubin",
               .got = result.end == platform::ProcessResult::End::exited
                          ? "exit code " + std::to_string(result.code)
                          : "no end, or one by a signal",
               .hint = std::string("it must not be older than the compiler; ") + program_variable +
                       " names another",
               .cause = result.output});
}

std::vector<std::string> disassembler_places() {
  if (const auto named = platform::read_environment_path(program_variable)) return {*named};
  if (platform::read_environment_flag("GEMMERY_HIDE_CUDA")) return {};
  std::vector<std::string> places;
  for (const std::string& folder : program_folders()) {
    const std::string place = folder + "/" + disassembler_name;
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
  }
  return places;
}

std::optional<Disassembler> find_disassembler() {
  const std::vector<std::string> places = disassembler_places();
  const auto found = std::ranges::find_if(places, is_program);
  return found == places.end() ? std::nullopt : std::optional<Disassembler>(std::in_place, *found);
}

}  // namespace gemmery::jit
