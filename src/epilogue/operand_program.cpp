// SPDX-License-Identifier: Apache-2.0
// Reads and prints operand programs: words are exchanged, the parser is that of epilogues.
#include "epilogue/operand_program.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "epilogue/graph.hpp"
#include "epilogue/lexer.hpp"
#include "epilogue/parse.hpp"

namespace gemmery {
namespace epilogue {
namespace {

// The names of the element and of the value.
struct OperandNames {
  std::string_view element;
  std::string_view value;
};
constexpr OperandNames names_of(ProductOperand operand) noexcept {
  return operand == ProductOperand::a ? OperandNames{"a", "A"} : OperandNames{"b", "B"};
}

constexpr OperandNames epilogue_names{"accum", "D"};

bool is_in_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The text with every whole word replaced by `replace(word)`.
template <class Replace>
std::string replace_words(std::string_view text, const Replace& replace) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_in_word(text[end])) ++end;
    if (end == at)
      result += text[at++];
    else
      result += replace(text.substr(at, end - at));
    at = std::max(at, end);
  }
  return result;
}

// A word of epilogues in texts about programs of an operand.
std::string_view in_words_of(ProductOperand operand, std::string_view word) {
  const OperandNames names = names_of(operand);
  if (word == epilogue_names.element) return names.element;
  return word == epilogue_names.value ? names.value : word;
}

// The same in an error, where accum is "the product" and a is "the element", and where there are no
// other results.
std::string error_words(std::string_view error, ProductOperand operand) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> phrases{
      {{"accum is the product", "accum is the element"},
       {"store the reduction under another name, beside D",
        "programs of operands have no reductions: compute it before, and bind it by name"}}};
  std::string text(error);
  for (const auto& [phrase, own] : phrases)
    if (const std::size_t at = text.find(phrase); at != std::string::npos)
      text.replace(at, phrase.size(), own);
  return replace_words(text, [&](std::string_view word) {
    if (word == "epilogue") return std::string_view("program");
    if (word == "out") return std::string_view("the product");
    return in_words_of(operand, word);
  });
}

bool is_assigned(const std::vector<Token>& tokens, std::string_view name) {
  for (std::size_t at = 0; at + 1 < tokens.size(); ++at)
    if (tokens[at].text == name && tokens[at + 1].text == "=") return true;
  return false;
}

// True if a function or lambda has a parameter of this name: the tokens before its first ':' that
// is not of an annotation are those of its head; a name before ',' ')' or ':' is a parameter.
bool is_parameter(const std::vector<Token>& tokens, std::string_view name) {
  const bool is_lambda = tokens.front().text == "lambda";
  const std::string_view closing = is_lambda ? ":" : ")";
  for (const Token& token : tokens) {
    if (token.text == closing) break;
    if (token.text == name) return true;
  }
  return false;
}

bool is_function(const std::vector<Token>& tokens) {
  return tokens.front().text == "def" || tokens.front().text == "lambda";
}

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens = read_tokens(text);
  const auto first = std::ranges::find_if(
      tokens, [](const Token& token) { return token.kind != TokenKind::separator; });
  tokens.erase(tokens.begin(), first);
  return tokens;
}

// The tokens in the words of epilogues.
std::vector<Token> in_epilogue_words(std::vector<Token> tokens, ProductOperand operand) {
  const OperandNames names = names_of(operand);
  for (Token& token : tokens) {
    if (token.kind != TokenKind::name) continue;
    if (token.text == epilogue_names.element || token.text == epilogue_names.value)
      refuse_token(token, "another name",
                   "a program of an operand has the element " + std::string(names.element) +
                       " and assigns " + std::string(names.value));
    if (token.text == names.element)
      token.text = epilogue_names.element;
    else if (token.text == names.value)
      token.text = epilogue_names.value;
  }
  return tokens;
}

// Calls `read` and puts its errors in the words of the operand's program, unless they are.
template <class Read>
auto in_words_of_program(ProductOperand operand, const Read& read, bool has_own_words = false) {
  const auto words = [&](std::string_view text) {
    return has_own_words ? std::string(text) : error_words(text, operand);
  };
  try {
    return read();
  } catch (const Error& error) {
    const std::string about(error.operand());
    const bool is_of_operand = about.starts_with("epilogue operand ");
    throw Error({.kind = error.kind(),
                 .operand = std::string(program_name(operand)) +
                            (is_of_operand ? about.substr(std::string("epilogue").size()) : ""),
                 .expected = words(error.expected()),
                 .got = words(error.got()),
                 .hint = words(error.hint())});
  }
}

}  // namespace

