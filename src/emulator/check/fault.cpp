// SPDX-License-Identifier: Apache-2.0
// The messages of faults.
#include "emulator/check/fault.hpp"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace gemmery::emulator {
namespace {

constexpr std::array kind_names{
    "out of bounds",
    "misaligned address",
    "read of unwritten memory",
    "unwritten register",
    "race",
    "missing proxy fence",
    "wgmma in flight",
    "mbarrier misuse",
    "barrier misuse",
    "divergent barrier",
    "early exit",
    "deadlock",
    "time out",
    "tensor map",
    "illegal instruction",
    "trap",
};
static_assert(kind_names.size() == static_cast<std::size_t>(FaultKind::trap) + 1);

void append(std::string& text, const std::string& part) {
  if (part.empty()) return;
  if (!text.empty()) text += ", ";
  text += part;
}

std::string cta_text(const std::array<std::uint32_t, 3>& cta) {
  return "CTA (" + std::to_string(cta[0]) + "," + std::to_string(cta[1]) + "," +
         std::to_string(cta[2]) + ")";
}

// Each line of `text`, with `before` in front of it.
std::string indented(const std::string& text, const char* before) {
  std::string lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    lines += before + text.substr(begin, end - begin);
    begin = end + 1;
  }
  return lines;
}

}  // namespace

const char* name(FaultKind kind) noexcept { return kind_names[static_cast<std::size_t>(kind)]; }

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return text == nullptr ? name : std::string(text.get());
}

std::string to_string(const FaultPlace& place) {
  std::string text;
  if (!place.kernel.empty())
    text = "kernel " + demangled(place.kernel) + ", " + cta_text(place.cta);
  if (place.warp >= 0) append(text, "warp " + std::to_string(place.warp));
  if (place.lane >= 0) append(text, "lane " + std::to_string(place.lane));
  if (place.ptx_line != 0) append(text, "PTX line " + std::to_string(place.ptx_line));
  if (!place.ptx_text.empty()) {
    const std::size_t begin = place.ptx_text.find_first_not_of(" \t");
    const std::size_t end = place.ptx_text.find_last_not_of(" \t\r\n");
    if (begin != std::string::npos) text += ": " + place.ptx_text.substr(begin, end - begin + 1);
  }
  if (!place.source_file.empty()) {
    text += (text.ends_with(';') ? " " : "; ") + place.source_file + ":" +
            std::to_string(place.source_line);
    if (!place.call_file.empty())
      text += ", called at " + place.call_file + ":" + std::to_string(place.call_line);
  }
  return text;
}

std::string Fault::report() const {
  std::string text = std::string(name(kind)) + ": " + message;
  const std::string where = to_string(place);
  if (!where.empty()) text += "\n  at " + where;
  return text + indented(other_side, "\n  ");
}

}  // namespace gemmery::emulator
