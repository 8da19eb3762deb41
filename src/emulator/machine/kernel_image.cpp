// SPDX-License-Identifier: Apache-2.0
// Maps a pc to its place in the kernel's text.
#include "emulator/machine/kernel_image.hpp"

#include <algorithm>

namespace gemmery::emulator {

namespace {

// The line with spaces for tabs, without surrounding white space and the final semicolon.
std::string trimmed(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return {};
  std::string text = line.substr(first, line.find_last_not_of(" \t\r;") - first + 1);
  std::ranges::replace(text, '\t', ' ');
  return text;
}

}  // namespace

FaultPlace KernelImage::place_of(std::uint32_t pc) const {
  FaultPlace place;
  place.kernel = name;
  if (pc >= code.size() || code[pc].text == nullptr) return place;
  const Instruction& instruction = *code[pc].text;
  place.ptx_line = instruction.ptx_line;
  if (program == nullptr) return place;
  if (place.ptx_line >= 1 && place.ptx_line <= program->text.size())
    place.ptx_text = trimmed(program->text[place.ptx_line - 1]);
  if (instruction.source.file != 0 && instruction.source.file < program->files.size())
    place.source_file = program->files[instruction.source.file];
  place.source_line = instruction.source.line;
  if (instruction.call_site.file != 0 && instruction.call_site.file < program->files.size()) {
    place.call_file = program->files[instruction.call_site.file];
    place.call_line = instruction.call_site.line;
  }
  return place;
}

}  // namespace gemmery::emulator
