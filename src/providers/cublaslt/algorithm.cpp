// SPDX-License-Identifier: Apache-2.0
// Configurations of algorithms, as design fields and in words.
#include "providers/cublaslt/algorithm.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gemmery::cublaslt {
namespace {

// --- reading ------------------------------------------------------------------------------------

class ConfigReader {
 public:
  ConfigReader(const Library& library, const AlgorithmData& data)
      : library_(library), data_(data) {}

  // `Value` is the type of the attribute, `Field` that of the design.
  template <class Value, class Field>
  void read(ConfigAttribute attribute, Field& field) {
    Value value{};
    std::size_t written = 0;
    check(library_,
          library_.api.cublasLtMatmulAlgoConfigGetAttribute(&data_, attribute, &value, sizeof value,
                                                            &written),
          "cublasLtMatmulAlgoConfigGetAttribute");
    field = static_cast<Field>(value);
    fits_ = fits_ && static_cast<Value>(field) == value;
  }
  // The same for an attribute that some algorithms do not have: 0 then.
  template <class Value, class Field>
  void read_if_any(ConfigAttribute attribute, Field& field) {
    Value value{};
    std::size_t written = 0;
    const Result result = library_.api.cublasLtMatmulAlgoConfigGetAttribute(
        &data_, attribute, &value, sizeof value, &written);
    if (result == Result::success) field = static_cast<Field>(value);
  }
  bool fits() const { return fits_; }

 private:
  const Library& library_;
  const AlgorithmData& data_;
  bool fits_ = true;
};

bool uses_tensor_cores(const Library& library, const AlgorithmData& data) {
  std::uint64_t flags = 0;
  std::size_t written = 0;
  const Result result = library.api.cublasLtMatmulAlgoCapGetAttribute(
      &data, CapabilityAttribute::numerical_flags, &flags, sizeof flags, &written);
  return result == Result::success && (flags & tensor_core_flags) != 0;
}

// --- words --------------------------------------------------------------------------------------

// Of cublasLtMatmulTile_t; others are told by their numbers.
constexpr std::array<std::string_view, 36> tiles{
    "any",    "8x8",    "8x16",    "16x8",    "8x32",    "16x16",   "32x8",    "8x64",   "16x32",
    "32x16",  "64x8",   "32x32",   "32x64",   "64x32",   "32x128",  "64x64",   "128x32", "64x128",
    "128x64", "64x256", "128x128", "256x64",  "64x512",  "128x256", "256x128", "512x64", "64x96",
    "96x64",  "96x128", "128x160", "160x128", "192x128", "128x192", "128x96",  "32x256", "256x32"};

// Of cublasLtMatmulStages_t: elements of k, and how many such stages.
constexpr std::array<std::string_view, 39> stage_names{
    "any",    "16x1",    "16x2",    "16x3",    "16x4",     "16x5",     "16x6",    "32x1",
    "32x2",   "32x3",    "32x4",    "32x5",    "32x6",     "64x1",     "64x2",    "64x3",
    "64x4",   "64x5",    "64x6",    "128x1",   "128x2",    "128x3",    "128x4",   "128x5",
    "128x6",  "32x10",   "8x4",     "16x10",   "8x5",      "29",       "30",      "8x3",
    "8xauto", "16xauto", "32xauto", "64xauto", "128xauto", "256xauto", "768xauto"};

// Of cublasLtClusterShape_t.
constexpr std::array<std::string_view, 17> clusters{"auto", "1",   "1x1", "2x1",  "4x1", "1x2",
                                                    "2x2",  "4x2", "1x4", "2x4",  "4x4", "8x1",
                                                    "1x8",  "8x2", "2x8", "16x1", "1x16"};

template <std::size_t count>
std::string word_of(const std::array<std::string_view, count>& words, std::uint16_t number) {
  return number < count ? std::string(words[number]) : fmt::format("number {}", number);
}

std::string reduction_text(std::uint8_t reduction) {
  switch (static_cast<ReductionScheme>(reduction)) {
    case ReductionScheme::none:
      return "none";
    case ReductionScheme::in_place:
      return "in_place";
    case ReductionScheme::compute_type:
      return "compute_type";
    case ReductionScheme::output_type:
      return "output_type";
  }
  return std::to_string(reduction);
}

// --- names --------------------------------------------------------------------------------------

char letter_of(LayoutRule layout) {
  return layout == LayoutRule::row ? 'r' : layout == LayoutRule::column ? 'c' : 'a';
}

// "bf16r16": type, layout, alignment.
std::string operand_text(const OperandRule& rule) {
  return fmt::format("{}{}{}", alias(rule.dtype), letter_of(rule.layout), rule.alignment);
}

std::string math_text(Math math) {
  std::string text(name(math));
  for (char& c : text) c = c == '_' ? '-' : c;
  return text;
}

// Takes words from the front; remembers if one could not be read.
class NameReader {
 public:
  explicit NameReader(std::string_view text) : text_(text) {}

