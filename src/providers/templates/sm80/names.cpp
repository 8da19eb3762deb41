// SPDX-License-Identifier: Apache-2.0
// The names of sm80 kernels.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "providers/templates/abi_type.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/sm80/convolution.hpp"
#include "providers/templates/sm80/design.hpp"

namespace gemmery::templates {
namespace {

// The word for how products are formed.
std::string math_word(Math math) {
  if (math == Math::native) return "mma";
  return math == Math::fp8_fast ? "mma-fast" : fmt::format("mma-{}", name(math));
}

std::optional<Math> read_math(std::string_view word) {
  for (const Math math : {Math::native, Math::tf32, Math::tf32x3, Math::bf16x3, Math::f16x3,
                          Math::bf16, Math::f16, Math::fp8_fast, Math::saturate})
    if (math_word(math) == word) return math;
  return std::nullopt;
}

// The suffix of the instruction's word if its k is not the default: "-k8".
constexpr std::string_view mma_k_words[] = {"-k8", "-k16"};
constexpr std::uint8_t mma_k_values[] = {8, 16};

std::string mma_k_word(std::uint8_t mma_k) {
  return mma_k > 0 ? fmt::format("-k{}", mma_k) : std::string();
}

// Removes such a suffix from the word.
std::uint8_t read_mma_k(std::string_view& word) {
  for (std::size_t at = 0; at < std::size(mma_k_words); ++at) {
    if (!word.ends_with(mma_k_words[at])) continue;
    word.remove_suffix(mma_k_words[at].size());
    return mma_k_values[at];
  }
  return 0;
}

// "128x128x32", "2x2x1", "parallel4", "m8", "s4"
std::optional<Sm80Tile> read_tile(std::span<const std::string_view> words) {
  const auto extents = read_integers(words[0], 3);
  const auto warps = read_integers(words[1], 3);
  const auto along_m = read_tagged(words[3], "m");
  const auto along_n = read_tagged(words[3], "n");
  const auto stages = read_tagged(words[4], "s");
  const auto band = along_m ? along_m : along_n;
  if (!extents || !warps || !band || !stages) return std::nullopt;
  const auto is_small = [](int value) { return value > 0 && value <= 255; };
  if (!std::ranges::all_of(*warps, is_small) || !is_small(*stages) || !is_small(*band) ||
      std::ranges::any_of(*extents, [](int extent) { return extent < 1 || extent > 1024; }))
    return std::nullopt;
  const auto split = read_split(words[2]);
  if (!split) return std::nullopt;
  const Sm80Tile tile{.m = static_cast<std::uint16_t>((*extents)[0]),
                      .n = static_cast<std::uint16_t>((*extents)[1]),
                      .k = static_cast<std::uint16_t>((*extents)[2]),
                      .warps_m = static_cast<std::uint8_t>((*warps)[0]),
                      .warps_n = static_cast<std::uint8_t>((*warps)[1]),
                      .warps_k = static_cast<std::uint8_t>((*warps)[2]),
                      .stages = static_cast<std::uint8_t>(*stages),
                      .raster = {.along = along_m ? abi::Along::m : abi::Along::n,
                                 .band = static_cast<unsigned char>(*band)}};
  return with_split(tile, split->mode, static_cast<std::uint16_t>(split->slices));
}

// The suffix of a grouped kernel's name: its schedule, what indices address, and whether it clears
// elements of no group.
constexpr std::string_view group_words[] = {"", "groups", "groups-persistent", "groups-host",
                                            "groups-list"};
constexpr std::string_view indexed_words[] = {"", "-rows", "-columns"};
constexpr std::string_view clearing_word = "-zero";

std::string group_word(const Sm80Tile& tile) {
  if (tile.conv != Sm80Conv::none) return fmt::format("_{}", conv_word(tile.conv));
  if (tile.groups == abi::GroupSchedule::none) return {};
  return fmt::format("_{}{}{}", group_words[static_cast<std::size_t>(tile.groups)],
                     indexed_words[static_cast<std::size_t>(tile.indexed)],
                     tile.clears_outside ? clearing_word : std::string_view());
}

struct GroupWord {
  abi::GroupSchedule schedule = abi::GroupSchedule::none;
  Sm80Conv conv = Sm80Conv::none;
  abi::IndexedExtent indexed = abi::IndexedExtent::none;
  bool clears_outside = false;
};

std::optional<GroupWord> read_group_word(std::string_view word) {
  GroupWord read{};
  read.conv = read_conv_word(word);
  if (read.conv != Sm80Conv::none) return read;
  read.clears_outside = word.ends_with(clearing_word);
  if (read.clears_outside) word.remove_suffix(clearing_word.size());
  for (std::size_t indexed = 1; indexed < std::size(indexed_words); ++indexed) {
    if (!word.ends_with(indexed_words[indexed])) continue;
    word.remove_suffix(indexed_words[indexed].size());
    read.indexed = static_cast<abi::IndexedExtent>(indexed);
  }
  const auto found = std::find(std::begin(group_words) + 1, std::end(group_words), word);
  if (found == std::end(group_words)) return std::nullopt;
  read.schedule = static_cast<abi::GroupSchedule>(found - std::begin(group_words));
  return read;
}

// A kernel may have any alignment; discovery offers some.
bool is_input(const OperandRule& rule) noexcept {
  return rule.layout != LayoutRule::any && rule.alignment >= byte_width(rule.dtype) &&
         abi::detail::is_vector_of(abi_type(rule.dtype), rule.alignment);
}
bool is_output(const OperandRule& rule) noexcept {
  if (rule.layout == LayoutRule::any) return rule.alignment == byte_width(rule.dtype);
  return abi::detail::is_vector_of(abi_type(rule.dtype), rule.alignment);
}

bool is_served(const OperandRules& rules) {
  if (!sm80_math(rules.a.dtype, rules.b.dtype, rules.accumulator, rules.math) ||
      !has_scales_of_codes(rules))
    return false;
  const auto outputs = sm80_outputs(rules.accumulator);
  const auto is_served_output = [&](const OperandRule& rule) {
    return std::ranges::find(outputs, rule.dtype) != outputs.end() && is_output(rule);
  };
  return is_input(rules.a) && is_input(rules.b) && is_served_output(rules.out) &&
         (!rules.has_c || is_served_output(rules.c));
}

}  // namespace

std::string sm80_name(const Kernel& kernel) {
  const Sm80Tile tile = sm80_tile(kernel);
  return gemm_name(fmt::format("sm80v{}", sm80_version), kernel.operands(),
                   fmt::format("{}{}_{}_{}_{}_{}{}_s{}{}", math_word(kernel.operands().math),
                               mma_k_word(tile.mma_k), tile_text(tile), warps_text(tile),
                               split_text(tile), tile.raster.along == abi::Along::m ? 'm' : 'n',
                               tile.raster.band, tile.stages, group_word(tile)),
                   kernel.epilogue());
}

std::optional<Sm80Parts> parse_sm80_name(std::string_view name) {
  constexpr std::size_t design_words = 6;
  const std::string head = fmt::format("sm80v{}", sm80_version);
  auto parts = read_gemm_name(name, head, design_words + 1, NamedCompanions::scales);
  const auto groups = parts ? read_group_word(parts->design.back()) : std::nullopt;
  if (!groups) parts = read_gemm_name(name, head, design_words, NamedCompanions::scales);
  if (!parts) return std::nullopt;
  std::string_view instruction = parts->design[0];
  const std::uint8_t mma_k = read_mma_k(instruction);
  const auto math = read_math(instruction);
  auto tile = read_tile(std::span(parts->design).subspan(1));
  if (!math || !tile) return std::nullopt;
  tile->mma_k = mma_k;
  if (groups) {
    tile->groups = groups->schedule;
    tile->conv = groups->conv;
    tile->indexed = groups->indexed;
    tile->clears_outside = groups->clears_outside;
  }
  parts->rules.math = *math;
  if (!is_served(parts->rules) || !takes_indices(parts->rules, tile->indexed) ||
      !takes_conv_layouts(parts->rules, tile->conv) ||
      !abi::is_legal(sm80_design(parts->rules, *tile)))
    return std::nullopt;
  return Sm80Parts{.rules = parts->rules, .tile = *tile, .epilogue = parts->epilogue};
}

}  // namespace gemmery::templates