std::string_view program_name(ProductOperand operand) noexcept {
  return operand == ProductOperand::a ? "program_a" : "program_b";
}

void check_operand_program(const Program& program, std::string_view name) {
  const Graph& graph = program.graph();
  const auto refuse = [&](std::string got, std::string hint) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = std::string(name),
                 .expected = "a value of each element alone",
                 .got = std::move(got),
                 .hint = std::move(hint)});
  };
  for (std::size_t at = 1; at < graph.outputs.size(); ++at)
    refuse("a further result, " + graph.outputs[at].name,
           "a name with an underscore in front is a value that is not stored");
  for (std::size_t at = 0; at < graph.nodes.size(); ++at)
    if (graph.nodes[at].kind == NodeKind::reduction)
      refuse("a reduction of blocks (node " + std::to_string(at) + ')',
             "reduce in the epilogue of the GEMM before, or in a kernel of its own");
}

std::string in_operand_words(std::string_view text, ProductOperand operand) {
  return replace_words(text, [&](std::string_view word) { return in_words_of(operand, word); });
}

}  // namespace epilogue

namespace {

EpilogueArguments bind(const epilogue::Program& program, std::vector<EpilogueOperand> operands,
                       ProductOperand operand) {
  return epilogue::in_words_of_program(
      operand, [&] { return EpilogueArguments(program, std::move(operands)); });
}

}  // namespace

ProductOperand operand_of_program(std::string_view text) {
  const std::vector<epilogue::Token> tokens =
      epilogue::in_words_of_program(ProductOperand::a, [&] { return epilogue::tokens_of(text); });
  const auto has = [&](ProductOperand operand) {
    const epilogue::OperandNames names = epilogue::names_of(operand);
    return epilogue::is_function(tokens) ? epilogue::is_parameter(tokens, names.element)
                                         : epilogue::is_assigned(tokens, names.value);
  };
  const bool has_a = has(ProductOperand::a);
  const bool has_b = has(ProductOperand::b);
  if (has_a != has_b) return has_a ? ProductOperand::a : ProductOperand::b;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "operand program",
               .expected = epilogue::is_function(tokens)
                               ? "one of the parameters a and b, the element"
                               : "an assignment to either A or B",
               .got = has_a ? "both" : '"' + std::string(text.substr(0, 300)) + '"',
               .hint = "A = relu(a) * gate is a program of A"});
}

epilogue::Program read_operand_program(std::string_view text, ProductOperand operand) {
  using epilogue::in_words_of_program;
  std::vector<epilogue::Token> tokens =
      in_words_of_program(operand, [&] { return epilogue::tokens_of(text); });
  const bool is_of_function = epilogue::is_function(tokens);
  tokens = in_words_of_program(
      operand, [&] { return epilogue::in_epilogue_words(std::move(tokens), operand); },
      /*has_own_words=*/true);
  return in_words_of_program(operand, [&] {
    const epilogue::Program program(epilogue::parse_program(std::move(tokens)));
    // Values of statements are intermediate; a function returns what it stores.
    const epilogue::Program own = is_of_function ? program : epilogue::keep_results(program, {});
    epilogue::check_operand_program(own, "epilogue");
    return own;
  });
}

OperandProgram::OperandProgram(std::string_view text, std::vector<EpilogueOperand> operands)
    : operand_(operand_of_program(text)),
      arguments_(bind(read_operand_program(text, *operand_), std::move(operands), *operand_)) {}

OperandProgram::OperandProgram(const epilogue::Program& program,
                               std::vector<EpilogueOperand> operands)
    : arguments_(bind(program, std::move(operands), ProductOperand::a)) {
  epilogue::check_operand_program(program, "operand program");
}

std::string operand_program_text(const epilogue::Program& program, ProductOperand operand) {
  return epilogue::in_operand_words(program.text(), operand);
}

}  // namespace gemmery
