// SPDX-License-Identifier: Apache-2.0
// The groups of a problem in its line: groups=G, ragged=, the form of the sizes, outside=.
#pragma once

#include <gemmery/groups.hpp>
#include <gemmery/problem.hpp>

#include <optional>
#include <string>
#include <string_view>

#include "operation/grammar_operands.hpp"
#include "operation/grammar_words.hpp"

namespace gemmery::grammar {

// The fields that only a grouped problem has.
struct GroupWords {
  std::optional<std::int64_t> count;
  std::optional<Ragged> ragged;
  std::optional<Groups> sizes;  // form, width, place, alignment and expected size
  std::optional<OutsideGroups> outside;
  std::optional<IndexedElements> gather, scatter;  // an extent of -1: that of all groups
};

inline constexpr std::string_view group_fields =
    "groups=, ragged=, ends=, prefix=, counts=, labels=, masked=, list=, outside=, gather=, "
    "scatter=, ";
bool is_group_field(std::string_view key) noexcept;

// Reads a field whose key is one of these.
void read_group_field(const Word& word, std::string_view key, std::string_view value,
                      GroupWords& words);

// The groups for these words, with their number in problem.l.
void apply_groups(const Word& kind, const GroupWords& words, GemmProblem& problem);

// " groups=16 ends=i64 ragged=k": the fields that are not defaults.
std::string groups_text(const GemmProblem& problem);

// C or a tensor of the epilogue from its words, and its spelling.
MatrixType read_addend(const OperandWords& operand, const GemmProblem& problem);

std::string addend_text(MatrixType matrix, const GemmProblem& problem, Role role);

// Operands of a list are batches by pointers without saying so.
OperandWords as_listed(OperandWords operand, const GemmProblem& problem);
std::string without_pointers(std::string text, const GemmProblem& problem);

}  // namespace gemmery::grammar
