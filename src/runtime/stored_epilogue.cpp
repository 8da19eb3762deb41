// SPDX-License-Identifier: Apache-2.0
// Epilogues in files: the program's text and what a kernel requires of its operands.
#include "runtime/stored_epilogue.hpp"

#include <gemmery/error.hpp>

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace gemmery::runtime {
namespace {

enum Flag : std::uint8_t {
  number = 1,
  output = 2,
  along_l = 4,
  along_m = 8,
  along_n = 16,
  swizzled = 32
};

std::uint8_t flags_of(const EpilogueOperandRule& rule) {
  return static_cast<std::uint8_t>((rule.is_number ? number : 0) | (rule.is_output ? output : 0) |
                                   (rule.varies_l ? along_l : 0) | (rule.varies_m ? along_m : 0) |
                                   (rule.varies_n ? along_n : 0) |
                                   (rule.layout == ScaleLayout::strided ? 0 : swizzled));
}

EpilogueOperandRule to_rule(const StoredOperand& operand) {
  const auto has = [&](Flag flag) { return (operand.flags & flag) != 0; };
  return {.name = operand.name,
          .is_number = has(number),
          .is_output = has(output),
          .dtype = parse_dtype(operand.dtype).value(),  // checked when the file was read
          .varies_l = has(along_l),
          .varies_m = has(along_m),
          .varies_n = has(along_n),
          .adjacent = static_cast<Adjacent>(operand.adjacent),
          .alignment = operand.alignment,
          .layout = has(swizzled) ? ScaleLayout::swizzled_128x4 : ScaleLayout::strided};
}

}  // namespace

std::vector<StoredOperand> stored_operands(EpilogueId epilogue) {
  std::vector<StoredOperand> operands;
  if (epilogue == default_epilogue) return operands;
  for (const EpilogueOperandRule& rule : rules_of(epilogue).operands) {
    operands.push_back({.name = rule.name,
                        .flags = flags_of(rule),
                        .dtype = std::string(name(rule.dtype)),
                        .adjacent = static_cast<std::uint8_t>(rule.adjacent),
                        .alignment = rule.alignment});
  }
  return operands;
}

EpilogueId intern_stored(const StoredKernel& stored, const std::string& path) {
  if (stored.epilogue == text(default_epilogue) && stored.epilogue_operands.empty())
    return default_epilogue;
  try {
    EpilogueRules rules{.program = epilogue::Program(stored.epilogue), .operands = {}};
    for (const StoredOperand& operand : stored.epilogue_operands)
      rules.operands.push_back(to_rule(operand));
    return intern(rules);
  } catch (const Error& error) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = fmt::format("{}, {}", path, stored.kernel_name),
                 .expected = "an epilogue that this library reads",
                 .got = "\"" + stored.epilogue + "\"",
                 .hint = "compile the kernel again with this version of gemmery, or use the one "
                         "that made the file",
                 .cause = error.what()});
  }
}

}  // namespace gemmery::runtime
