// SPDX-License-Identifier: Apache-2.0
// Machine code as text: finds nvdisasm, runs it on a cubin, and parses the instructions. Only for
// inspecting code; running kernels does not need it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gemmery::jit {

// One instruction: "@!P0", "HGMMA.64x256x16.F32.BF16", "R24, gdesc[UR8], R24, UP0".
struct SassInstruction {
  std::string_view guard;  // the predicate; empty if it always executes
  std::string_view mnemonic;
  std::string_view operands;
};

// Calls visit(instruction) for each instruction of a disassembly, in order; skips labels and
// directives. The views refer to the text.
void for_each_instruction(std::string_view sass,
                          const std::function<void(const SassInstruction&)>& visit);

// The number of occurrences of each mnemonic with its modifiers: {"HGMMA.64x256x16.F32.BF16", 4}.
using InstructionMix = std::map<std::string, int, std::less<>>;

InstructionMix count_instructions(std::string_view sass);

// All of a kind, whatever the modifiers: "HGMMA" includes "HGMMA.64x256x16.F32".
int count_of(const InstructionMix& mix, std::string_view kind);

class Disassembler {
 public:
  explicit Disassembler(std::string path) : path_(std::move(path)) {}

  const std::string& path() const noexcept { return path_; }

  // The text of a cubin. Throws Error (unavailable), with the program's own words, if nvdisasm
  // refuses the cubin, as one older than the compiler may.
  std::string disassemble(std::span<const std::byte> cubin) const;

  InstructionMix instruction_mix(std::span<const std::byte> cubin) const {
    return count_instructions(disassemble(cubin));
  }

 private:
  std::string path_;  // absolute
};

// The places of nvdisasm, in order: GEMMERY_NVDISASM (then no other); bin of CUDA_HOME, CUDA_PATH,
// CUDA_INSTALL_PATH; the folders of PATH; /usr/local/cuda/bin; the Python packages
// nvidia-cuda-nvdisasm and triton of PYTHONPATH, VIRTUAL_ENV and the system's Python. Paths that
// are not absolute are skipped. GEMMERY_HIDE_CUDA=1 leaves only the first. Throws Error
// (invalid_argument) for a relative GEMMERY_NVDISASM.
std::vector<std::string> disassembler_places();

// The first of these places that has the program.
std::optional<Disassembler> find_disassembler();

}  // namespace gemmery::jit
