// SPDX-License-Identifier: Apache-2.0
// Variables (PTX ISA, "State Spaces, Types, and Variables").
#include "emulator/program/declarations.hpp"

#include <bit>
#include <cstring>

namespace gemmery::emulator {
namespace {

// More than any device's memory. The limit keeps products of dimensions from overflowing.
constexpr std::uint64_t max_variable_bytes = std::uint64_t{1} << 40;
constexpr std::uint64_t max_alignment = 1u << 20;
constexpr std::uint64_t pointer_bytes = 8;

// .align N, .ptr, .v4, .attribute(…), the space that a pointer parameter points to.
struct Attributes {
  std::uint32_t alignment = 0;  // 0: natural
  std::uint32_t vector_width = 1;
  std::optional<ScalarType> type;
  bool is_managed = false;
};

// Parses a word before the type. After `.ptr` the attributes describe the pointee: its alignment is
// not the parameter's.
void parse_attribute(Lexer& lexer, std::string_view word, bool& is_pointee, Attributes& found) {
  if (word == "align") {
    const std::uint32_t alignment = parse_count(lexer, max_alignment);
    if (!std::has_single_bit(alignment)) lexer.fail("an alignment that is a power of two");
    if (!is_pointee) found.alignment = alignment;
  } else if (word == "ptr") {
    is_pointee = true;
  } else if (word == "v2" || word == "v4" || word == "v8") {
    found.vector_width = static_cast<std::uint32_t>(word[1] - '0');
  } else if (word == "attribute") {
    lexer.expect('(');
    if (lexer.peek() == '.' && lexer.take_dotted_word() == "managed") found.is_managed = true;
    lexer.skip_to(')');
    lexer.expect(')');
  } else if (!is_pointee || !find_space(word)) {
    lexer.fail("a type, .align, .ptr or .attribute, not \"." + std::string(word) + "\"");
  }
}

Attributes parse_attributes(Lexer& lexer) {
  Attributes found;
  bool is_pointee = false;
  while (lexer.peek() == '.') {
    const std::string_view word = lexer.take_dotted_word();
    const auto type = find_scalar_type(word);
    if (type && !found.type) {
      found.type = type;
    } else {
      parse_attribute(lexer, word, is_pointee, found);
    }
  }
  return found;
}

// [2][3]. The [] of an extern array gives 0 bytes.
void parse_dimensions(Lexer& lexer, Variable& variable) {
  bool is_unsized = false;
  while (lexer.accept('[')) {
    if (lexer.accept(']')) {
      is_unsized = true;
      continue;
    }
    const Number extent = lexer.take_number();
    if (extent.is_float || (extent.bits != 0 && variable.bytes > max_variable_bytes / extent.bits))
      lexer.fail("an array of at most 2^40 bytes");
    variable.bytes *= extent.bits;
    lexer.expect(']');
  }
  if (is_unsized) variable.bytes = 0;
}

std::uint64_t convert_element(const Number& number, bool is_negative, std::uint32_t bytes) {
  std::uint64_t bits = number.bits;
  if (number.is_double && bytes == 4)
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  if (!is_negative) return bits;
  if (number.is_float) return bits ^ std::uint64_t{1} << (bytes * 8 - 1);
  return ~bits + 1;
}

class InitialiserParser {
 public:
  InitialiserParser(Lexer& lexer, Variable& variable, std::uint32_t element_bytes,
                    const IsDeclared& is_declared)
      : lexer_(lexer),
        variable_(variable),
        element_bytes_(element_bytes),
        is_declared_(is_declared) {}

  void parse() {
    if (!lexer_.accept('{')) return parse_element();
    if (lexer_.accept('}')) return;
    do {
      if (lexer_.peek() == '{') lexer_.fail("a list without inner lists");
      parse_element();
    } while (lexer_.accept(','));
    lexer_.expect('}');
  }

