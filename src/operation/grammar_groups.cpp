// SPDX-License-Identifier: Apache-2.0
#include "operation/grammar_groups.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"

namespace gemmery::grammar {
namespace {

using operation::alignment_of;

constexpr std::string_view pointers_modifier = "/pointers";

template <class Value>
void set_once(const Word& word, std::optional<Value>& field, Value value) {
  if (field) refuse(word, "each field once");
  field = value;
}

std::uint8_t read_index_bits(const Word& word, std::string_view text) {
  if (text == "i32" || text == "s32" || text == "int32") return 32;
  if (text == "i64" || text == "s64" || text == "int64") return 64;
  refuse(word, "i32 or i64, the type of the sizes");
}

std::int64_t read_positive(const Word& word, std::string_view key, std::string_view value) {
  const auto number = read_integer(value);
  if (!number || *number < 1 || *number > INT32_MAX)
    refuse(word, fmt::format("{}= of a whole number from 1 to 2147483647", key));
  return *number;
}

void read_size_modifier(const Word& word, std::string_view modifier, Groups& groups) {
  const std::size_t equals = modifier.find('=');
  const std::string_view key = modifier.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view{} : modifier.substr(equals + 1);
  if (modifier == "host") {
    groups.are_on_host = true;
  } else if (key == "align") {
    groups.alignment = static_cast<std::int32_t>(read_positive(word, key, value));
  } else if (key == "expect") {
    groups.expected = read_positive(word, key, value);
  } else {
    refuse(word, "host, align= or expect= after '/'");
  }
}

// "i32/host/align=128/expect=20"
Groups read_sizes(const Word& word, GroupSizes form, std::string_view value) {
  Groups groups{.sizes = form};
  const auto parts = split(value, '/');
  if (form == GroupSizes::list) {
    if (value != "host") refuse(word, "list=host: the extents of a list are on the host");
    groups.are_on_host = true;
    return groups;
  }
  groups.index_bits = read_index_bits(word, parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) read_size_modifier(word, parts[i], groups);
  return groups;
}

// "i32/of=500/divide=2"
IndexedElements read_indices(const Word& word, bool is_gather, std::string_view value) {
  const auto parts = split(value, '/');
  IndexedElements indexed{.bits = read_index_bits(word, parts.front()), .extent = -1};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string_view key = parts[i].substr(0, equals);
    const bool has_number = equals != std::string_view::npos;
    const std::int64_t number =
        has_number ? read_integer(parts[i].substr(equals + 1)).value_or(-1) : -1;
    const bool is_divide = is_gather && key == "divide";
    if ((!is_divide && key != "of") || number < (is_divide ? 1 : 0) || number > INT32_MAX)
      refuse(word, is_gather ? "of=INT, the extent of what is read, or divide=INT after '/'"
                             : "of=INT, the extent of out, after '/'");
    if (is_divide) {
      indexed.divide = static_cast<std::int32_t>(number);
    } else {
      indexed.extent = number;
    }
  }
  return indexed;
}

std::string indices_text(std::string_view key, const IndexedElements& indexed,
                         std::int64_t elements) {
  if (!indexed.are_used()) return {};
  std::string text = fmt::format(" {}=i{}", key, indexed.bits);
  if (indexed.extent != elements) text += fmt::format("/of={}", indexed.extent);
  if (indexed.divide != 1) text += fmt::format("/divide={}", indexed.divide);
  return text;
}

IndexedElements with_extent(std::optional<IndexedElements> given, std::int64_t elements) {
  if (!given) return {};
  if (given->extent < 0) given->extent = elements;
  return *given;
}

std::string sizes_text(const Groups& groups) {
  if (groups.sizes == GroupSizes::list) return " list=host";
  std::string value = fmt::format("i{}", groups.index_bits);
  if (groups.are_on_host) value += "/host";
  if (groups.alignment != 1) value += fmt::format("/align={}", groups.alignment);
  if (groups.expected != 0) value += fmt::format("/expect={}", groups.expected);
  const bool is_silent = groups.sizes == GroupSizes::ends && value == "i32";
  return is_silent ? "" : fmt::format(" {}={}", name(groups.sizes), value);
}

bool is_list(const GemmProblem& problem) {
  return problem.groups && problem.groups->sizes == GroupSizes::list;
}

}  // namespace

