// SPDX-License-Identifier: Apache-2.0
// Draws statements as text, and the fields of the operands that they name.
#include "tests/support/random_programs.hpp"

#include <gemmery/epilogue.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

namespace gemmery::tests {
namespace {

struct OpWords {
  std::string_view name;
  int arity;
  std::string_view kind;
};
constexpr OpWords all_operations[] = {
#define GEMMERY_OP(name, arity, kind, ...) {#name, arity, #kind},
#include <gemmery/ops.def>
};

// Operations that keep values moderate. Most of a program uses these, so that its results have
// useful bounds.
constexpr std::string_view tame[] = {"add",        "subtract", "multiply",  "min",      "max",
                                     "clamp",      "fma",      "abs",       "negate",   "relu",
                                     "leaky_relu", "gelu",     "gelu_tanh", "silu",     "tanh",
                                     "sigmoid",    "erf",      "hardswish", "softplus", "where"};

constexpr std::string_view infix_of(std::string_view name) {
  if (name == "add") return "+";
  if (name == "subtract") return "-";
  if (name == "multiply") return "*";
  if (name == "divide") return "/";
  if (name == "less") return "<";
  if (name == "less_equal") return "<=";
  if (name == "greater") return ">";
  if (name == "greater_equal") return ">=";
  if (name == "equal") return "==";
  if (name == "not_equal") return "!=";
  if (name == "logical_and") return "and";
  return name == "logical_or" ? "or" : "";
}

class ProgramWriter {
 public:
  ProgramWriter(std::mt19937_64& random, const ProgramLimits& limits)
      : random_(random), limits_(limits) {}

  std::string write(const std::string& line) {
    std::string text;
    if (limits_.most_tensors > 0 && happens(25)) text = add_to_accumulator(line);
    const int intermediate = below(3);
    for (int i = 0; i < intermediate; ++i) {
      const std::string name = "x" + std::to_string(i);
      text += name + " = " + number(below(limits_.depth)) + "; ";
      known_.push_back(name);
    }
    std::string value = number(1 + below(limits_.depth));
    std::string fields;
    if (limits_.with_blocks) text += reduce_block(value, fields);
    text += "D = " + as_whole(out_of(line), value);
    known_.push_back("D");
    const int results = below(limits_.most_results + 1);
    for (int i = 0; i < results; ++i) text += "; " + result(i, fields);
    return line + " epilogue=\"" + text + "\"" + used_operands(text) + fields;
  }

 private:
  struct Operand {
    std::string name;
    std::string value;
  };

  static std::string_view out_of(std::string_view line) {
    const std::size_t at = line.find(" out=");
    return at == std::string_view::npos ? "" : line.substr(at + 5);
  }

  // Integer results need an explicit rounding.
  std::string as_whole(std::string_view type, const std::string& value) {
    constexpr std::string_view integers[] = {"s8", "u8", "s32", "int8", "uint8", "int32"};
    if (std::ranges::none_of(integers, [&](auto name) { return type.starts_with(name); }))
      return value;
    if (happens(30)) return "cast(" + value + (happens(50) ? ", s8)" : ", s8, toward_zero)");
    return (happens(30) ? "floor(" : "round(") + value + ")";
  }

  // A program may compute the same without some of them.
  std::string used_operands(const std::string& text) const {
    const std::vector<std::string> inputs = epilogue::Program(text).inputs();
    std::string fields;
    for (const Operand& operand : operands_)
      if (std::ranges::find(inputs, operand.name) != inputs.end())
        fields += " " + operand.name + "=" + operand.value;
    return fields;
  }

  int below(int end) {
    return static_cast<int>(random_() % static_cast<unsigned>(std::max(end, 1)));
  }
  bool happens(int percent) { return below(100) < percent; }
  template <class List>
  auto pick(const List& list) {
    return list[random_() % std::size(list)];
  }

  // If groups share out, a row or a column belongs to one group; dims with values for both are
  // replaced.
  std::string_view in_groups(std::string_view dims, std::string_view of_m = "[l,n]",
                             std::string_view of_n = "[l,m]") const {
    if (limits_.groups == 'm' && dims == "[l,m]") return of_m;
    return limits_.groups == 'n' && dims == "[l,n]" ? of_n : dims;
  }