  std::string_view word() {
    const std::size_t end = std::min(text_.find('_'), text_.size());
    const std::string_view taken = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return taken;
  }

  // A number that follows a prefix.
  template <class Field>
  void number(std::string_view prefix, Field& field) {
    std::string_view digits = word();
    require(digits.starts_with(prefix));
    if (is_valid_) read_number(digits.substr(prefix.size()), field);
  }

  template <class Field>
  void read_number(std::string_view digits, Field& field) {
    const bool is_negative = digits.starts_with('-');
    if (is_negative) digits.remove_prefix(1);
    std::int64_t value = 0;
    require(!digits.empty() && digits.size() <= 10);
    for (const char c : digits) {
      require(c >= '0' && c <= '9');
      value = 10 * value + (c - '0');
    }
    if (is_negative) value = -value;
    field = static_cast<Field>(value);
    require(static_cast<std::int64_t>(field) == value);
  }

  void version(Algorithm& algorithm) {
    std::string_view rest = word();
    for (std::uint8_t* const field : {&algorithm.major, &algorithm.minor, &algorithm.patch}) {
      const std::size_t end = std::min(rest.find('.'), rest.size());
      read_number(rest.substr(0, end), *field);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    require(rest.empty());
  }

  void operand(OperandRule& rule) {
    const std::string_view taken = word();
    const std::size_t letter = taken.find_last_not_of("0123456789");
    require(letter != std::string_view::npos && letter > 0);
    if (!is_valid_) return;
    const auto dtype = parse_dtype(taken.substr(0, letter));
    const char layout = taken[letter];
    require(dtype.has_value() && (layout == 'r' || layout == 'c' || layout == 'a'));
    if (!is_valid_) return;
    rule.dtype = *dtype;
    rule.layout = layout == 'r'   ? LayoutRule::row
                  : layout == 'c' ? LayoutRule::column
                                  : LayoutRule::any;
    read_number(taken.substr(letter + 1), rule.alignment);
  }

  void c(OperandRules& rules) {
    rules.has_c = !text_.starts_with("none_");
    if (rules.has_c)
      operand(rules.c);
    else
      (void)word();
  }

  void accumulator(DType& dtype) {
    const auto read = parse_dtype(word());
    require(read.has_value());
    if (read) dtype = *read;
  }

  void math(Math& math) {
    std::string read(word());
    for (char& c : read) c = c == '-' ? '_' : c;
    const auto found = parse_math(read);
    require(found.has_value());
    if (found) math = *found;
  }

  void instruction(Algorithm& algorithm) {
    const std::string_view read = word();
    require(read == "mma" || read == "fma");
    algorithm.uses_tensor_cores = read == "mma" ? 1 : 0;
  }

  bool is_whole() const { return is_valid_ && text_.empty(); }

 private:
  void require(bool condition) { is_valid_ = is_valid_ && condition; }

  std::string_view text_;
  bool is_valid_ = true;
};

constexpr std::string_view prefix = "cublaslt_v1_";

}  // namespace

std::optional<Algorithm> read_algorithm(const Library& library, const AlgorithmData& data,
                                        Target device) {
  Algorithm algorithm;
  ConfigReader reader(library, data);
  reader.read<std::int32_t>(ConfigAttribute::id, algorithm.id);
  reader.read<std::uint32_t>(ConfigAttribute::tile, algorithm.tile);
  reader.read<std::int32_t>(ConfigAttribute::splits, algorithm.splits);
  reader.read<std::uint32_t>(ConfigAttribute::reduction_scheme, algorithm.reduction);
  reader.read<std::uint32_t>(ConfigAttribute::swizzle, algorithm.swizzle);
  reader.read<std::uint32_t>(ConfigAttribute::custom_option, algorithm.option);
  reader.read<std::uint32_t>(ConfigAttribute::stages, algorithm.stages);
  reader.read_if_any<std::uint16_t>(ConfigAttribute::inner_shape, algorithm.inner_shape);
  reader.read_if_any<std::uint16_t>(ConfigAttribute::cluster_shape, algorithm.cluster_shape);
  algorithm.uses_tensor_cores = uses_tensor_cores(library, data) ? 1 : 0;
  algorithm.architecture = static_cast<std::uint8_t>(device.architecture);
  algorithm.major = static_cast<std::uint8_t>(library.version.major);
  algorithm.minor = static_cast<std::uint8_t>(library.version.minor);
  algorithm.patch = static_cast<std::uint8_t>(library.version.patch);
  if (!reader.fits()) return std::nullopt;
  return algorithm;
}

void configure(const Library& library, const Algorithm& algorithm, AlgorithmData& data) {
  const auto set = [&]<class Value>(ConfigAttribute attribute, Value value) {
    check(library,
          library.api.cublasLtMatmulAlgoConfigSetAttribute(&data, attribute, &value, sizeof value),
          "cublasLtMatmulAlgoConfigSetAttribute");
  };
  set(ConfigAttribute::tile, std::uint32_t{algorithm.tile});
  set(ConfigAttribute::stages, std::uint32_t{algorithm.stages});
  set(ConfigAttribute::splits, std::int32_t{algorithm.splits});
  set(ConfigAttribute::reduction_scheme, std::uint32_t{algorithm.reduction});
  set(ConfigAttribute::swizzle, std::uint32_t{algorithm.swizzle});
  set(ConfigAttribute::custom_option, algorithm.option);
  if (algorithm.inner_shape != 0) set(ConfigAttribute::inner_shape, algorithm.inner_shape);
  if (algorithm.cluster_shape != 0) set(ConfigAttribute::cluster_shape, algorithm.cluster_shape);
}

std::vector<DesignField> fields_of(const Algorithm& algorithm) {
  return {{"library", to_string(algorithm.version())},
          {"algorithm", std::to_string(algorithm.id)},
          {"instruction", algorithm.uses_tensor_cores != 0 ? "mma" : "fma"},
          {"tile", word_of(tiles, algorithm.tile)},
          {"stages", word_of(stage_names, algorithm.stages)},
          {"cluster", word_of(clusters, algorithm.cluster_shape)},
          {"split_k", std::to_string(algorithm.splits)},
          {"reduction", reduction_text(algorithm.reduction)},
          {"swizzle", std::to_string(algorithm.swizzle)},
          {"inner_shape", std::to_string(algorithm.inner_shape)},
          {"option", std::to_string(algorithm.option)}};
}

std::string name_of(const OperandRules& rules, const Algorithm& algorithm) {
  return fmt::format(
      "{}{}_sm{}_{}_{}_{}_{}_{}_{}_id{}_tile{}_stages{}_cluster{}_splits{}_reduction{}_swizzle{}_"
      "inner{}_option{}_{}",
      prefix, to_string(algorithm.version()), algorithm.architecture, operand_text(rules.a),
      operand_text(rules.b), operand_text(rules.out), rules.has_c ? operand_text(rules.c) : "none",
      alias(rules.accumulator), math_text(rules.math), algorithm.id, algorithm.tile,
      algorithm.stages, algorithm.cluster_shape, algorithm.splits, algorithm.reduction,
      algorithm.swizzle, algorithm.inner_shape, algorithm.option,
      algorithm.uses_tensor_cores != 0 ? "mma" : "fma");
}

std::optional<NamedAlgorithm> parse_name(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  NamedAlgorithm parsed;
  Algorithm& algorithm = parsed.algorithm;
  NameReader reader(name.substr(prefix.size()));
  reader.version(algorithm);
  reader.number("sm", algorithm.architecture);
  reader.operand(parsed.rules.a);
  reader.operand(parsed.rules.b);
  reader.operand(parsed.rules.out);
  reader.c(parsed.rules);
  reader.accumulator(parsed.rules.accumulator);
  reader.math(parsed.rules.math);
  reader.number("id", algorithm.id);
  reader.number("tile", algorithm.tile);
  reader.number("stages", algorithm.stages);
  reader.number("cluster", algorithm.cluster_shape);
  reader.number("splits", algorithm.splits);
  reader.number("reduction", algorithm.reduction);
  reader.number("swizzle", algorithm.swizzle);
  reader.number("inner", algorithm.inner_shape);
  reader.number("option", algorithm.option);
  reader.instruction(algorithm);
  if (!reader.is_whole() || name_of(parsed.rules, algorithm) != name) return std::nullopt;
  return parsed;
}

}  // namespace gemmery::cublaslt
