// SPDX-License-Identifier: Apache-2.0
// The grammar of expressions, by recursive descent: one function per precedence level, lowest
// first.
#include "epilogue/expression_parser.hpp"

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "core/number.hpp"
#include "epilogue/definitions.hpp"
#include "epilogue/expressed.hpp"
#include "epilogue/parse.hpp"

namespace gemmery::epilogue {
namespace {

// The limit of nested parentheses, calls and signs: far more than programs have, far less than the
// stack holds.
constexpr int deepest_level = 100;

struct InfixSign {
  std::string_view sign;
  Op op;
};
constexpr InfixSign comparisons[] = {{"<", Op::less},    {"<=", Op::less_equal},
                                     {">", Op::greater}, {">=", Op::greater_equal},
                                     {"==", Op::equal},  {"!=", Op::not_equal}};
constexpr InfixSign sums[] = {{"+", Op::add}, {"-", Op::subtract}};
constexpr InfixSign products[] = {{"*", Op::multiply}, {"/", Op::divide}};
constexpr InfixSign ors[] = {{"or", Op::logical_or}, {"||", Op::logical_or}};
constexpr InfixSign ands[] = {{"and", Op::logical_and}, {"&&", Op::logical_and}};

std::optional<Op> find_infix(const Token& token, std::span<const InfixSign> table) {
  if (token.kind != TokenKind::sign && token.kind != TokenKind::name) return std::nullopt;
  for (const InfixSign& row : table)
    if (row.sign == token.text) return row.op;
  return std::nullopt;
}

struct RefusedSign {
  std::string_view word;
  std::string_view hint;
};

// Operators of other languages that this one lacks.
constexpr RefusedSign refused_signs[] = {
    {"%", "there is no remainder: x - y * floor(x / y)"},
    {"//", "write floor(x / y)"},
    {"@", "the epilogue works element by element; the product is accum"},
    {"^", "powers are written x ** y"},
    {"&", "write and, or &&"},
    {"|", "write or, or ||"},
    {"~", "write not, or !"},
    {"?", "write a if c else b, or where(c, a, b)"},
    {"<<", ""},
    {">>", ""},
    {":=", "assign in a statement of its own"},
    {"[", "operands are not indexed: they broadcast by their shapes"},
    {".", "functions are written without a module: relu(x); layouts (x.T) belong to tensors"},
};

void check_sign(const Token& token) {
  for (const auto& [sign, hint] : refused_signs)
    if (token.kind == TokenKind::sign && token.text == sign)
      refuse_token(token, "an operation of the grammar", std::string(hint));
}

constexpr std::string_view layout_functions[] = {"permute", "reshape",   "transpose", "view",
                                                 "squeeze", "unsqueeze", "expand"};

// Adds the place in the text to an error about values.
template <class Make>
Expression at_token(const Token& token, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    refuse_token(token, error.expected() + ", not " + error.got(), error.hint(), error.kind());
  }
}

std::string count_operands(int arity) {
  return fmt::format("{} operand{}", arity, arity == 1 ? "" : "s");
}

// The number of one-letter edits from one word to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Functions of neural networks that need a whole row before its first element.
constexpr std::string_view whole_row_functions[] = {
    "softmax", "log_softmax", "layer_norm", "layernorm", "rms_norm", "rmsnorm", "batch_norm"};

// What to do in place of a function that the grammar lacks; may be empty.
std::string function_hint(std::string_view function) {
  if (std::ranges::find(whole_row_functions, function) != std::end(whole_row_functions))
    return "it needs the whole row first: store the reductions over rows, as "
           "examples/14_softmax_statistics.cpp does";
  return suggest(function, function_names());
}

}  // namespace

std::string suggest(std::string_view word, std::span<const std::string> names) {
  if (word.size() > 40) return "";
  const std::string* nearest = nullptr;
  std::size_t least = std::min<std::size_t>(3, word.size() / 2 + 1);
  for (const std::string& name : names)
    if (const std::size_t distance = edit_distance(word, name); distance < least) {
      least = distance;
      nearest = &name;
    }
  return nearest == nullptr ? "" : "did you mean " + *nearest + '?';
}

void Words::expect(std::string_view sign, std::string hint) {
  if (peek().text != sign || peek().kind != TokenKind::sign) {
    check_sign(peek());
    refuse_token(peek(), '\'' + std::string(sign) + '\'', std::move(hint));
  }
  take();
}

// --- names ---------------------------------------------------------------------------------------

void Names::begin_function(std::vector<Token> parameters) {
  form_ = Form::function;
  for (Token& parameter : parameters) parameters_.emplace_back(parameter, false);
}

