// SPDX-License-Identifier: Apache-2.0
#include "cli/emulation_words.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <gemmery/dtype.hpp>
#include <gemmery/error.hpp>

#include "cli/npy.hpp"

namespace gemmery::cli {
namespace {

constexpr const char* argument_forms =
    "[NAME=]FILE.npy, [NAME=]zeros:DTYPE:SHAPE, [NAME=]unwritten:DTYPE:SHAPE, one of them after "
    "map:BOX:, bytes:FILE.npy or a number";

[[noreturn]] void refuse_word(std::string operand, std::string expected, const std::string& got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::move(operand),
               .expected = std::move(expected),
               .got = "'" + got + "'",
               .hint = "see gemmery emulate --help"});
}

// "128x64"; nothing for other words.
std::optional<std::vector<std::uint64_t>> read_extents(std::string_view word) {
  std::vector<std::uint64_t> extents;
  while (true) {
    std::uint64_t extent = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, extent);
    if (error != std::errc()) return std::nullopt;
    extents.push_back(extent);
    if (stop == end) return extents;
    if (*stop != 'x') return std::nullopt;
    word.remove_prefix(static_cast<std::size_t>(stop + 1 - word.data()));
  }
}

// NumPy has no types for bfloat16 and the 8-bit floats; they are stored as unsigned integers.
std::string descr_of(DType dtype) {
  const DTypeFacts& known = facts(dtype);
  const int bytes = known.bits / 8;
  char kind = known.kind == DTypeKind::signed_integer ? 'i' : 'u';
  if (is_floating(dtype) && (dtype == DType::float16 || bytes >= 4)) kind = 'f';
  return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

// NumPy's type for the name of a Gemmery type; a NumPy type such as "<i8" is returned unchanged.
std::string descr_of(const std::string& word) {
  if (const auto dtype = parse_dtype(word); dtype && bit_width(*dtype) >= 8)
    return descr_of(*dtype);
  if (word.starts_with('<') || word.starts_with('|')) return word;
  refuse_word("--arg", "a type of whole bytes, such as f32 or <i8", word);
}

void make_argument(NamedArgument& made, const std::string& text);

void make_buffer(NamedArgument& made, const std::string& text, bool is_written) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (second == std::string::npos) refuse_word("--arg", argument_forms, text);
  const std::string word = text.substr(first + 1, second - first - 1);
  const auto shape = read_extents(std::string_view(text).substr(second + 1));
  if (!shape) refuse_word("--arg", "a shape such as 128x128", text.substr(second + 1));
  made.descr = descr_of(word);
  made.shape = *shape;
  std::uint64_t bytes = element_bytes(made.descr, "--arg");
  for (const std::uint64_t extent : *shape) {
    if (extent != 0 && bytes > (std::uint64_t{1} << 40) / extent)
      refuse_word("--arg", "at most 2^40 bytes", text);
    bytes *= extent;
  }
  made.argument = is_written ? EmulationArgument::buffer(std::vector<std::byte>(bytes))
                             : EmulationArgument::unwritten(bytes);
}

// Makes an argument from a file. An array without dimensions is a number and is passed by value.
void make_from_file(NamedArgument& made, const std::string& file, bool is_value) {
  NpyArray array = read_npy(file);
  made.descr = std::move(array.descr);
  made.shape = std::move(array.shape);
  made.argument = is_value || made.shape.empty()
                      ? EmulationArgument::value(std::move(array.bytes))
                      : EmulationArgument::buffer(std::move(array.bytes));
}

// The type of a buffer's elements; unsigned integers of 16 bits are bfloat16, which NumPy lacks.
DType dtype_of(const std::string& descr) {
  for (const DTypeFacts& known : dtype_table)
    if (known.bits >= 8 && descr_of(known.dtype) == descr) return known.dtype;
  refuse_word("--arg", "a type of elements that tensor maps have", descr);
}

// BOX[/SWIZZLE]:BUFFER, where BUFFER is a file, zeros: or unwritten:.
void make_map(NamedArgument& made, const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string form = text.substr(0, colon);
  const std::size_t slash = form.find('/');
  const auto box = read_extents(std::string_view(form).substr(0, slash));
  const auto swizzle = slash == std::string::npos
                           ? std::vector<std::uint64_t>{0}
                           : read_extents(std::string_view(form).substr(slash + 1))
                                 .value_or(std::vector<std::uint64_t>{});
  if (colon == std::string::npos || !box || swizzle.size() != 1)
    refuse_word("--arg", "map:BOX[/SWIZZLE]:BUFFER, such as map:64x64/128:a.npy", "map:" + text);
  make_argument(made, text.substr(colon + 1));
  if (made.argument.kind != EmulationArgument::Kind::buffer)
    refuse_word("--arg", "a buffer after map:BOX:", text.substr(colon + 1));
  const std::vector<std::uint32_t> narrow(box->begin(), box->end());
  made.argument =
      EmulationArgument::tensor_map(std::move(made.argument), dtype_of(made.descr), made.shape,
                                    narrow, static_cast<int>(swizzle.front()));
}

void make_argument(NamedArgument& made, const std::string& text) {
  if (text.starts_with("zeros:"))
    make_buffer(made, text, true);
  else if (text.starts_with("unwritten:"))
    make_buffer(made, text, false);
  else if (text.starts_with("bytes:"))
    make_from_file(made, text.substr(6), true);
  else if (text.starts_with("map:"))
    make_map(made, text.substr(4));
  else if (text.ends_with(".npy"))
    make_from_file(made, text, false);
  else
    made.argument = EmulationArgument::number(text);
}

}  // namespace

std::array<std::uint32_t, 3> parse_extents(const std::string& word, const char* option) {
  const auto extents = read_extents(word);
  if (!extents || extents->size() > 3) refuse_word(option, "X, XxY or XxYxZ", word);
  std::array<std::uint32_t, 3> triple{1, 1, 1};
  for (std::size_t axis = 0; axis < extents->size(); ++axis) {
    if ((*extents)[axis] > std::numeric_limits<std::uint32_t>::max())
      refuse_word(option, "extents below 2^32", word);
    triple[axis] = static_cast<std::uint32_t>((*extents)[axis]);
  }
  return triple;
}

EmulatedTrace parse_trace(const std::string& word) {
  EmulatedTrace trace;
  const std::size_t colon = word.find(':');
  std::string block = word.substr(0, colon);
  std::ranges::replace(block, ',', 'x');
  const auto index = read_extents(block);
  const auto warp =
      colon == std::string::npos
          ? std::vector<std::uint64_t>{}
          : read_extents(word.substr(colon + 1)).value_or(std::vector<std::uint64_t>(2));
  if (!index || index->size() > 3 || warp.size() > 1)
    refuse_word("--trace", "X[,Y[,Z]][:WARP], a block's index and a warp of it", word);
  std::ranges::transform(*index, trace.block.begin(),
                         [](std::uint64_t at) { return static_cast<std::uint32_t>(at); });
  if (!warp.empty()) trace.warp = static_cast<int>(warp.front());
  return trace;
}

NamedArgument parse_argument(const std::string& word, std::size_t index) {
  const std::size_t equals = word.find('=');
  const bool is_named = equals != std::string::npos && equals != 0;
  NamedArgument made{.name = is_named ? word.substr(0, equals) : fmt::format("arg{}", index),
                     .argument = {},
                     .descr = {},
                     .shape = {}};
  if (made.name.find('/') != std::string::npos)
    refuse_word("--arg", "a name without '/'", made.name);
  make_argument(made, is_named ? word.substr(equals + 1) : word);
  return made;
}

}  // namespace gemmery::cli
