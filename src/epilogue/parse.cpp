// SPDX-License-Identifier: Apache-2.0
// Statements, functions and lambdas, and the scope of names. expression_parser.cpp parses
// expressions.
#include "epilogue/parse.hpp"

#include <algorithm>
#include <utility>

#include "epilogue/expressed.hpp"
#include "epilogue/expression_parser.hpp"

namespace gemmery::epilogue {
namespace {

struct RefusedStatement {
  std::string_view word;
  std::string_view hint;
};

// Statements of Python that a program without loops, branches and effects cannot have.
constexpr RefusedStatement refused_statements[] = {
    {"if", "write a if c else b, or where(c, a, b), on the right side of an assignment"},
    {"for", "programs have no loops: they say what happens to one element"},
    {"while", "programs have no loops: they say what happens to one element"},
    {"import", "all functions of the grammar are known without their modules"},
    {"from", "all functions of the grammar are known without their modules"},
    {"global", "values from outside are operands: bind them by name"},
    {"nonlocal", "values from outside are operands: bind them by name"},
    {"def", "a text holds one function, or statements"},
    {"lambda", "a text holds one lambda, or statements"},
    {"class", ""},
    {"with", ""},
    {"try", ""},
    {"raise", ""},
    {"assert", ""},
    {"pass", ""},
    {"del", ""},
    {"return", "only a function returns; statements assign: D = ..."},
};

class ProgramParser {
 public:
  explicit ProgramParser(std::vector<Token> tokens) : words_(std::move(tokens)) {}

  std::vector<Result> parse() {
    words_.skip_separators();
    if (words_.peek().text == "def") return function();
    if (words_.peek().text == "lambda") return lambda();
    return statements();
  }

 private:
  // --- statements ---

  std::vector<Result> statements() {
    while (words_.peek().kind != TokenKind::end) statement();
    if (!names_.is_assigned("D"))
      refuse_token(words_.peek(), "an assignment to D", "D is what out receives: D = accum + bias");
    std::vector<Result> results;
    for (const Assigned& assigned : names_.assigned()) {
      if (!assigned.name.text.starts_with('_'))
        results.push_back(assigned.result);
      else
        check_use(assigned, "an underscore in front keeps it from being stored");
    }
    return results;
  }

  static void check_use(const Assigned& assigned, std::string hint) {
    if (!assigned.is_read)
      refuse_token(assigned.name, "values that something reads", std::move(hint));
  }

  void statement() {
    const Token name = words_.take();
    check_statement(name);
    if (names_.is_function() && words_.peek().text == ":") {
      words_.take();
      skip_annotation();
    }
    const Token& sign = words_.peek();
    if (sign.text != "=") refuse_assignment(sign);
    words_.take();
    Result result = right_side(std::string(name.text));
    names_.assign(name, std::move(result));
    end_statement();
  }

  static void refuse_assignment(const Token& sign) {
    const bool is_augmented =
        sign.kind == TokenKind::sign && sign.text.size() > 1 && sign.text.ends_with('=');
    if (is_augmented && sign.text != "==" && sign.text != "<=" && sign.text != ">=" &&
        sign.text != "!=")
      refuse_token(sign, "'='", "a name is assigned once: give the new value a name of its own");
    refuse_token(sign, "'=' after the name that is assigned",
                 sign.text == ","   ? "assign one name at a time"
                 : sign.text == "(" ? "an epilogue assigns its results: D = relu(accum)"
                                    : "");
  }

  static void check_statement(const Token& name) {
    for (const auto& [word, hint] : refused_statements)
      if (name.text == word) refuse_token(name, "an assignment", std::string(hint));
    if (name.kind != TokenKind::name)
      refuse_token(name, "a statement: name = expression",
                   name.text == "@" ? "leave the decorator out" : "");
    if (is_reserved(name.text))
      refuse_token(name, "a name to assign",
                   name.text == "accum" ? "accum is the product; give the value another name"
                                        : "this word has a meaning of its own");
    if (name.text.size() > 64) refuse_token(name, "a name of at most 64 letters");
  }

  // A reduction, or an expression.
  Result right_side(std::string name) {
    if (const auto reduction = find_reduction(words_.peek().text);
        reduction && words_.peek(1).text == "(") {
      const std::size_t begin = words_.position();
      const Token function = words_.take();
      words_.take();
      if (words_.peek().text != ")") {
        Expression value = ExpressionParser(words_, names_).parse();
        if (words_.peek().text == ")" && is_end(words_.peek(1))) {
          words_.take();
          if (name == "D")
            refuse_token(function, "D element by element, not a reduction",
                         "store the reduction under another name, beside D");
          return {std::move(name), std::move(value), *reduction};
        }
      }
      words_.go_back(begin);
    }
    return {std::move(name), ExpressionParser(words_, names_).parse()};
  }

  static bool is_end(const Token& token) {
    return token.kind == TokenKind::separator || token.kind == TokenKind::end;
  }

  void end_statement() {
    if (!is_end(words_.peek()))
      refuse_token(words_.peek(), "the end of the statement, or an operation",
                   "statements end with a line or with ';'");
    words_.skip_separators();
  }

  // --- functions ---

  std::vector<Result> function() {
    const Token def = words_.take();
    if (words_.take().kind != TokenKind::name)
      refuse_token(words_.previous(), "the function's name", "");
    words_.expect("(");
    names_.begin_function(parameters(")"));
    words_.expect(")");
    check_accum(def);
    if (words_.peek().text == "->") {
      words_.take();
      skip_annotation();
    }
    words_.expect(":");
    skip_docstring();
    while (words_.peek().text != "return") {
      if (words_.peek().kind == TokenKind::end)
        refuse_token(words_.peek(), "return", "end the function with: return D");
      statement();
    }
    return returned();
  }

