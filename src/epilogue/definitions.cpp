// SPDX-License-Identifier: Apache-2.0
// The table of defined operations; the library's own are added at the first use.
#include "epilogue/definitions.hpp"

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "epilogue/expressed.hpp"
#include "epilogue/expression_parser.hpp"
#include "epilogue/parse.hpp"

namespace gemmery::epilogue {
namespace {

struct Row {
  std::string_view name;
  std::string_view expression;
};

// Names used by torch, NumPy and other libraries. A name of torch has torch's meaning.
constexpr Row known_spellings[] = {
    {"absolute", "abs(x)"},
    {"clip", "clamp(x, y, z)"},
    {"fabs", "abs(x)"},
    {"gelu_erf", "gelu(x)"},
    {"hard_swish", "hardswish(x)"},
    {"identity", "x"},
    {"logistic", "sigmoid(x)"},
    {"maximum", "max(x, y)"},
    {"minimum", "min(x, y)"},
    {"multiply_add", "fma(x, y, z)"},
    {"neg", "-x"},
    {"reciprocal", "1 / x"},
    {"relu6", "clamp(x, 0, 6)"},
    {"square", "x * x"},
    {"swish", "silu(x)"},
};

struct Entry {
  std::string text;
  Definition definition;
};

constexpr std::array<std::string_view, 3> parameters{"x", "y", "z"};

[[noreturn]] void refuse_definition(std::string operand, std::string expected, std::string got,
                                    std::string hint) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

void note_parameters(const Expressed& value, std::array<bool, 3>& is_read,
                     std::unordered_map<const Expressed*, bool>& seen) {
  if (!seen.emplace(&value, true).second) return;
  for (std::size_t at = 0; at < parameters.size(); ++at)
    if (value.kind == NodeKind::input && value.name == parameters[at]) is_read[at] = true;
  for (const auto& operand : value.operands)
    if (operand != nullptr) note_parameters(*operand, is_read, seen);
}

Definition read_definition(std::string_view name, std::string_view text) {
  Expression body = parse_expression(text, parameters);
  std::array<bool, 3> is_read{};
  std::unordered_map<const Expressed*, bool> seen;
  note_parameters(*body.value(), is_read, seen);
  if (!is_read[0] || (is_read[2] && !is_read[1]))
    refuse_definition("define_op", "an expression of x, of x and y, or of x, y and z",
                      '"' + std::string(text) + '"',
                      "the operands of " + std::string(name) + " are x, y and z, in this order");
  return {.arity = is_read[2] ? 3 : is_read[1] ? 2 : 1, .body = std::move(body)};
}

// Never destroyed: programs may be parsed while the process ends.
class Definitions {
 public:
  std::optional<Definition> find(std::string_view name) {
    const std::shared_lock lock(mutex_);
    const auto at = entries_.find(name);
    if (at == entries_.end()) return std::nullopt;
    return at->second.definition;
  }

  // False if the name already has another definition.
  bool add(std::string_view name, Entry entry) {
    const std::unique_lock lock(mutex_);
    const auto [at, is_new] = entries_.try_emplace(std::string(name), entry);
    return is_new || at->second.text == entry.text;
  }

  std::vector<std::string> names() {
    const std::shared_lock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }

 private:
  std::shared_mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

Definitions& definitions() {
  static Definitions& table = *new Definitions;
  return table;
}

// The library's own definitions use rows of ops.def only, never each other.
Definitions& filled_definitions() {
  static std::once_flag once;
  thread_local bool is_filling = false;
  if (is_filling) return definitions();
  std::call_once(once, [] {
    is_filling = true;
    for (const Row& row : known_spellings)
      definitions().add(row.name,
                        {std::string(row.expression), read_definition(row.name, row.expression)});
    is_filling = false;
  });
  return definitions();
}

class Substitution {
 public:
  explicit Substitution(std::span<const Expression> operands) : operands_(operands) {}

  Expression in(const std::shared_ptr<const Expressed>& value) {
    if (const auto known = done_.find(value.get()); known != done_.end()) return known->second;
    Expression result = make(value);
    done_.emplace(value.get(), result);
    return result;
  }