 private:
  void parse_element() {
    if (lexer_.peek() == '"') return append_string();
    const bool is_negative = lexer_.accept('-');
    if (lexer_.is_at_number()) {
      const Number number = lexer_.take_number();
      if (lexer_.peek() == '(') lexer_.fail("an element without a mask of address bits");
      return append(convert_element(number, is_negative, element_bytes_), element_bytes_);
    }
    append_address();
  }

  void append_string() {
    for (const char c : lexer_.take_string()) append(static_cast<unsigned char>(c), 1);
  }

  // name, name + 4, generic(name) + 4
  void append_address() {
    std::string_view name = lexer_.take_identifier();
    const bool is_generic = name == "generic" && lexer_.accept('(');
    if (is_generic) {
      name = lexer_.take_identifier();
      lexer_.expect(')');
    }
    if (!is_declared_(name)) lexer_.fail("a variable that is declared, not " + std::string(name));
    if (element_bytes_ != pointer_bytes) lexer_.fail("an address in an element of 64 bits");
    Variable::AddressOf address{variable_.initial.size(), std::string(name), 0};
    if (lexer_.accept('+')) address.offset = static_cast<std::int64_t>(lexer_.take_number().bits);
    variable_.addresses.push_back(std::move(address));
    append(0, pointer_bytes);
  }

  void append(std::uint64_t bits, std::uint32_t bytes) {
    const std::size_t at = variable_.initial.size();
    if (at + bytes > variable_.bytes)
      lexer_.fail("at most " + std::to_string(variable_.bytes) + " bytes to begin " +
                  variable_.name + " with");
    // The initialiser of a 16-byte element (.b128) sets its lower half.
    variable_.initial.resize(at + bytes);
    std::memcpy(variable_.initial.data() + at, &bits, bytes < sizeof bits ? bytes : sizeof bits);
  }

  Lexer& lexer_;
  Variable& variable_;
  std::uint32_t element_bytes_;
  const IsDeclared& is_declared_;
};

}  // namespace

std::optional<Space> find_space(std::string_view word) noexcept {
  if (word == "global") return Space::global;
  if (word == "shared" || word == "shared::cta") return Space::shared;
  if (word == "shared::cluster") return Space::shared_cluster;
  if (word == "const") return Space::constant;
  if (word == "local") return Space::local;
  if (word == "param") return Space::param;
  return std::nullopt;
}

std::uint32_t parse_count(Lexer& lexer, std::uint64_t limit) {
  const Number number = lexer.take_number();
  if (number.is_float || number.bits > limit)
    lexer.fail("a whole number up to " + std::to_string(limit));
  return static_cast<std::uint32_t>(number.bits);
}

ScalarType parse_type(Lexer& lexer) {
  const std::string_view word = lexer.take_dotted_word();
  const auto type = find_scalar_type(word);
  if (!type) lexer.fail("a type, not \"." + std::string(word) + "\"");
  return *type;
}

Declarator parse_declarator(Lexer& lexer, Space space) {
  const Attributes attributes = parse_attributes(lexer);
  if (!attributes.type || *attributes.type == ScalarType::pred)
    lexer.fail("a type of whole bytes (.b8 … .b128)");
  Declarator declarator;
  declarator.element_bytes = static_cast<std::uint32_t>(bytes_of(*attributes.type));
  declarator.name = lexer.take_identifier();
  const std::uint32_t bytes = declarator.element_bytes * attributes.vector_width;
  Variable& variable = declarator.variable;
  variable.space = space;
  variable.type = *attributes.type;
  variable.name = declarator.name;
  variable.bytes = bytes;
  variable.alignment = attributes.alignment != 0 ? attributes.alignment : bytes;
  variable.is_managed = attributes.is_managed;
  parse_dimensions(lexer, variable);
  return declarator;
}

void parse_initialiser(Lexer& lexer, Declarator& declarator, const IsDeclared& is_declared) {
  if (lexer.accept('='))
    InitialiserParser(lexer, declarator.variable, declarator.element_bytes, is_declared).parse();
}

}  // namespace gemmery::emulator