  // The only statement that reads the accumulator: kernels may add such a tensor by special code
  // (addend.hpp). Mostly of the operands' type.
  std::string add_to_accumulator(const std::string& line) {
    constexpr std::string_view types[] = {"f32", "bf16", "f16"};
    constexpr std::string_view dims[] = {"[n]", "[n]", "[l,n]", "[m]", ""};
    std::string type{pick(types)};
    for (const char* own : {"bf16", "f16"})
      if (happens(70) && line.find(std::string(" a=") + own) != std::string::npos) type = own;
    operands_.push_back({"first", type + std::string(in_groups(pick(dims)))});
    --limits_.most_tensors;
    sums_ = "sums";
    return happens(50) ? "sums = accum + first; " : "sums = first + accum; ";
  }

  // A reduction of blocks that D reads, and that is stored itself. D differs from element to
  // element, as do results that read it.
  std::string reduce_block(std::string& value, std::string& fields) {
    constexpr std::string_view kinds[] = {"amax", "amax", "max", "min", "sum"};
    constexpr std::string_view any[] = {"1, 32", "1, 16", "32, 1", "8, 8", "3, 5", "1, 0", "0, 1"};
    // Groups divide rows (columns) of out.
    constexpr std::string_view of_rows[] = {"1, 32", "1, 16", "1, 8", "1, 32", "1, 0", "1, 5"};
    constexpr std::string_view of_columns[] = {"32, 1", "16, 1", "8, 1", "32, 1", "0, 1", "5, 1"};
    const std::string block{limits_.groups == 'm'   ? pick(of_rows)
                            : limits_.groups == 'n' ? pick(of_columns)
                                                    : pick(any)};
    std::string text =
        "_block = block_" + std::string(pick(kinds)) + "(" + number(2) + ", " + block + "); ";
    text += happens(50) ? "scale = mx_scale(_block, e4m3, rceil); "
                        : "scale = mx_scale(_block, e2m1, floor); ";
    value = "fma(" + value + ", 1 / (abs(_block) + 1), " + sums_ + ")";
    const bool is_line = block.starts_with("1,") || block.ends_with(" 1");
    fields += is_line && happens(50) ? " scale=e8m0:swizzled"
              : happens(50)          ? " scale=e8m0:c"
                                     : " scale=f32";
    return text;
  }

  // --- expressions ---

  std::string number(int depth) {
    if (depth <= 0) return leaf();
    if (happens(8)) return cast(depth);
    const OpWords& op = operation(happens(80));
    if (op.kind == "compare" || op.kind == "logical") return "where(" + truth(depth) + ", 1, 0)";
    std::vector<std::string> operands;
    for (int i = 0; i < op.arity; ++i) {
      const bool is_condition = op.kind == "choose" && i == 0;
      operands.push_back(is_condition ? truth(depth - 1)
                                      : number(i == 0 ? depth - 1 : below(depth)));
    }
    return spell(op, operands);
  }

  // Writes the operation as a call, or in infix form if it has one.
  std::string spell(const OpWords& op, const std::vector<std::string>& operands) {
    const std::string infix{infix_of(op.name)};
    if (!infix.empty() && happens(50))
      return "(" + operands[0] + " " + infix + " " + operands[1] + ")";
    if (op.name == "negate" && happens(50)) return "(-" + operands[0] + ")";
    std::string text = std::string(op.name) + "(" + operands[0];
    for (std::size_t i = 1; i < operands.size(); ++i) text += ", " + operands[i];
    return text + ")";
  }

  std::string truth(int depth) {
    if (depth > 1 && happens(25)) {
      const std::string left = truth(depth - 1);
      if (happens(30)) return "(not " + left + ")";
      const char* const infix = happens(50) ? " and " : " or ";
      return "(" + left + infix + truth(depth - 1) + ")";
    }
    constexpr std::string_view signs[] = {"<", "<=", ">", ">=", "==", "!="};
    const std::string left = number(depth - 1);
    const std::string sign{pick(signs)};
    return "(" + left + " " + sign + " " + number(0) + ")";
  }