 private:
  Expression make(const std::shared_ptr<const Expressed>& value) {
    if (value->kind == NodeKind::input) {
      for (std::size_t at = 0; at < operands_.size(); ++at)
        if (value->name == parameters[at]) return operands_[at];
    }
    if (value->kind == NodeKind::cast)
      return cast(in(value->operands[0]), value->cast.dtype, value->cast.rounding,
                  value->cast.overflow);
    if (value->kind == NodeKind::reduction)
      return reduce(in(value->operands[0]), value->reduction.kind, value->reduction.block);
    if (value->kind != NodeKind::operation) return Expression(value);
    std::vector<Expression> operands;
    for (const auto& operand : value->operands)
      if (operand != nullptr) operands.push_back(in(operand));
    return epilogue::apply(value->op, operands);
  }

  std::span<const Expression> operands_;
  std::unordered_map<const Expressed*, Expression> done_;
};

// A number of a program's text as an extent of a block.
std::int32_t extent_of(const Expression& x) {
  const Expressed& value = *x.value();
  const double extent = value.kind == NodeKind::constant ? value.constant : -1;
  if (extent >= 0 && extent <= most_block_extent && std::trunc(extent) == extent)
    return static_cast<std::int32_t>(extent);
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "epilogue",
               .expected = "rows and columns of a block as whole numbers, 0 for all",
               .got = value.kind == NodeKind::constant ? fmt::format("{}", value.constant)
                                                       : "an expression",
               .hint = "block_amax(accum, 1, 32)"});
}

bool is_name_of_the_language(std::string_view name) {
  return find_op(name) || find_reduction(name) || find_block_reduction(name) || name == "cast" ||
         name == "mx_scale" || name == "D";
}

}  // namespace

std::optional<Callable> find_callable(std::string_view name) {
  if (const auto op = find_op(name)) return Callable{row_of(*op).arity, *op};
  if (auto definition = filled_definitions().find(name))
    return Callable{definition->arity, *std::move(definition)};
  return std::nullopt;
}

std::vector<std::string> function_names() {
  std::vector<std::string> names = filled_definitions().names();
#define GEMMERY_OP(name, ...) names.emplace_back(#name);
#include <gemmery/ops.def>
  names.insert(names.end(), {"sum", "amax", "cast", "mx_scale", "block_sum", "block_max",
                             "block_min", "block_amax"});
  return names;
}

Expression call(const Callable& callable, std::span<const Expression> operands) {
  if (const Op* const op = std::get_if<Op>(&callable.meaning))
    return epilogue::apply(*op, operands);
  return Substitution(operands).in(std::get<Definition>(callable.meaning).body.value());
}

std::optional<Reduction> find_block_reduction(std::string_view name) noexcept {
  constexpr std::string_view prefix = "block_";
  if (!name.starts_with(prefix)) return std::nullopt;
  return find_reduction(name.substr(prefix.size()));
}

Expression call(std::string_view function, std::span<const Expression> operands) {
  if (const auto reduction = find_block_reduction(function); reduction && operands.size() == 3)
    return reduce(operands[0], *reduction, {extent_of(operands[1]), extent_of(operands[2])});
  const auto callable = find_callable(function);
  if (!callable)
    refuse_definition("epilogue", "a function of the grammar",
                      '"' + std::string(function.substr(0, 80)) + '"',
                      suggest(function, function_names()));
  if (std::cmp_not_equal(operands.size(), callable->arity))
    refuse_definition("epilogue",
                      std::to_string(callable->arity) +
                          (callable->arity == 1 ? " operand of " : " operands of ") +
                          std::string(function),
                      std::to_string(operands.size()), "");
  return call(*callable, operands);
}

void define_op(std::string_view name, std::string_view expression) {
  if (!is_operand_name(name) || is_name_of_the_language(name))
    refuse_definition("define_op", "a name that begins with a letter and is not taken",
                      '"' + std::string(name.substr(0, 80)) + '"', "");
  Entry entry{std::string(expression), read_definition(name, expression)};
  if (!filled_definitions().add(name, std::move(entry)))
    refuse_definition("define_op", "one meaning of a name in a process",
                      '"' + std::string(name) + "\" defined otherwise",
                      "programs that were read keep their meaning; choose another name");
}

}  // namespace gemmery::epilogue
