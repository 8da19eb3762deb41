// SPDX-License-Identifier: Apache-2.0
// gemmery new kernel NAME: creates a folder with a working kernel to start from.
#include "cli/new_kernel.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <gemmery/error.hpp>

#include "cli/verbs.hpp"

namespace gemmery::cli {
namespace {

constexpr std::string_view placeholder = "NAME";

// Reserved words of CUDA C++ and Python in lower case, and names that the template files use.
constexpr auto reserved_words = std::to_array<std::string_view>({std::string_view{"alignas"},
                                                                 "alignof",
                                                                 "and",
                                                                 "as",
                                                                 "asm",
                                                                 "assert",
                                                                 "async",
                                                                 "auto",
                                                                 "await",
                                                                 "bool",
                                                                 "break",
                                                                 "case",
                                                                 "catch",
                                                                 "char",
                                                                 "class",
                                                                 "concept",
                                                                 "const",
                                                                 "consteval",
                                                                 "constexpr",
                                                                 "constinit",
                                                                 "continue",
                                                                 "def",
                                                                 "default",
                                                                 "del",
                                                                 "delete",
                                                                 "do",
                                                                 "double",
                                                                 "elif",
                                                                 "else",
                                                                 "enum",
                                                                 "except",
                                                                 "explicit",
                                                                 "export",
                                                                 "extern",
                                                                 "false",
                                                                 "finally",
                                                                 "float",
                                                                 "for",
                                                                 "friend",
                                                                 "from",
                                                                 "gemmery",
                                                                 "global",
                                                                 "goto",
                                                                 "if",
                                                                 "import",
                                                                 "in",
                                                                 "inline",
                                                                 "int",
                                                                 "is",
                                                                 "kernel",
                                                                 "lambda",
                                                                 "load",
                                                                 "long",
                                                                 "main",
                                                                 "mma",
                                                                 "mutable",
                                                                 "namespace",
                                                                 "new",
                                                                 "noexcept",
                                                                 "nonlocal",
                                                                 "not",
                                                                 "nullptr",
                                                                 "operator",
                                                                 "or",
                                                                 "pair",
                                                                 "pass",
                                                                 "pathlib",
                                                                 "pitch",
                                                                 "private",
                                                                 "protected",
                                                                 "public",
                                                                 "pytest",
                                                                 "raise",
                                                                 "register",
                                                                 "requires",
                                                                 "return",
                                                                 "short",
                                                                 "signed",
                                                                 "sizeof",
                                                                 "static",
                                                                 "step",
                                                                 "store",
                                                                 "struct",
                                                                 "switch",
                                                                 "template",
                                                                 "this",
                                                                 "throw",
                                                                 "tile",
                                                                 "true",
                                                                 "try",
                                                                 "typedef",
                                                                 "typeid",
                                                                 "typename",
                                                                 "union",
                                                                 "unsigned",
                                                                 "using",
                                                                 "virtual",
                                                                 "void",
                                                                 "volatile",
                                                                 "warp_tile",
                                                                 "while",
                                                                 "with",
                                                                 "xor",
                                                                 "yield",
                                                                 "multiply"});

bool is_identifier(std::string_view name) {
  const auto is_part = [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 || letter == '_';
  };
  return !name.empty() && std::islower(static_cast<unsigned char>(name.front())) != 0 &&
         std::ranges::all_of(name, is_part);
}

[[noreturn]] void throw_unwritten(const std::string& path, std::string got) {
  throw Error({.kind = ErrorKind::io,
               .operand = path,
               .expected = "to write the files of a new kernel",
               .got = std::move(got)});
}

// Creates the folder; throws if it exists, so that no file is overwritten.
void make_folder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::create_directory(folder, error)) return;
  throw_unwritten(folder, error ? error.message() : "something of this name");
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw_unwritten(path, "a write that failed");
}

}  // namespace

void check_kernel_name(const std::string& name) {
  const bool is_reserved = std::ranges::find(reserved_words, name) != reserved_words.end();
  if (is_identifier(name) && !is_reserved) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "NAME",
               .expected = "lower-case letters, digits and _, a letter first, and no word of C++, "
                           "Python or the template",
               .got = name.empty() ? "none" : name,
               .hint = "gemmery new kernel my_gemm"});
}

std::string with_name(std::string_view text, std::string_view name) {
  std::string named;
  for (std::size_t at = text.find(placeholder); at != std::string_view::npos;
       at = text.find(placeholder)) {
    named += std::string(text.substr(0, at)) + std::string(name);
    text.remove_prefix(at + placeholder.size());
  }
  return named + std::string(text);
}

ExitCode write_new_kernel(const Options& options, Output& output) {
  if (options.new_what.empty())
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "new",
                 .expected = "what to write: kernel",
                 .got = "none",
                 .hint = "gemmery new kernel my_gemm"});
  const std::string& name = options.new_name;
  check_kernel_name(name);
  make_folder(name);
  for (const TemplateFile& file : kernel_template()) {
    const std::string path = name + "/" + with_name(file.name, name);
    write_file(path, with_name(file.text, name));
    output.write_line(path);
  }
  output.write_line("to test it, without a GPU: cd " + name + " && python -m pytest");
  return ExitCode::success;
}

}  // namespace gemmery::cli