  std::vector<Result> lambda() {
    const Token word = words_.take();
    names_.begin_function(parameters(":"));
    words_.expect(":");
    check_accum(word);
    std::vector<Result> results{right_side("D")};
    end_of_text();
    names_.check_parameters();
    return results;
  }

  std::vector<Token> parameters(std::string_view closing) {
    std::vector<Token> parameters;
    while (words_.peek().text != closing) {
      const Token name = words_.take();
      check_parameter(name, parameters);
      parameters.push_back(name);
      if (closing == ")" && words_.peek().text == ":") {
        words_.take();
        skip_annotation();
      }
      if (words_.peek().text == "=")
        refuse_token(words_.peek(), "',' or '" + std::string(closing) + "'",
                     "parameters have no defaults: bind a number by name");
      if (words_.peek().text != closing) words_.expect(",");
    }
    return parameters;
  }

  static void check_parameter(const Token& name, const std::vector<Token>& earlier) {
    if (name.text == "*" || name.text == "**" || name.text == "/")
      refuse_token(name, "a parameter's name",
                   "every operand is a parameter of its own: def f(accum, bias)");
    if (name.text != "accum" && (name.kind != TokenKind::name || !is_operand_name(name.text)))
      refuse_token(name, "a parameter's name, which begins with a letter");
    if (std::ranges::find(earlier, name.text, &Token::text) != earlier.end())
      refuse_token(name, "each parameter once");
  }

  void check_accum(const Token& word) const {
    if (!names_.is_parameter("accum"))
      refuse_token(word, "accum among the parameters", "accum is the product: def f(accum, bias)");
  }

  // Skips to the end of an annotation, whatever its brackets contain.
  void skip_annotation() {
    int open = 0;
    for (;; words_.take()) {
      const Token& token = words_.peek();
      if (is_end(token)) return;
      const bool opens = token.text == "(" || token.text == "[" || token.text == "{";
      const bool closes = token.text == ")" || token.text == "]" || token.text == "}";
      const bool ends = closes || token.text == "," || token.text == ":" || token.text == "=";
      if (open == 0 && ends) return;
      open += opens ? 1 : closes ? -1 : 0;
    }
  }

  void skip_docstring() {
    words_.skip_separators();
    if (words_.peek().kind != TokenKind::string) return;
    words_.take();
    end_statement();
  }

  std::vector<Result> returned() {
    const Token word = words_.take();
    if (is_end(words_.peek())) refuse_token(words_.peek(), "what is returned", "return D");
    const std::vector<Token> names = returned_names();
    if (names.empty()) {
      std::vector<Result> results{right_side("D")};
      if (words_.peek().text == ",")
        refuse_token(words_.peek(), "names where several results are returned",
                     "give each value a name first: aux = accum * 2");
      if (names_.is_assigned("D"))
        refuse_token(word, "the names that are stored, D among them",
                     "D is assigned already: return D");
      end_of_function();
      return results;
    }
    std::vector<Result> results;
    for (const Token& name : names) results.push_back(names_.result(name));
    if (std::ranges::find(names, "D", &Token::text) == names.end())
      refuse_token(names.front(), "D among the returned names", "D is what out receives");
    end_of_function();
    return results;
  }

  // The names of "return D, aux" or "return (D, aux)"; none if something else is returned.
  std::vector<Token> returned_names() {
    const std::size_t begin = words_.position();
    const bool has_parenthesis = words_.peek().text == "(";
    if (has_parenthesis) words_.take();
    std::vector<Token> names;
    while (words_.peek().kind == TokenKind::name) {
      names.push_back(words_.take());
      if (words_.peek().text != ",") break;
      words_.take();
    }
    if (has_parenthesis && words_.peek().text == ")") words_.take();
    const bool is_value = names.size() == 1 && is_reserved(names[0].text);
    if (!names.empty() && is_end(words_.peek()) && !is_value) return names;
    words_.go_back(begin);
    return {};
  }

  void end_of_function() {
    end_of_text();
    names_.check_parameters();
    for (const Assigned& assigned : names_.assigned())
      check_use(assigned, "return it, or leave it out");
  }

  void end_of_text() {
    end_statement();
    if (words_.peek().kind != TokenKind::end)
      refuse_token(words_.peek(), "the end of the text after the function");
  }

  Words words_;
  Names names_;
};

}  // namespace

bool begins_no_assignment(std::string_view word) noexcept {
  return std::ranges::find(refused_statements, word, &RefusedStatement::word) !=
         std::end(refused_statements);
}

std::vector<Result> parse_program(std::string_view text) {
  return parse_program(read_tokens(text));
}
std::vector<Result> parse_program(std::vector<Token> tokens) {
  return ProgramParser(std::move(tokens)).parse();
}

Expression parse_expression(std::string_view text, std::span<const std::string_view> operands) {
  Words words(read_tokens(text));
  Names names;
  names.begin_definition(operands);
  words.skip_separators();
  Expression result = ExpressionParser(words, names).parse();
  words.skip_separators();
  if (words.peek().kind != TokenKind::end)
    refuse_token(words.peek(), "the end of the expression, or an operation");
  return result;
}

std::optional<Reduction> find_reduction(std::string_view name) noexcept {
  if (name == "sum") return Reduction::sum;
  if (name == "max") return Reduction::max;
  if (name == "min") return Reduction::min;
  if (name == "amax") return Reduction::amax;
  return std::nullopt;
}

}  // namespace gemmery::epilogue
