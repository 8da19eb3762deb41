// SPDX-License-Identifier: Apache-2.0
// A module: directives, variables and functions (PTX ISA, "Directives").
#include "emulator/program/parser.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "emulator/program/declarations.hpp"
#include "emulator/program/function_parser.hpp"
#include "emulator/program/lexer.hpp"

namespace gemmery::emulator {
namespace {

// The limit of a whole module. NVRTC's largest kernels declare some ten thousand.
constexpr std::uint32_t max_registers = 1u << 18;
constexpr std::uint64_t max_file_index = 1u << 16;
constexpr std::uint64_t max_extent = 0x7fff'ffff;

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : text_(text), lexer_(text) {}

  Program parse() {
    program_.files.emplace_back();
    parse_header();
    while (!lexer_.is_at_end()) parse_directive();
    program_.text = split_lines(text_);
    program_.identity = static_cast<std::uint16_t>(std::hash<std::string_view>{}(text_));
    return std::move(program_);
  }

 private:
  // .extern, .visible, .weak, .common before a declaration.
  struct Linkage {
    bool is_extern = false;
  };

  void parse_header() {
    if (lexer_.peek() != '.' || lexer_.take_dotted_word() != "version")
      lexer_.fail(".version as the first directive of PTX");
    parse_version();
    if (lexer_.peek() != '.' || lexer_.take_dotted_word() != "target")
      lexer_.fail(".target behind .version");
    program_.target = lexer_.take_identifier();
    while (lexer_.accept(',')) lexer_.take_identifier();  // debug, texmode_…
  }

  // take_number would read "9.0" as a float; the version needs the digits.
  void parse_version() {
    const std::uint32_t line = lexer_.line();
    const std::uint64_t major = lexer_.take_version_digits();
    if (lexer_.peek() != '.') lexer_.fail_at(line, "a version like 9.0", std::to_string(major));
    program_.version = std::to_string(major) + '.' + std::string(lexer_.take_dotted_word());
  }

  void parse_directive() {
    if (lexer_.accept(';')) return;
    if (lexer_.peek() != '.') lexer_.fail("a directive");
    Linkage linkage;
    std::string_view word = lexer_.take_dotted_word();
    while (word == "extern" || word == "visible" || word == "weak" || word == "common") {
      linkage.is_extern |= word == "extern";
      word = lexer_.take_dotted_word();
    }
    if (word == "entry") return parse_function(true);
    if (word == "func") return parse_function(false);
    if (const auto space = find_space(word)) return parse_variable(*space, linkage);
    parse_plain_directive(word);
  }

  void parse_plain_directive(std::string_view word) {
    if (word == "address_size") {
      if (lexer_.take_number().bits != 64) lexer_.fail("addresses of 64 bits");
    } else if (word == "file") {
      parse_file();
    } else if (word == "section") {
      while (lexer_.peek() == '.') lexer_.take_dotted_word();
      lexer_.skip_braces();
    } else if (word == "pragma" || word == "alias") {
      lexer_.skip_to(';');
      lexer_.expect(';');
    } else {
      lexer_.fail("a directive of a module, not \"." + std::string(word) + "\"");
    }
  }

  // .file 1 "kernel.cu" [, timestamp, size]
  void parse_file() {
    const std::uint32_t index = parse_count(lexer_, max_file_index);
    if (program_.files.size() <= index) program_.files.resize(index + 1);
    program_.files[index] = lexer_.take_string();
    while (lexer_.accept(',')) lexer_.take_number();
  }

  void parse_variable(Space space, const Linkage& linkage) {
    Declarator declarator = parse_declarator(lexer_, space);
    parse_initialiser(lexer_, declarator,
                      [&](std::string_view name) { return names_.contains(name); });
    lexer_.expect(';');
    declarator.variable.is_extern = linkage.is_extern;
    if (!names_.insert(declarator.name).second) {
      if (linkage.is_extern) return;  // declared once more
      lexer_.fail("a variable's name once, not " + std::string(declarator.name) + " again");
    }
    program_.variables.push_back(std::move(declarator.variable));
  }