void Names::begin_definition(std::span<const std::string_view> operands) {
  form_ = Form::definition;
  operands_.assign(operands.begin(), operands.end());
}

bool Names::is_parameter(std::string_view name) const {
  return std::ranges::any_of(parameters_, [&](const auto& it) { return it.first.text == name; });
}

Expression Names::read(const Token& name) {
  if (const auto at = by_name_.find(name.text); at != by_name_.end()) {
    Assigned& assigned = assigned_[at->second];
    if (assigned.result.reduction != Reduction::none)
      refuse_token(name, "a value of each element",
                   "this is the result of a reduction, which is stored and cannot be read again");
    assigned.is_read = true;
    return assigned.result.value;
  }
  if (form_ == Form::definition) {
    if (std::ranges::find(operands_, name.text) == operands_.end()) refuse_unknown(name);
    return operand(name.text);
  }
  if (form_ == Form::function) {
    const auto at =
        std::ranges::find(parameters_, name.text, [](const auto& it) { return it.first.text; });
    if (at == parameters_.end()) refuse_unknown(name);
    at->second = true;
  }
  if (name.text == "accum") return accum();
  if (name.text == "D") refuse_token(name, "a value", "D is read before it is assigned");
  if (name.text.starts_with('_') || !is_operand_name(name.text))
    refuse_token(
        name, "an operand's name: a letter, then at most 63 letters, digits or '_'",
        name.text.starts_with('_') ? "names with an underscore in front are assigned first" : "");
  read_.emplace(name.text, name);
  return operand(name.text);
}

void Names::refuse_unknown(const Token& name) const {
  std::vector<std::string> known(operands_);
  for (const auto& [parameter, is_read] : parameters_) known.emplace_back(parameter.text);
  for (const Assigned& assigned : assigned_) known.emplace_back(assigned.name.text);
  std::string hint = suggest(name.text, known);
  if (hint.empty() && form_ == Form::function)
    hint = "values from outside are parameters, bound by name";
  refuse_token(name,
               form_ == Form::definition ? "one of the operands x, y and z"
                                         : "a parameter, or a name that is assigned above",
               std::move(hint));
}

void Names::assign(const Token& name, Result result) {
  if (const auto at = by_name_.find(name.text); at != by_name_.end()) {
    const Token& first = assigned_[at->second].name;
    refuse_token(name, "each name assigned once",
                 fmt::format("it is assigned at line {}, column {}", first.line, first.column));
  }
  if (is_parameter(name.text))
    refuse_token(name, "a name that is no parameter", "give the value a name of its own");
  if (const auto at = read_.find(name.text); at != read_.end())
    refuse_token(name, "a name that is assigned before it is read",
                 fmt::format("it is read as an operand at line {}, column {}", at->second.line,
                             at->second.column));
  by_name_.emplace(name.text, assigned_.size());
  assigned_.push_back({name, std::move(result)});
}

Result Names::result(const Token& name) {
  if (name.text == "accum") return accumulator_result(name);
  const auto at = by_name_.find(name.text);
  if (at == by_name_.end()) {
    if (is_parameter(name.text))
      refuse_token(name, "names that the function assigns",
                   fmt::format("assign it first: out = {}", name.text));
    refuse_unknown(name);
  }
  if (name.text.starts_with('_'))
    refuse_token(name, "results without an underscore in front",
                 "that keeps a value from being stored");
  Assigned& assigned = assigned_[at->second];
  assigned.is_read = true;
  if (!returned_.emplace(name.text).second) refuse_token(name, "each result once");
  return assigned.result;
}

// The accumulators themselves, which Python functions return by that name.
Result Names::accumulator_result(const Token& name) {
  if (by_name_.contains(result_of_accum))
    refuse_token(name, fmt::format("a function that does not assign {}", result_of_accum),
                 "what is stored of accum is called so");
  if (!returned_.emplace(name.text).second) refuse_token(name, "each result once");
  return {std::string(result_of_accum), accum()};
}

void Names::check_parameters() const {
  for (const auto& [parameter, is_read] : parameters_)
    if (!is_read && parameter.text != "accum")
      refuse_token(parameter, "parameters that something reads",
                   "leave it out of the parameters, or use it");
}

// --- values --------------------------------------------------------------------------------------

