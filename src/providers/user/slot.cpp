// SPDX-License-Identifier: Apache-2.0
// The grammar of parameters.
#include "providers/user/slot.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace gemmery::user {
namespace {

constexpr std::array<std::pair<std::string_view, SlotType>, 6> type_words{{{"i32", SlotType::i32},
                                                                           {"u32", SlotType::u32},
                                                                           {"i64", SlotType::i64},
                                                                           {"u64", SlotType::u64},
                                                                           {"f32", SlotType::f32},
                                                                           {"f64", SlotType::f64}}};

[[noreturn]] void refuse_word(std::string_view word, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "parameter \"" + std::string(word) + "\"",
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = "docs/own-kernels.md lists the words"});
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

std::optional<int> find_operand(std::string_view name, const SlotScope& scope) {
  if (name == "A") return operand_a;
  if (name == "B") return operand_b;
  if (name == "out") return operand_out;
  if (name == "C" && scope.epilogue == nullptr)
    return scope.operands.has_c ? std::optional<int>(operand_c) : std::nullopt;
  if (scope.epilogue == nullptr) return std::nullopt;
  const auto& rules = scope.epilogue->operands;
  const auto found = std::ranges::find(rules, name, &EpilogueOperandRule::name);
  if (found == rules.end()) return std::nullopt;
  return first_of_epilogue + static_cast<int>(found - rules.begin());
}

bool is_number(int operand, const SlotScope& scope) {
  return operand >= first_of_epilogue &&
         scope.epilogue->operands[static_cast<std::size_t>(operand - first_of_epilogue)].is_number;
}

int require_tensor(std::string_view word, std::string_view name, const SlotScope& scope) {
  const auto operand = find_operand(name, scope);
  if (!operand || is_number(*operand, scope))
    refuse_word(word,
                "a tensor: " + operand_name(operand_a, scope) +
                    ", B, out, C where the kernel has "
                    "one, or a tensor of its epilogue",
                quoted(name));
  return *operand;
}

// --- the forms ----------------------------------------------------------------------------------

Slot parse_constant(std::string_view word, std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) refuse_word(word, "a number behind '='", quoted(text));
  const bool is_whole = text.find_first_of(".eE") == std::string_view::npos;
  return {.kind = SlotKind::constant,
          .type = is_whole ? SlotType::i32 : SlotType::f32,
          .constant = *value};
}

// "64x128/128" or "1x64x128"
Slot parse_map(std::string_view word, int operand, std::string_view text) {
  Slot slot{.kind = SlotKind::tensor_map, .type = SlotType::tensor_map, .operand = operand};
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const auto swizzle = parse_number<int>(text.substr(slash + 1));
    const bool is_known =
        swizzle && (*swizzle == 0 || *swizzle == 32 || *swizzle == 64 || *swizzle == 128);
    if (!is_known) refuse_word(word, "a swizzle of 0, 32, 64 or 128 bytes", quoted(text));
    slot.swizzle_bytes = *swizzle;
    text = text.substr(0, slash);
  }
  std::vector<std::uint32_t> box;
  for (bool is_last = false; !is_last;) {
    const std::size_t end = text.find('x');
    is_last = end == std::string_view::npos;
    const auto extent = parse_number<std::uint32_t>(text.substr(0, end));
    if (!extent || *extent == 0 || *extent > 256)
      refuse_word(word, "a box of ROWSxCOLUMNS or BATCHESxROWSxCOLUMNS, each of 1 to 256",
                  quoted(text));
    box.push_back(*extent);
    text.remove_prefix(is_last ? text.size() : end + 1);
  }
  if (box.size() != 2 && box.size() != 3)
    refuse_word(word, "a box of two or three extents", std::to_string(box.size()));
  slot.has_batches = box.size() == 3;
  std::ranges::copy(box, slot.box.end() - static_cast<std::ptrdiff_t>(box.size()));
  return slot;
}

Slot parse_stride(std::string_view word, int operand, std::string_view which,
                  const SlotScope& scope) {
  Slot slot{.kind = SlotKind::stride, .type = SlotType::i64, .operand = operand};
  if (which == "batch_stride") {
    slot.axis = Axis::batch;
  } else if (which == "row_stride") {
    slot.axis = Axis::row;
  } else if (which == "column_stride") {
    slot.axis = Axis::column;
  } else if (which == "leading") {
    const LayoutRule layout =
        operand < first_of_epilogue ? rule_of(operand, scope.operands).layout : LayoutRule::any;
    if (layout == LayoutRule::any)
      refuse_word(word, "an operand that is declared row or column major", "one of any layout");
    slot.axis = layout == LayoutRule::row ? Axis::row : Axis::column;
  } else {
    refuse_word(word, "batch_stride, row_stride, column_stride, leading or map=", quoted(which));
  }
  return slot;
}

Slot parse_of_operand(std::string_view word, std::string_view name, std::string_view which,
                      const SlotScope& scope) {
  const int operand = require_tensor(word, name, scope);
  constexpr std::string_view map = "map=";
  if (which.starts_with(map)) return parse_map(word, operand, which.substr(map.size()));
  return parse_stride(word, operand, which, scope);
}