bool is_group_field(std::string_view key) noexcept {
  return key == "groups" || key == "ragged" || key == "outside" || key == "gather" ||
         key == "scatter" || parse_group_sizes(key);
}

void read_group_field(const Word& word, std::string_view key, std::string_view value,
                      GroupWords& words) {
  if (key == "groups") {
    const auto count = read_integer(value);
    if (!count || *count < 0 || *count > INT32_MAX)
      refuse(word, "groups= of a whole number from 0 to 2147483647");
    return set_once(word, words.count, *count);
  }
  if (key == "ragged") {
    const auto ragged = parse_ragged(value);
    if (!ragged) refuse(word, "ragged=m, ragged=n or ragged=k");
    return set_once(word, words.ragged, *ragged);
  }
  if (key == "outside") {
    const auto outside = parse_outside_groups(value);
    if (!outside) refuse(word, "outside=untouched or outside=zero");
    return set_once(word, words.outside, *outside);
  }
  if (key == "gather") return set_once(word, words.gather, read_indices(word, true, value));
  if (key == "scatter") return set_once(word, words.scatter, read_indices(word, false, value));
  if (words.sizes) refuse(word, "one form of the sizes");
  words.sizes = read_sizes(word, parse_group_sizes(key).value(), value);
}

void apply_groups(const Word& kind, const GroupWords& words, GemmProblem& problem) {
  if (!words.count) refuse_missing(kind, "a field groups= with the number of groups");
  Groups groups = words.sizes.value_or(Groups{});
  if (groups.sizes == GroupSizes::list && words.ragged)
    refuse_missing(kind, "no field ragged= beside list=: every extent may differ");
  if (groups.sizes == GroupSizes::list && *words.count == 0)
    refuse_missing(kind, "groups= of 1 or more for a list");
  groups.ragged = words.ragged.value_or(Ragged::m);
  groups.outside = words.outside.value_or(OutsideGroups::untouched);
  problem.l = *words.count;
  problem.groups = groups;
  const std::int64_t elements = operation::ragged_extent(problem);
  problem.groups->gather = with_extent(words.gather, elements);
  problem.groups->scatter = with_extent(words.scatter, elements);
  operation::check_indexable(*problem.groups);
}

std::string groups_text(const GemmProblem& problem) {
  if (!problem.groups) return {};
  const Groups& groups = *problem.groups;
  std::string text = fmt::format(" groups={}", problem.l);
  if (groups.ragged != Ragged::m) text += fmt::format(" ragged={}", name(groups.ragged));
  text += sizes_text(groups);
  if (groups.outside != OutsideGroups::untouched)
    text += fmt::format(" outside={}", name(groups.outside));
  const std::int64_t elements = operation::ragged_extent(problem);
  text += indices_text("gather", groups.gather, elements);
  text += indices_text("scatter", groups.scatter, elements);
  return text;
}

MatrixType read_addend(const OperandWords& operand, const GemmProblem& problem) {
  const bool varies_with_group = operand.dims && operand.dims->starts_with('l');
  const bool is_once = operation::is_out_shared(problem) && !varies_with_group;
  if (is_once && (operand.batch || operand.has_pointers))
    refuse(operand.word, "[l,m], [l,n] or [l,1] with batch= or pointers: groups share out");
  const operation::MatrixExtents out = operation::product_extents(problem).out;
  return read_matrix(operand, {is_once ? 1 : problem.l, out.rows, out.columns});
}

std::string addend_text(MatrixType matrix, const GemmProblem& problem, Role role) {
  // For an epilogue's operand describe_epilogue reduces the alignment in any case.
  if (role != Role::addend &&
      operation::is_contiguous_along(matrix, operation::ragged_of_out(problem)))
    matrix.alignment = alignment_of(0, matrix);
  const bool varies_with_group = operation::is_out_shared(problem) && matrix.batch_stride != 0;
  return without_pointers(
      matrix_text(matrix, operation::addend_extents(problem, matrix), role, varies_with_group),
      problem);
}

OperandWords as_listed(OperandWords operand, const GemmProblem& problem) {
  if (is_list(problem)) operand.has_pointers = true;
  return operand;
}

std::string without_pointers(std::string text, const GemmProblem& problem) {
  const std::size_t at = text.find(pointers_modifier);
  if (is_list(problem) && at != std::string::npos) text.erase(at, pointers_modifier.size());
  return text;
}

}  // namespace gemmery::grammar
