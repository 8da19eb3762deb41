// SPDX-License-Identifier: Apache-2.0
// The fields of cli/records.cpp, in the same order.
#include "cli/metadata_json.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <gemmery/family.hpp>

#include "cli/records.hpp"

namespace gemmery::cli {
namespace {

bool is_plain(char character) {
  return character >= ' ' && character != '"' && character != '\\' && character != 0x7f;
}

// Appends the value as a JSON string. The JSON library handles strings that need escapes.
void append_quoted(std::string& text, std::string_view value) {
  if (!std::ranges::all_of(value, is_plain)) {
    text += Record(value).dump(-1, ' ', false, Record::error_handler_t::replace);
    return;
  }
  text += '"';
  text += value;
  text += '"';
}

void append_field(std::string& text, std::string_view key, std::string_view value) {
  text += key;
  append_quoted(text, value);
}

void append_rule(std::string& text, std::string_view key, const OperandRule& rule) {
  append_field(text, key, name(rule.dtype));
  append_field(text, R"(,"layout":)", name(rule.layout));
  text += R"(,"alignment_bytes":)";
  text += std::to_string(rule.alignment);
  text += '}';
}

void append_rules(std::string& text, const OperandRules& rules) {
  append_rule(text, R"(,"operands":{"A":{"dtype":)", rules.a);
  append_rule(text, R"(,"B":{"dtype":)", rules.b);
  if (rules.has_c) append_rule(text, R"(,"C":{"dtype":)", rules.c);
  append_rule(text, R"(,"out":{"dtype":)", rules.out);
  append_field(text, R"(},"accumulator_type":)", name(rules.accumulator));
  append_field(text, R"(,"math":)", name(rules.math));
}

}  // namespace

const std::string& MetadataJson::targets_text(std::vector<Target> targets) {
  if (!targets_text_.empty() && targets == targets_) return targets_text_;
  targets_ = std::move(targets);
  targets_text_ = "[";
  for (const Target target : targets_)
    append_field(targets_text_, targets_text_.size() > 1 ? "," : "", to_string(target));
  targets_text_ += ']';
  return targets_text_;
}

const std::string& MetadataJson::epilogue_text(EpilogueId epilogue) {
  if (!epilogue_text_.empty() && epilogue == epilogue_) return epilogue_text_;
  epilogue_ = epilogue;
  epilogue_text_.clear();
  append_quoted(epilogue_text_, text(epilogue));
  return epilogue_text_;
}

const std::string& MetadataJson::write(const Kernel& kernel) {
  const Family& family = kernel.family();
  line_.clear();
  append_field(line_, R"({"kernel_name":)", kernel.name());
  append_field(line_, R"(,"kernel_class":)", family.name());
  append_field(line_, R"(,"provider":)", family.provider());
  line_ += R"(,"supported_targets":)";
  line_ += targets_text(family.targets(kernel));
  append_rules(line_, kernel.operands());
  line_ += R"(,"epilogue":)";
  line_ += epilogue_text(kernel.epilogue());
  append_field(line_, R"(,"epilogue_compute_type":)",
               name(epilogue_compute_type(kernel.operands().accumulator)));
  line_ += R"(,"design":{)";
  std::string_view comma = "";
  for (const DesignField& field : family.design_fields(kernel)) {
    line_ += std::exchange(comma, ",");
    append_quoted(line_, field.name);
    append_field(line_, ":", field.value);
  }
  line_ += family.is_deterministic(kernel) ? R"(},"deterministic":true})"
                                           : R"(},"deterministic":false})";
  return line_;
}

}  // namespace gemmery::cli