  const OpWords& operation(bool is_tame) {
    while (true) {
      const OpWords& op = all_operations[random_() % std::size(all_operations)];
      if (!is_tame || std::ranges::find(tame, op.name) != std::end(tame)) return op;
    }
  }

  std::string cast(int depth) {
    constexpr std::string_view types[] = {"f32", "f16", "bf16", "e4m3", "e5m2", "s8", "u8", "s32"};
    std::string text = "cast(" + number(depth - 1) + ", ";
    text += pick(types);
    if (happens(30)) text += ", toward_zero";
    if (happens(30)) text += ", saturate";
    return text + ")";
  }

  std::string leaf() {
    if (happens(35)) return sums_;
    if (!known_.empty() && happens(25)) return pick(known_);
    if (happens(70)) return operand();
    constexpr std::string_view constants[] = {"0", "1", "2", "0.5", "-1", "3", "0.1", "1.702", "6"};
    return std::string(pick(constants));
  }

  // --- operands ---

  std::string operand() {
    if (happens(30)) {
      if (numbers_ < limits_.most_numbers && (numbers_ == 0 || happens(50))) return new_number();
      if (numbers_ > 0) return "s" + std::to_string(below(numbers_));
    }
    if (tensors_ < limits_.most_tensors && (tensors_ == 0 || happens(60))) return new_tensor();
    return tensors_ > 0 ? "t" + std::to_string(below(tensors_)) : sums_;
  }

  std::string new_number() {
    constexpr std::string_view values[] = {"0.5", "-1.25", "2", "f32:scalar", "0", "0.0078125"};
    const std::string name = "s" + std::to_string(numbers_++);
    operands_.push_back({name, std::string(pick(values))});
    return name;
  }

  std::string new_tensor() {
    constexpr std::string_view types[] = {"f32", "f16",  "bf16", "f32", "f16",
                                          "f64", "e4m3", "e5m2", "s8",  "s32"};
    constexpr std::string_view dims[] = {"", "", "", "[n]", "[n]", "[m]", "[1]", "[l,n]", "[l,1]"};
    const std::string name = "t" + std::to_string(tensors_++);
    const std::string_view extents = in_groups(pick(dims));
    const std::string type{pick(types)};
    const char* const layout = extents.empty() && happens(25) ? ":c" : "";
    operands_.push_back({name, type + layout + std::string(extents)});
    return name;
  }

  // --- results ---

  std::string result(int index, std::string& fields) {
    const std::string name = "r" + std::to_string(index);
    const std::string value = happens(50) ? pick(known_) : number(below(limits_.depth - 1));
    constexpr std::string_view types[] = {"f32", "f32", "f16", "bf16", "e4m3", "s8"};
    if (!limits_.with_reductions || happens(35)) {
      const std::string type{pick(types)};
      fields += " " + name + "=" + type + (happens(25) ? ":c" : "");
      return name + " = " + as_whole(type, value == sums_ ? sums_ + " * 1" : value);
    }
    constexpr std::string_view kinds[] = {"sum", "max", "min", "amax"};
    constexpr std::string_view over_batches[] = {"[1]", "[m]", "[n]"};
    constexpr std::string_view per_batch[] = {"[l,1]", "[l,m]", "[l,n]"};
    constexpr std::string_view reduced_types[] = {"f32", "f32", "f64", "bf16"};
    const bool joins_batches = limits_.groups == 0 && limits_.with_batch_reductions && happens(50);
    const std::string_view extents =
        joins_batches ? pick(over_batches) : in_groups(pick(per_batch), "[m]", "[n]");
    const std::string type{pick(reduced_types)};
    fields += " " + name + "=" + type + std::string(extents);
    return name + " = " + std::string(pick(kinds)) + "(" + value + ")";
  }

  std::mt19937_64& random_;
  ProgramLimits limits_;
  std::string sums_ = "accum";      // the name of the accumulator
  std::vector<std::string> known_;  // names that may be used
  std::vector<Operand> operands_;
  int tensors_ = 0;
  int numbers_ = 0;
};

}  // namespace

std::string add_random_program(std::mt19937_64& random, const std::string& line,
                               const ProgramLimits& limits) {
  return ProgramWriter(random, limits).write(line);
}

}  // namespace gemmery::tests
