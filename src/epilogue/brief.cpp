// SPDX-License-Identifier: Apache-2.0
#include "epilogue/brief.hpp"

#include <algorithm>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {
namespace {

bool has_few_bits(DType dtype) {
  return dtype == DType::bfloat16 || dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

}  // namespace

bool takes_brief_formulas(EpilogueId epilogue, DType d, DType compute) {
  if (compute != DType::float32 || !has_few_bits(d)) return false;
  const EpilogueRules& rules = rules_of(epilogue);
  const std::vector<Output>& outputs = rules.program.graph().outputs;
  return std::ranges::all_of(rules.operands, [&](const EpilogueOperandRule& rule) {
    if (!rule.is_output || has_few_bits(rule.dtype)) return true;
    const auto output = std::ranges::find(outputs, rule.name, &Output::name);
    return output != outputs.end() && output->reduction != Reduction::none;
  });
}

}  // namespace gemmery::epilogue
