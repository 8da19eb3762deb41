// SPDX-License-Identifier: Apache-2.0
#include "cli/npy.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <gemmery/error.hpp>

namespace gemmery::cli {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t header_alignment = 64;

[[noreturn]] void refuse_array(const std::string& file, std::string expected, std::string got,
                               std::string hint = {}) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = file,
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

[[noreturn]] void fail(const std::string& file, const char* expected) {
  throw Error({.kind = ErrorKind::io,
               .operand = file,
               .expected = expected,
               .got = errno != 0 ? std::strerror(errno) : "a failure"});
}

// --- the header: a Python dictionary ------------------------------------------------------------

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> is_fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  Header parse() {
    expect('{');
    while (!accept('}')) {
      parse_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    return std::move(header_);
  }

 private:
  void parse_entry() {
    const std::string key = take_string();
    expect(':');
    if (key == "descr")
      header_.descr = take_descr();
    else if (key == "fortran_order")
      header_.is_fortran_order = take_boolean();
    else if (key == "shape")
      header_.shape = take_shape();
    else
      refuse_array(file_, "a header with descr, fortran_order and shape", "'" + key + "'");
  }

  std::string take_descr() {
    if (peek() == '[')
      refuse_array(file_, "an array of plain numbers", "structured elements",
                   "save each field as an array of its own");
    return take_string();
  }

  bool take_boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    fail_header();
  }

  std::vector<std::uint64_t> take_shape() {
    std::vector<std::uint64_t> shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(take_number());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::uint64_t take_number() {
    skip_white();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) fail_header();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return number;
  }

  std::string take_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail_header();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail_header();
    const std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  void skip_white() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
  }
  char peek() {
    skip_white();
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool accept(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool accept_word(std::string_view word) {
    skip_white();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_header();
  }
  [[noreturn]] void fail_header() {
    refuse_array(file_, "the header of a .npy file", "other text");
  }

  std::string_view rest_;
  const std::string& file_;
  Header header_;
};

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t at = bytes.size(); at-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[at]);
  return number;
}

std::string take_bytes(std::string_view& rest, std::size_t count, const std::string& file) {
  if (rest.size() < count) refuse_array(file, "a whole .npy file", "one that ends early");
  std::string taken(rest.substr(0, count));
  rest.remove_prefix(count);
  return taken;
}

Header take_header(std::string_view& rest, const std::string& file) {
  if (!rest.starts_with(magic))
    refuse_array(file, "a .npy file (numpy.save)", "a file that does not begin as one");
  rest.remove_prefix(magic.size());
  const auto major = static_cast<unsigned char>(take_bytes(rest, 2, file)[0]);
  if (major < 1 || major > 3)
    refuse_array(file, "version 1, 2 or 3 of the .npy format", fmt::format("version {}", major));
  const std::uint32_t length = little_endian(take_bytes(rest, major == 1 ? 2 : 4, file));
  return HeaderParser(take_bytes(rest, length, file), file).parse();
}

std::uint64_t bytes_of(const NpyArray& array, const std::string& file) {
  std::uint64_t bytes = element_bytes(array.descr, file);
  for (const std::uint64_t extent : array.shape) {
    if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / extent)
      refuse_array(file, "a shape that memory can hold", "one of more than 2^64 bytes");
    bytes *= extent;
  }
  return bytes;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t extent : shape) text += std::to_string(extent) + ", ";
  if (shape.size() > 1) text.resize(text.size() - 2);
  if (shape.size() == 1) text.resize(text.size() - 1);
  return "(" + text + ")";
}

}  // namespace

std::size_t element_bytes(std::string_view descr, const std::string& file) {
  const auto refuse_elements = [&](const char* what) {
    refuse_array(file, "little-endian plain numbers", fmt::format("{} ('{}')", what, descr),
                 "convert it: array.astype('<f4')");
  };
  if (descr.size() < 3) refuse_elements("an unknown type");
  if (descr[0] == '>') refuse_elements("big-endian numbers");
  if (descr[1] == 'O') refuse_elements("Python objects");
  if (descr[1] == 'V') refuse_elements("raw or structured elements");
  constexpr std::string_view plain = "biufc";
  std::size_t bytes = 0;
  const char* const end = descr.data() + descr.size();
  const auto [stop, error] = std::from_chars(descr.data() + 2, end, bytes);
  const bool is_known =
      (descr[0] == '<' || descr[0] == '|') && plain.find(descr[1]) != std::string_view::npos;
  if (!is_known || error != std::errc() || stop != end || bytes == 0 || bytes > 16)
    refuse_elements("an unknown type");
  return bytes;
}

NpyArray parse_npy(std::string_view rest, const std::string& file) {
  Header header = take_header(rest, file);
  if (!header.descr || !header.is_fortran_order || !header.shape)
    refuse_array(file, "a header with descr, fortran_order and shape", "one without");
  NpyArray array{.descr = std::move(*header.descr), .shape = std::move(*header.shape), .bytes = {}};
  const std::uint64_t bytes = bytes_of(array, file);
  if (*header.is_fortran_order)
    refuse_array(file, "an array in C order", "one in Fortran order",
                 "save numpy.ascontiguousarray(array)");
  if (rest.size() != bytes)
    refuse_array(file, fmt::format("{} bytes of data", bytes), std::to_string(rest.size()));
  array.bytes.resize(rest.size());
  std::memcpy(array.bytes.data(), rest.data(), rest.size());
  return array;
}

std::string format_npy(const NpyArray& array) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   array.descr, shape_text(array.shape));
  const std::size_t before = magic.size() + 4;  // version 1.0, and two bytes of length
  const std::size_t unpadded = before + header.size() + 1;
  header.append((header_alignment - unpadded % header_alignment) % header_alignment, ' ');
  header += '\n';
  std::string file(magic);
  file += '\x01';
  file += '\x00';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return file;
}

NpyArray read_npy(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) fail(file, "a file that can be read");
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) fail(file, "a file that can be read");
  return parse_npy(bytes, file);
}

void write_npy(const std::string& file, const NpyArray& array) {
  std::ofstream stream(file, std::ios::binary);
  const std::string bytes = format_npy(array);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) fail(file, "a file that can be written");
}

}  // namespace gemmery::cli
