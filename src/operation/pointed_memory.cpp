// SPDX-License-Identifier: Apache-2.0
#include "operation/pointed_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "operation/groups.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

std::span<const void* const> pointers_of(const Tensor& tensor) {
  return {static_cast<const void* const*>(tensor.data()),
          static_cast<std::size_t>(tensor.extent(0))};
}

std::string matrix_text(std::string_view operand, std::size_t index) {
  return std::string(operand) + "[" + std::to_string(index) + "]";
}

void check_addresses(std::string_view operand, const Tensor& tensor) {
  const auto pointers = pointers_of(tensor);
  const auto alignment = static_cast<std::uintptr_t>(tensor.pointer_alignment());
  for (std::size_t index = 0; index < pointers.size(); ++index) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointers[index]);
    if (address == 0) refuse(matrix_text(operand, index), "memory", "a null pointer");
    if (address % alignment != 0)
      refuse(matrix_text(operand, index),
             "an address that is a multiple of " + std::to_string(alignment) +
                 " bytes, as its array promises",
             "an address that is " + std::to_string(address % alignment) + " bytes off",
             "promise less: the alignment of PointerArray");
  }
}

void check_distinct(std::string_view operand, const Tensor& tensor) {
  const auto pointers = pointers_of(tensor);
  std::vector<const void*> sorted(pointers.begin(), pointers.end());
  std::ranges::sort(sorted);
  const auto twin = std::ranges::adjacent_find(sorted);
  if (twin == sorted.end()) return;
  const auto first = std::ranges::find(pointers, *twin);
  const auto second = std::find(first + 1, pointers.end(), *twin);
  refuse(matrix_text(operand, static_cast<std::size_t>(second - pointers.begin())),
         "memory of its own",
         "that of " + matrix_text(operand, static_cast<std::size_t>(first - pointers.begin())));
}

void check_tensor(std::string_view operand, const Tensor& tensor, bool is_result) {
  if (!tensor.has_pointers() || tensor.element_count() == 0) return;
  check_addresses(operand, tensor);
  if (is_result) check_distinct(operand, tensor);
}

}  // namespace

void check_pointed_memory(const GemmArguments& arguments) {
  // The tensors of a list were checked one by one.
  if (arguments.group_memory() != nullptr && !arguments.group_memory()->list.empty()) return;
  check_tensor("A", arguments.a(), false);
  check_tensor("B", arguments.b(), false);
  check_tensor("out", arguments.out(), true);
  if (arguments.c()) check_tensor("C", *arguments.c(), false);
  const auto& operands = arguments.epilogue_operands();
  if (operands.empty()) return;
  const auto& rules = rules_of(arguments.problem().epilogue).operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (const auto* const tensor = std::get_if<Tensor>(&operands[i].value))
      check_tensor("epilogue operand " + rules[i].name, *tensor, rules[i].is_output);
  }
}

}  // namespace gemmery::operation
