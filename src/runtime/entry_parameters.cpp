// SPDX-License-Identifier: Apache-2.0
// Parses the section .nv.info.ENTRY of a cubin and the declaration of an entry in PTX.
#include "runtime/entry_parameters.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace gemmery::runtime {
namespace {

using Bytes = std::span<const std::byte>;

// --- cubin --------------------------------------------------------------------------------------

template <class Number>
std::optional<Number> read(Bytes bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(Number)) return std::nullopt;
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<Bytes> range(Bytes bytes, std::uint64_t at, std::uint64_t size) {
  if (at > bytes.size() || bytes.size() - at < size) return std::nullopt;
  return bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
}

struct Section {
  std::uint32_t name = 0;
  Bytes bytes;
};

// Offsets of ELF-64's file header and of a section's header (System V ABI, chapter 4).
std::optional<Section> section_at(Bytes file, std::uint64_t index) {
  const auto table = read<std::uint64_t>(file, 40);
  const auto size = read<std::uint16_t>(file, 58);
  if (!table || !size) return std::nullopt;
  const std::uint64_t at = *table + index * *size;
  const auto name = read<std::uint32_t>(file, at);
  const auto offset = read<std::uint64_t>(file, at + 24);
  const auto bytes = read<std::uint64_t>(file, at + 32);
  if (!name || !offset || !bytes) return std::nullopt;
  const auto content = range(file, *offset, *bytes);
  if (!content) return std::nullopt;
  return Section{*name, *content};
}

std::string_view name_at(Bytes names, std::uint32_t at) {
  if (at >= names.size()) return {};
  const std::string_view all(reinterpret_cast<const char*>(names.data()), names.size());
  return all.substr(at, all.find('\0', at) - at);
}

std::optional<Bytes> find_section(Bytes file, std::string_view wanted) {
  const auto count = read<std::uint16_t>(file, 60);
  const auto of_names = read<std::uint16_t>(file, 62);
  if (!count || !of_names) return std::nullopt;
  const auto names = section_at(file, *of_names);
  if (!names) return std::nullopt;
  for (std::uint64_t index = 1; index < *count; ++index) {
    const auto section = section_at(file, index);
    if (section && name_at(names->bytes, section->name) == wanted) return section->bytes;
  }
  return std::nullopt;
}

// A record is a format byte and an attribute byte. Format 4 is followed by a size and as many
// bytes, the others by two bytes. A parameter is attribute 0x17: index, ordinal, offset and a word
// with its size from bit 18 on. This is the layout in cubins of CUDA 12 and 13 for sm_80 to sm_121.
// The format is not documented, so the result is empty for anything unexpected.
std::optional<EntryParameters> read_records(Bytes records) {
  constexpr std::uint8_t sized = 4;
  constexpr std::uint8_t parameter = 0x17;
  EntryParameters parameters;
  for (std::uint64_t at = 0; at < records.size();) {
    const auto format = read<std::uint8_t>(records, at);
    const auto attribute = read<std::uint8_t>(records, at + 1);
    const auto size = read<std::uint16_t>(records, at + 2);
    if (!format || !attribute || !size) return std::nullopt;
    at += 4;
    if (*format != sized) continue;
    if (*attribute == parameter) {
      const auto ordinal = read<std::uint16_t>(records, at + 4);
      const auto word = read<std::uint32_t>(records, at + 8);
      if (!ordinal || !word || *size != 12) return std::nullopt;
      if (parameters.size() <= *ordinal) parameters.resize(std::size_t{*ordinal} + 1);
      parameters[*ordinal] = *word >> 18;
    }
    at += *size;
  }
  const bool has_gaps = std::ranges::find(parameters, 0U) != parameters.end();
  return has_gaps ? std::nullopt : std::optional(parameters);
}

// --- PTX ----------------------------------------------------------------------------------------

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '.' || c == '%';
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto begin = std::ranges::find_if(text, is_of_name);
    text.remove_prefix(static_cast<std::size_t>(begin - text.begin()));
    const auto end = std::ranges::find_if_not(text, is_of_name);
    const auto size = static_cast<std::size_t>(end - text.begin());
    if (size > 0) words.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return words;
}

// ".param .align 64 .b8 name[128]" or ".param .u64 .ptr .global .align 1 name" (PTX manual,
// "Kernel Function Parameter Attributes").
std::optional<std::uint32_t> read_declaration(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 3 || words[0] != ".param") return std::nullopt;
  const std::size_t at = words[1] == ".align" ? 3 : 1;
  if (at >= words.size() || words[at].size() < 3) return std::nullopt;
  const auto bits = number_in(words[at].substr(2));
  if (!bits || *bits == 0 || *bits % 8 != 0) return std::nullopt;
  const bool is_array = text.find('[') != std::string_view::npos;
  const auto count = is_array ? number_in(words.back()) : std::optional<std::uint32_t>(1);
  if (!count) return std::nullopt;
  return *bits / 8 * *count;
}

// The text in parentheses after the entry's name.
std::optional<std::string_view> head_of(std::string_view ptx, std::string_view entry) {
  constexpr std::string_view directive = ".entry";
  for (std::size_t at = ptx.find(directive); at != std::string_view::npos;
       at = ptx.find(directive, at + 1)) {
    std::string_view rest = ptx.substr(at + directive.size());
    const auto name = std::ranges::find_if(rest, is_of_name);
    rest.remove_prefix(static_cast<std::size_t>(name - rest.begin()));
    if (!rest.starts_with(entry)) continue;
    rest.remove_prefix(entry.size());
    if (!rest.empty() && is_of_name(rest.front())) continue;
    const std::size_t open = rest.find_first_not_of(" \t\r\n");
    if (open == std::string_view::npos || rest[open] != '(') return std::string_view{};
    const std::size_t close = rest.find(')', open);
    if (close == std::string_view::npos) return std::nullopt;
    return rest.substr(open + 1, close - open - 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<EntryParameters> parameters_of_cubin(Bytes cubin, std::string_view entry) {
  const auto records = find_section(cubin, ".nv.info." + std::string(entry));
  return records ? read_records(*records) : std::nullopt;
}

std::optional<EntryParameters> parameters_of_ptx(std::string_view ptx, std::string_view entry) {
  const auto head = head_of(ptx, entry);
  if (!head) return std::nullopt;
  EntryParameters parameters;
  std::string_view rest = *head;
  while (rest.find(".param") != std::string_view::npos) {
    const std::size_t comma = rest.find(',');
    const auto bytes = read_declaration(rest.substr(0, comma));
    if (!bytes) return std::nullopt;
    parameters.push_back(*bytes);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return parameters;
}

std::string describe(const EntryParameters& parameters) {
  if (parameters.empty()) return "none";
  std::string text = std::to_string(parameters.size()) + " of ";
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const bool is_last = index + 1 == parameters.size();
    if (index > 0) text += is_last ? " and " : ", ";
    text += std::to_string(parameters[index]);
  }
  return text + " bytes";
}

}  // namespace gemmery::runtime