class ExpressionParser::Level {
 public:
  explicit Level(ExpressionParser& parser) : level_(parser.level_) {
    if (++level_ > deepest_level)
      refuse_token(
          parser.words_.peek(),
          fmt::format("at most {} parentheses, calls and signs within each other", deepest_level),
          "give parts of the expression names");
  }
  ~Level() { --level_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& level_;
};

// a if c else b
Expression ExpressionParser::choice() {
  const Level level(*this);
  Expression value = either();
  if (words_.peek().text != "if") return value;
  const Token word = words_.take();
  const Expression condition = either();
  if (words_.peek().text != "else")
    refuse_token(words_.peek(), "else", "a choice is written a if c else b");
  words_.take();
  const Expression other = choice();
  return at_token(word, [&] { return where(condition, value, other); });
}

Expression ExpressionParser::either() {
  Expression left = both();
  while (const auto op = find_infix(words_.peek(), ors)) {
    const Token sign = words_.take();
    const Expression right = both();
    left = at_token(sign, [&] { return apply(*op, {left, right}); });
  }
  return left;
}

Expression ExpressionParser::both() {
  Expression left = negation();
  while (const auto op = find_infix(words_.peek(), ands)) {
    const Token sign = words_.take();
    const Expression right = negation();
    left = at_token(sign, [&] { return apply(*op, {left, right}); });
  }
  return left;
}

Expression ExpressionParser::negation() {
  if (words_.peek().text != "not") return comparison();
  const Level level(*this);
  const Token sign = words_.take();
  const Expression x = negation();
  return at_token(sign, [&] { return logical_not(x); });
}

Expression ExpressionParser::comparison() {
  Expression left = sum();
  const auto op = find_infix(words_.peek(), comparisons);
  if (!op) return left;
  const Token sign = words_.take();
  const Expression right = sum();
  if (find_infix(words_.peek(), comparisons))
    refuse_token(words_.peek(), "one comparison at a time",
                 "comparisons do not chain: a < b and b < c");
  return at_token(sign, [&] { return apply(*op, {left, right}); });
}

Expression ExpressionParser::sum() {
  Expression left = product();
  while (const auto op = find_infix(words_.peek(), sums)) {
    const Token sign = words_.take();
    const Expression right = product();
    left = at_token(sign, [&] { return apply(*op, {left, right}); });
  }
  return left;
}

Expression ExpressionParser::product() {
  Expression left = signed_value();
  while (const auto op = find_infix(words_.peek(), products)) {
    const Token sign = words_.take();
    const Expression right = signed_value();
    left = at_token(sign, [&] { return apply(*op, {left, right}); });
  }
  check_sign(words_.peek());
  return left;
}

Expression ExpressionParser::signed_value() {
  const Token& next = words_.peek();
  if (next.text != "-" && next.text != "+" && next.text != "!") return power();
  const Level level(*this);
  const Token sign = words_.take();
  const Expression x = signed_value();
  if (sign.text == "+") return x;
  return at_token(sign, [&] { return sign.text == "-" ? negate(x) : logical_not(x); });
}

Expression ExpressionParser::power() {
  Expression base = primary();
  if (words_.peek().text != "**") return base;
  const Level level(*this);
  const Token sign = words_.take();
  const Expression exponent = signed_value();
  return at_token(sign, [&] { return pow(base, exponent); });
}

Expression ExpressionParser::primary() {
  const Token& next = words_.peek();
  if (next.text == "(") return parenthesised();
  if (next.kind == TokenKind::number) return Expression(words_.take().number);
  if (next.kind != TokenKind::name) {
    check_sign(next);
    refuse_token(next, "a value: accum, a name, a number, a call or '('",
                 next.kind == TokenKind::string ? "strings are no values" : "");
  }
  if (words_.peek(1).text == "(" && !is_reserved(next.text)) return call();
  if (words_.peek(1).text == "." || words_.peek(1).text == "[") check_sign(words_.peek(1));
  if (next.text == "inf") return words_.take(), std::numeric_limits<double>::infinity();
  if (next.text == "nan") return words_.take(), std::numeric_limits<double>::quiet_NaN();
  if (next.text == "True" || next.text == "true") return words_.take(), 1.0;
  if (next.text == "False" || next.text == "false") return words_.take(), 0.0;
  if (is_reserved(next.text) && next.text != "accum")
    refuse_token(next, "a value: accum, a name, a number, a call or '('");
  return names_.read(words_.take());
}

Expression ExpressionParser::parenthesised() {
  words_.expect("(");
  Expression value = choice();
  words_.expect(")");
  return value;
}

Expression ExpressionParser::call() {
  const Token function = words_.take();
  if (function.text == "cast") return cast_call(function);
  if (function.text == "mx_scale") return scale_call(function);
  return call_of(function, call_operands(function));
}

std::vector<Expression> ExpressionParser::call_operands(const Token& function) {
  words_.expect("(");
  std::vector<Expression> operands;
  while (words_.peek().text != ")") {
    if (words_.peek().kind == TokenKind::name && words_.peek(1).text == "=")
      refuse_keyword(function);
    if (words_.peek().text == "*" || words_.peek().text == "**")
      refuse_token(words_.peek(), "operands one by one");
    operands.push_back(choice());
    if (words_.peek().text != ")") words_.expect(",", "operands stand between commas");
  }
  words_.expect(")");
  return operands;
}

void ExpressionParser::refuse_keyword(const Token& function) {
  const Token& keyword = words_.peek();
  const bool is_gelu = function.text == "gelu" && keyword.text == "approximate";
  refuse_token(keyword, "operands without keywords",
               is_gelu ? "gelu(x) is the form with erf, gelu_tanh(x) the one with tanh"
                       : "operands are told by their order");
}

Expression ExpressionParser::call_of(const Token& function, std::span<const Expression> operands) {
  const auto check_count = [&](int arity) {
    if (std::cmp_equal(operands.size(), arity)) return;
    refuse_token(function, count_operands(arity) + " of " + std::string(function.text),
                 fmt::format("it was given {}", operands.size()));
  };
  const auto place = [&](auto make) { return at_token(function, make); };
  if (function.text == "leaky_relu" && operands.size() == 1)
    return place([&] { return leaky_relu(operands[0], 0.01); });
  if (find_reduction(function.text) && operands.size() == 1)
    refuse_token(function, "an operation on elements",
                 "a reduction is the whole right side of a statement: amax = max(abs(D)); within "
                 "one, block_amax(D, 1, 32) is that of a block of rows and columns");
  if (find_block_reduction(function.text)) {
    check_count(3);
    return place([&] { return epilogue::call(function.text, operands); });
  }
  if (const auto callable = find_callable(function.text)) {
    check_count(callable->arity);
    return place([&] { return epilogue::call(*callable, operands); });
  }
  if (find_reduction(function.text)) check_count(1);
  if (std::ranges::find(layout_functions, function.text) != std::end(layout_functions))
    refuse_token(function, "a function of elements",
                 "layouts belong to tensors: bind a view with other strides");
  refuse_token(function, "a function of the grammar", function_hint(function.text));
}

// cast(x, bf16), cast(x, s8, toward_zero), cast(x, e4m3, saturate)
Expression ExpressionParser::cast_call(const Token& function) {
  words_.expect("(");
  const Expression x = choice();
  words_.expect(",", "cast(x, bf16)");
  const Token type = words_.take();
  const auto dtype = parse_dtype(type.text);
  if (type.kind != TokenKind::name || !dtype)
    refuse_token(type, "an element type, such as bf16 or float8_e4m3fn");
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::natural;
  while (words_.peek().text == ",") {
    words_.take();
    const Token word = words_.take();
    if (word.text == "toward_zero")
      rounding = Rounding::toward_zero;
    else if (word.text == "saturate")
      overflow = Overflow::saturate;
    else if (word.text != "nearest_even" && word.text != "natural")
      refuse_token(word, "nearest_even, toward_zero, natural or saturate");
  }
  words_.expect(")");
  return at_token(function, [&] { return cast(x, *dtype, rounding, overflow); });
}

// mx_scale(block_amax(accum, 1, 32), e4m3, rceil)
Expression ExpressionParser::scale_call(const Token& function) {
  words_.expect("(");
  const Expression x = choice();
  words_.expect(",", "mx_scale(block_amax(accum, 1, 32), e4m3, rceil)");
  const Token type = words_.take();
  const auto dtype = parse_dtype(type.text);
  const bool is_scaled = type.kind == TokenKind::name && dtype && is_floating(*dtype) &&
                         bit_width(*dtype) <= 8 && *dtype != DType::float8_e8m0fnu;
  if (!is_scaled) refuse_token(type, "the type that is scaled: e4m3, e5m2, e2m3, e3m2 or e2m1");
  words_.expect(",", "the rule is stated: floor or rceil");
  const Token rule = words_.take();
  if (rule.text != "floor" && rule.text != "rceil")
    refuse_token(rule, "floor (the power of two below) or rceil (the one above)");
  words_.expect(")");
  const Expression largest(number::rounding_of(*dtype).largest);
  return at_token(
      function, [&] { return rule.text == "floor" ? mx_floor(x, largest) : mx_rceil(x, largest); });
}

}  // namespace gemmery::epilogue
