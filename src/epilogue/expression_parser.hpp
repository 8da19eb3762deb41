// SPDX-License-Identifier: Apache-2.0
// Parses one expression of the text form: its words, the meaning of its names, and its grammar.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gemmery/epilogue.hpp>

#include "epilogue/lexer.hpp"

namespace gemmery::epilogue {

// The words of a text, read from the front.
class Words {
 public:
  explicit Words(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& previous() const { return tokens_[at_ - 1]; }
  // Returns the next word; the end is returned again and again.
  Token take() {
    const Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  // Refuses any word but this one.
  void expect(std::string_view sign, std::string hint = "");
  void skip_separators() {
    while (peek().kind == TokenKind::separator) ++at_;
  }
  std::size_t position() const { return at_; }
  void go_back(std::size_t position) { at_ = position; }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

struct Assigned {
  Token name;
  Result result;
  bool is_read = false;
};

// The meaning of names at a place of a text. In statements, a name that is not assigned is an
// operand; a function names its operands in its parameters; a definition has x, y and z.
class Names {
 public:
  void begin_function(std::vector<Token> parameters);
  void begin_definition(std::span<const std::string_view> operands);
  bool is_function() const { return form_ == Form::function; }

  // Refuses unknown names and reductions.
  Expression read(const Token& name);
  void assign(const Token& name, Result result);
  bool is_assigned(std::string_view name) const { return by_name_.contains(name); }
  bool is_parameter(std::string_view name) const;
  const std::vector<Assigned>& assigned() const { return assigned_; }
  // The result that `return` names.
  Result result(const Token& name);
  // Refuses a parameter that nothing reads, except accum.
  void check_parameters() const;

 private:
  enum class Form { statements, function, definition };
  Result accumulator_result(const Token& name);
  [[noreturn]] void refuse_unknown(const Token& name) const;

  Form form_ = Form::statements;
  std::vector<std::pair<Token, bool>> parameters_;  // and whether they are read
  std::vector<std::string> operands_;               // of a definition
  std::map<std::string, Token, std::less<>> read_;  // operands, at their first use
  std::vector<Assigned> assigned_;
  std::map<std::string, std::size_t, std::less<>> by_name_;  // index into assigned_
  std::set<std::string, std::less<>> returned_;
};

class ExpressionParser {
 public:
  ExpressionParser(Words& words, Names& names) : words_(words), names_(names) {}

  Expression parse() { return choice(); }

 private:
  class Level;

  Expression choice();
  Expression either();
  Expression both();
  Expression negation();
  Expression comparison();
  Expression sum();
  Expression product();
  Expression signed_value();
  Expression power();
  Expression primary();
  Expression parenthesised();
  Expression call();
  Expression cast_call(const Token& function);
  Expression scale_call(const Token& function);
  Expression call_of(const Token& function, std::span<const Expression> operands);
  std::vector<Expression> call_operands(const Token& function);
  [[noreturn]] void refuse_keyword(const Token& function);

  Words& words_;
  Names& names_;
  int level_ = 0;
};

// "did you mean ...?", or nothing if no name is similar.
std::string suggest(std::string_view word, std::span<const std::string> names);

}  // namespace gemmery::epilogue