Slot parse_plain(std::string_view word, std::string_view what, const SlotScope& scope) {
  const bool is_default = scope.epilogue == nullptr;
  if (what == "m" || what == "n" || what == "k" || what == "l")
    return {.kind = SlotKind::extent, .type = SlotType::i32, .extent = what.front()};
  if (what == "workspace") return {.kind = SlotKind::workspace, .type = SlotType::pointer};
  if (is_default && what == "alpha") return {.kind = SlotKind::alpha, .type = SlotType::f32};
  if (is_default && what == "beta") return {.kind = SlotKind::beta, .type = SlotType::f32};
  const auto operand = find_operand(what, scope);
  if (!operand)
    refuse_word(word, "an operand, an extent, a number, workspace or a constant", quoted(what));
  if (is_number(*operand, scope))
    return {.kind = SlotKind::number, .type = SlotType::f32, .operand = *operand};
  return {.kind = SlotKind::pointer, .type = SlotType::pointer, .operand = *operand};
}

Slot parse_untyped(std::string_view word, std::string_view what, const SlotScope& scope) {
  if (what.starts_with('=')) return parse_constant(word, what.substr(1));
  const std::size_t dot = what.find('.');
  if (dot == std::string_view::npos) return parse_plain(word, what, scope);
  return parse_of_operand(word, what.substr(0, dot), what.substr(dot + 1), scope);
}

// True if a type holds the constant exactly.
bool holds(SlotType type, double value) noexcept {
  if (is_float(type)) return true;
  const double least = type == SlotType::i32 ? -0x1p31 : type == SlotType::i64 ? -0x1p63 : 0;
  const double beyond = type == SlotType::i32   ? 0x1p31
                        : type == SlotType::u32 ? 0x1p32
                        : type == SlotType::i64 ? 0x1p63
                                                : 0x1p64;
  return value == std::nearbyint(value) && value >= least && value < beyond;
}

void check_type(std::string_view word, const Slot& slot, SlotType type) {
  const bool is_address = slot.type == SlotType::pointer || slot.type == SlotType::tensor_map;
  if (is_address) refuse_word(word, "no type, since this is an address or a map", "one");
  const bool is_count = slot.kind == SlotKind::extent || slot.kind == SlotKind::stride;
  if (is_count && is_float(type))
    refuse_word(word, "an integer type for a count", "a floating one");
  const bool is_real =
      slot.kind == SlotKind::alpha || slot.kind == SlotKind::beta || slot.kind == SlotKind::number;
  if (is_real && !is_float(type)) refuse_word(word, "f32 or f64 for a number", "an integer type");
}

}  // namespace

std::size_t size_of(SlotType type) noexcept {
  switch (type) {
    case SlotType::i32:
    case SlotType::u32:
    case SlotType::f32:
      return 4;
    case SlotType::tensor_map:
      return 128;
    default:
      return 8;
  }
}

// CUtensorMap is aligned to 64 bytes where a kernel takes it (__grid_constant__, CUDA 12 manual,
// "Tensor Memory Accelerator").
std::size_t alignment_of(SlotType type) noexcept {
  return type == SlotType::tensor_map ? 64 : size_of(type);
}

Slot parse_slot(std::string_view word, const SlotScope& scope) {
  const std::size_t colon = word.rfind(':');
  Slot slot = parse_untyped(word, word.substr(0, colon), scope);
  if (colon != std::string_view::npos) {
    const std::string_view text = word.substr(colon + 1);
    const auto known =
        std::ranges::find(type_words, text, &std::pair<std::string_view, SlotType>::first);
    if (known == type_words.end())
      refuse_word(word, "i32, u32, i64, u64, f32 or f64", quoted(text));
    check_type(word, slot, known->second);
    slot.type = known->second;
  }
  if (slot.kind == SlotKind::constant && !holds(slot.type, slot.constant))
    refuse_word(word, "a number that its type holds", quoted(word));
  return slot;
}

std::string operand_name(int operand, const SlotScope& scope) {
  constexpr std::array<std::string_view, first_of_epilogue> names{"A", "B", "C", "out"};
  if (operand < first_of_epilogue) return std::string(names[static_cast<std::size_t>(operand)]);
  return scope.epilogue->operands[static_cast<std::size_t>(operand - first_of_epilogue)].name;
}

const OperandRule& rule_of(int operand, const OperandRules& rules) noexcept {
  switch (operand) {
    case operand_a:
      return rules.a;
    case operand_b:
      return rules.b;
    case operand_c:
      return rules.c;
    default:
      return rules.out;
  }
}

const MatrixType& matrix_of(int operand, const GemmProblem& problem) noexcept {
  switch (operand) {
    case operand_a:
      return problem.a;
    case operand_b:
      return problem.b;
    case operand_c:
      return *problem.c;
    case operand_out:
      return problem.out;
    default:
      return problem.epilogue_operands[static_cast<std::size_t>(operand - first_of_epilogue)];
  }
}

std::int64_t stride_of(const MatrixType& matrix, Axis axis) noexcept {
  return axis == Axis::batch ? matrix.batch_stride
         : axis == Axis::row ? matrix.row_stride
                             : matrix.column_stride;
}

}  // namespace gemmery::user