  std::vector<Variable> parse_parameters() {
    std::vector<Variable> parameters;
    if (!lexer_.accept('(') || lexer_.accept(')')) return parameters;
    do {
      if (lexer_.take_dotted_word() != "param") lexer_.fail("a .param");
      Declarator declarator = parse_declarator(lexer_, Space::param);
      parameters.push_back(std::move(declarator.variable));
    } while (lexer_.accept(','));
    lexer_.expect(')');
    return parameters;
  }

  void parse_function(bool is_entry) {
    Function function;
    function.is_entry = is_entry;
    // .attribute(…) may stand before the name
    while (lexer_.peek() == '.') parse_function_directive(function);
    if (!is_entry && lexer_.peek() == '(') function.results = parse_parameters();
    const std::string_view name = lexer_.take_identifier();
    function.name = name;
    function.parameters = parse_parameters();
    while (lexer_.peek() == '.') parse_function_directive(function);
    Function& place = declare(name, std::move(function));
    if (lexer_.accept(';')) return;
    place.has_body = true;
    FunctionParser(lexer_, names_, place, register_budget_).parse_body();
  }

  // A definition replaces its declaration.
  Function& declare(std::string_view name, Function function) {
    if (names_.insert(name).second) {
      function_places_.emplace(name, program_.functions.size());
      program_.functions.push_back(std::move(function));
      return program_.functions.back();
    }
    const auto known = function_places_.find(name);
    if (known == function_places_.end() ||
        (lexer_.peek() == '{' && program_.functions[known->second].has_body))
      lexer_.fail("a function's name once, not " + function.name + " again");
    Function& place = program_.functions[known->second];
    if (!place.has_body) place = std::move(function);
    return place;
  }

  void parse_function_directive(Function& function) {
    const std::string_view word = lexer_.take_dotted_word();
    if (word == "maxntid") {
      function.max_threads = parse_extents();
    } else if (word == "reqntid") {
      function.required_threads = parse_extents();
    } else if (word == "reqnctapercluster") {
      function.required_cluster = parse_extents();
    } else if (word == "maxnreg") {
      function.max_registers = parse_count(lexer_, max_extent);
    } else if (word == "minnctapersm" || word == "maxnctapersm" || word == "maxclusterrank") {
      parse_count(lexer_, max_extent);
    } else if (word == "pragma") {
      lexer_.skip_to(';');
      lexer_.expect(';');
    } else if (word == "attribute") {
      lexer_.skip_to(')');
      lexer_.expect(')');
    } else if (word != "explicitcluster" && word != "noreturn" && word != "blocksareclusters") {
      lexer_.fail("a directive of a function, not \"." + std::string(word) + "\"");
    }
  }

  // 384, 1, 1: extents that are omitted are 1.
  std::array<std::uint32_t, 3> parse_extents() {
    std::array<std::uint32_t, 3> extents{1, 1, 1};
    std::size_t given = 0;
    do {
      if (given == extents.size()) lexer_.fail("at most three extents");
      extents[given++] = parse_count(lexer_, max_extent);
    } while (lexer_.accept(','));
    return extents;
  }

  std::string_view text_;
  Lexer lexer_;
  Program program_;
  ModuleNames names_;
  std::unordered_map<std::string_view, std::size_t> function_places_;
  std::uint32_t register_budget_ = max_registers;
};

// NVRTC includes the terminating zero in the size of its text.
std::string_view without_trailing_zeros(std::string_view text) noexcept {
  while (text.ends_with('\0')) text.remove_suffix(1);
  return text;
}

}  // namespace

Program parse_ptx(std::string_view text) {
  return ModuleParser(without_trailing_zeros(text)).parse();
}

}  // namespace gemmery::emulator
