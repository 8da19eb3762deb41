// SPDX-License-Identifier: Apache-2.0
// sm90 kernels to and from their names.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "providers/templates/name_words.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/sm90/design.hpp"

namespace gemmery::templates {
namespace {

bool is_sm90_rule(const OperandRule& rule) {
  return rule.layout != LayoutRule::any && rule.alignment == widest_access;
}

bool contains(std::span<const DType> types, DType dtype) {
  return std::ranges::find(types, dtype) != types.end();
}

// True for the rules of out: stored by TMA, or by threads to adjacent elements of less alignment or
// to any strides.
bool is_output_rule(const OperandRule& rule) {
  if (is_sm90_rule(rule)) return true;
  const int width = static_cast<int>(byte_width(rule.dtype));
  const bool is_narrow = std::has_single_bit(rule.alignment) && rule.alignment >= width &&
                         rule.alignment < widest_access;
  return rule.layout == LayoutRule::any ? rule.alignment == width : is_narrow;
}

// True for the rules of C: the layout of out, or any strides.
bool is_c_rule(const OperandRule& rule, const OperandRule& out) {
  return (is_sm90_rule(rule) && rule.layout == out.layout) ||
         (is_output_rule(rule) && rule.layout == LayoutRule::any);
}

bool is_input_rule(const OperandRule& rule) {
  return is_sm90_rule(rule) || rule == repacked_rule(rule.dtype, rule.layout);
}

// Codes are K-major as they are.
bool are_input_rules(const OperandRules& rules) {
  if (decodes_a_sm90(rules.a.dtype, rules.b.dtype))
    return is_sm90_rule(rules.a) && rules.a.layout == LayoutRule::row && is_input_rule(rules.b);
  if (decodes_a_sm90(rules.b.dtype, rules.a.dtype))
    return is_sm90_rule(rules.b) && rules.b.layout == LayoutRule::column && is_input_rule(rules.a);
  return is_input_rule(rules.a) && is_input_rule(rules.b);
}

bool is_served(const OperandRules& rules) {
  const Sm90Products products{rules.a.dtype, rules.b.dtype, rules.accumulator, rules.math};
  const auto all = sm90_products();
  return std::ranges::find(all, products) != all.end() && are_input_rules(rules) &&
         is_output_rule(rules.out) &&
         contains(sm90_outputs(rules.a.dtype, rules.b.dtype), rules.out.dtype) &&
         (!rules.has_c || (is_c_rule(rules.c, rules.out) &&
                           contains(sm90_addends(rules.a.dtype, rules.b.dtype), rules.c.dtype)));
}

// The word for the math of a kernel; empty for the default of its types.
std::string math_word(Math math) {
  switch (math) {
    case Math::native:
      return {};
    case Math::fp8_fast:
      return "wgmma-fast";
    case Math::fp8_promoted:
      return "wgmma-promoted";
    default:
      return fmt::format("wgmma-{}", name(math));
  }
}

std::optional<Math> read_math(std::string_view word) {
  for (const Sm90Products& products : sm90_products())
    if (math_word(products.math) == word) return products.math;
  return std::nullopt;
}

// The schedule of a name, and if it adds a vector.
std::optional<Sm90Tile> read_schedule(std::string_view text) {
  for (const abi::Schedule schedule : sm90_schedules) {
    for (const bool adds_vector : {false, true}) {
      Sm90Tile tile{};
      tile.schedule = schedule;
      tile.adds_vector = adds_vector;
      if (schedule_text(tile) == text) return tile;
    }
  }
  return std::nullopt;
}

std::optional<abi::Raster> read_raster(std::string_view text) {
  const auto along_m = read_tagged(text, "m");
  const auto along_n = read_tagged(text, "n");
  const auto band = along_m ? along_m : along_n;
  if (!band || *band > 64) return std::nullopt;
  return abi::Raster{.along = along_m ? abi::Along::m : abi::Along::n,
                     .band = static_cast<unsigned char>(*band)};
}

// "k4", or as in sm80 "parallel4", or both in this order; 255 slices at most.
std::optional<Sm90Tile> read_split_words(std::span<const std::string_view> words) {
  Sm90Tile tile{};
  if (words.empty()) return tile;
  if (const auto blocks = read_tagged(words.front(), "k")) {
    if (*blocks < 2 || *blocks > 8) return std::nullopt;
    tile.split_k = static_cast<std::uint8_t>(*blocks);
    words = words.subspan(1);
  }
  if (words.empty()) return tile;
  const auto split = read_split(words.front());
  if (words.size() > 1 || !split || split->mode == abi::SplitMode::none || split->slices > 255)
    return std::nullopt;
  tile.split = split->mode;
  tile.slices = static_cast<std::uint8_t>(split->slices);
  return tile;
}

// The words: "128x256x64", "1x1", "k4", "parallel4" or both if k is split, "coop", "m8", "s4",
// "scale128-rows" for scales of blocks of k, "packa" if A is repacked, "regb" if B goes through
// registers, "pointers" if batches may be by pointers, "groups-persistent" or "groups-host" for
// groups, followed by "-zero" if elements outside of groups become zero, "-gather" if rows of A and
// "-scatter" if rows of out are found by index, "groups-list" for a list of problems,
// "conv2d-fprop" for a convolution.
constexpr std::size_t fewest_design_words = 5;
constexpr std::size_t most_split_words = 2;
constexpr std::size_t most_design_words = 11;

// The last word of a design, by Sm90Form.
constexpr std::string_view form_words[] = {"",
                                           "pointers",
                                           "groups-persistent",
                                           "groups-host",
                                           "groups-persistent-zero",
                                           "groups-host-zero",
                                           "groups-persistent-scatter",
                                           "groups-persistent-gather",
                                           "groups-persistent-gather-scatter",
                                           "groups-persistent-gather-zero",
                                           "groups-list",
                                           "conv1d-fprop",
                                           "conv2d-fprop",
                                           "conv3d-fprop",
                                           "conv1d-dgrad",
                                           "conv2d-dgrad",
                                           "conv3d-dgrad",
                                           "conv1d-wgrad",
                                           "conv2d-wgrad",
                                           "conv3d-wgrad",
                                           "conv1d-dgrad-strided",
                                           "conv2d-dgrad-strided",
                                           "conv3d-dgrad-strided",
                                           "conv1d-wgrad-padded",
                                           "conv2d-wgrad-padded",
                                           "conv3d-wgrad-padded"};

std::string_view form_word(Sm90Form form) { return form_words[static_cast<std::size_t>(form)]; }
Sm90Form read_form(std::string_view word) {
  const auto* const found = std::ranges::find(form_words, word);
  return found == std::end(form_words) ? Sm90Form::strided
                                       : static_cast<Sm90Form>(found - std::begin(form_words));
}

bool is_repacking_word(std::string_view word) { return word.starts_with("pack"); }
bool is_register_word(std::string_view word) { return word == "rega" || word == "regb"; }

constexpr std::string_view scale_tag = "scale";
constexpr std::string_view vector_words[] = {"", "-rows", "-columns", "-both"};
constexpr int scaled_ks[] = {16, 32, 64, 128};

// What "scale128-rows" says of a tile; nothing for other words.
std::optional<Sm90Tile> read_scales(std::string_view word) {
  for (const int k : scaled_ks) {
    for (std::size_t vectors = 1; vectors < std::size(vector_words); ++vectors) {
      Sm90Tile tile{};
      tile.scaled_k = static_cast<std::uint8_t>(k);
      tile.scale_vectors = static_cast<abi::ScaleVectors>(vectors);
      if (word.starts_with(scale_tag) && word.substr(scale_tag.size()) == scale_text(tile))
        return tile;
    }
  }
  return std::nullopt;
}

std::optional<Sm90Tile> read_tile(std::span<const std::string_view> words) {
  const Sm90Form form = read_form(words.back());
  if (form != Sm90Form::strided) words = words.first(words.size() - 1);
  const bool by_registers = !words.empty() && is_register_word(words.back());
  if (by_registers) words = words.first(words.size() - 1);
  if (!words.empty() && is_repacking_word(words.back())) words = words.first(words.size() - 1);
  const auto scales = words.empty() ? std::nullopt : read_scales(words.back());
  if (scales) words = words.first(words.size() - 1);
  if (words.size() < fewest_design_words || words.size() > fewest_design_words + most_split_words)
    return std::nullopt;
  const auto extents = read_integers(words[0], 3);
  const auto blocks = read_integers(words[1], 2);
  const auto split = read_split_words(words.subspan(2, words.size() - fewest_design_words));
  const auto others = words.last(3);
  const auto schedule = read_schedule(others[0]);
  const auto raster = read_raster(others[1]);
  const auto count = read_tagged(others[2], "s");
  if (!extents || !blocks || !count || !schedule || !raster || !split) return std::nullopt;
  if ((*extents)[0] > 320 || (*extents)[1] > 256 || (*blocks)[0] > 2 || (*blocks)[1] > 2 ||
      *count > 8) {
    return std::nullopt;
  }
  return Sm90Tile{.m = static_cast<std::uint16_t>((*extents)[0]),
                  .n = static_cast<std::uint16_t>((*extents)[1]),
                  .cluster_m = static_cast<std::uint8_t>((*blocks)[0]),
                  .cluster_n = static_cast<std::uint8_t>((*blocks)[1]),
                  .stages = static_cast<std::uint8_t>(*count),
                  .schedule = schedule->schedule,
                  .raster = *raster,
                  .split_k = split->split_k,
                  .adds_vector = schedule->adds_vector,
                  .slices = split->slices,
                  .split = split->split,
                  .by_registers = by_registers,
                  .form = form,
                  .scale_vectors = scales ? scales->scale_vectors : abi::ScaleVectors::none,
                  .scaled_k = scales ? scales->scaled_k : std::uint8_t{0}};
}

}  // namespace

std::string tile_text(const OperandRules& rules, const Sm90Tile& tile) {
  return fmt::format("{}x{}x{}", tile.m, tile.n, abi::tile_k(sm90_design(rules, tile)));
}

SplitWord split_word(const Sm90Tile& tile) noexcept {
  return {.mode = tile.split, .slices = tile.slices};
}

std::string split_text(const Sm90Tile& tile) {
  if (tile.split == abi::SplitMode::none) return std::to_string(tile.split_k);
  const std::string parts = split_text(split_word(tile));
  return tile.split_k > 1 ? fmt::format("k{}_{}", tile.split_k, parts) : parts;
}

std::string schedule_text(const Sm90Tile& tile) {
  constexpr std::string_view texts[] = {"coop", "pingpong", "rotation"};
  static_assert(std::size(texts) == std::size(sm90_schedules));
  return fmt::format("{}{}", texts[static_cast<std::size_t>(tile.schedule)],
                     tile.adds_vector ? "-add" : "");
}

std::string raster_text(abi::Raster raster) {
  return fmt::format("{}{}", raster.along == abi::Along::m ? 'm' : 'n', raster.band);
}

std::string repacked_text(const OperandRules& rules) {
  return std::string(is_repacked(rules.a) ? "a" : "") + (is_repacked(rules.b) ? "b" : "");
}

std::string scale_text(const Sm90Tile& tile) {
  if (tile.scale_vectors == abi::ScaleVectors::none) return {};
  return fmt::format("{}{}", tile.scaled_k,
                     vector_words[static_cast<std::size_t>(tile.scale_vectors)]);
}

std::string register_text(const OperandRules& rules, const Sm90Tile& tile) {
  if (!tile.by_registers) return {};
  return is_turned(rules, tile) ? "b" : "a";
}

std::string operation_text(Sm90Form form) {
  if (form < Sm90Form::fprop_1d) return "a GEMM";
  std::string text(form_word(form));
  text[text.find('-')] = '_';
  if (const std::size_t rest = text.find('-'); rest != std::string::npos)
    text.replace(rest, std::string::npos,
                 form <= Sm90Form::strided_dgrad_3d ? " with a stride" : " with padded taps");
  return text;
}

std::string sm90_name(const Kernel& kernel) {
  const Sm90Tile tile = sm90_tile(kernel);
  const std::string_view tag = tile.split == abi::SplitMode::none ? "k" : "";
  const bool is_split = tile.split_k > 1 || tile.split != abi::SplitMode::none;
  const std::string math = math_word(kernel.operands().math);
  const std::string repacked = repacked_text(kernel.operands());
  const std::string registers = register_text(kernel.operands(), tile);
  const std::string scales = scale_text(tile);
  return gemm_name(
      fmt::format("sm90v{}", sm90_version), kernel.operands(),
      fmt::format("{}{}{}_{}x{}{}_{}_{}_s{}{}{}{}{}{}{}{}", math, math.empty() ? "" : "_",
                  tile_text(kernel.operands(), tile), tile.cluster_m, tile.cluster_n,
                  is_split ? fmt::format("_{}{}", tag, split_text(tile)) : "", schedule_text(tile),
                  raster_text(tile.raster), tile.stages, scales.empty() ? "" : "_scale", scales,
                  repacked.empty() ? "" : "_pack" + repacked, registers.empty() ? "" : "_reg",
                  registers, tile.form == Sm90Form::strided ? "" : "_", form_word(tile.form)),
      kernel.epilogue());
}

namespace {

// Parses a name with any number of design words.
std::optional<GemmNameParts> read_sm90_parts(std::string_view name) {
  const std::string head = fmt::format("sm90v{}", sm90_version);
  for (std::size_t words = fewest_design_words; words <= most_design_words; ++words)
    if (auto parts = read_gemm_name(name, head, words, NamedCompanions::scales)) return parts;
  return std::nullopt;
}

}  // namespace

namespace {

// True if the register operand is the one that the name says, for the default program or for codes.
bool is_register_kernel(const GemmNameParts& parts, std::span<const std::string_view> words,
                        const Sm90Tile& tile) {
  const std::string_view word =
      tile.form == Sm90Form::strided ? words.back() : words[words.size() - 2];
  return (parts.epilogue == default_epilogue ||
          is_mixed_sm90(parts.rules.a.dtype, parts.rules.b.dtype)) &&
         word == "reg" + register_text(parts.rules, tile) && can_store(parts.rules, tile);
}

}  // namespace

std::optional<Sm90Parts> parse_sm90_name(std::string_view name) {
  auto name_parts = read_sm90_parts(name);
  if (!name_parts) return std::nullopt;
  std::span<const std::string_view> words = name_parts->design;
  if (words.front().starts_with("wgmma-")) {
    const auto math = read_math(words.front());
    if (!math) return std::nullopt;
    name_parts->rules.math = *math;
    words = words.subspan(1);
  }
  const auto tile = read_tile(words);
  if (!tile) return std::nullopt;
  if (!is_served(name_parts->rules)) return std::nullopt;
  if (tile_text(name_parts->rules, *tile) != words.front()) return std::nullopt;
  const OperandRules& rules = name_parts->rules;
  const bool reads_scales = rules.a_companions.are_used() || rules.b_companions.are_used();
  if (reads_scales != tile->has_scales()) return std::nullopt;
  if (is_for_programs(*tile) && name_parts->epilogue == default_epilogue) return std::nullopt;
  if (tile->by_registers && !is_register_kernel(*name_parts, words, *tile)) return std::nullopt;
  // First without its program: the shared memory of a program is computed for legal tiles only.
  if (!is_legal(name_parts->rules, *tile)) return std::nullopt;
  const abi::Sm90Design design = sm90_design(name_parts->rules, *tile);
  const ProgramTensors tensors =
      program_tensors(name_parts->epilogue, is_turned(name_parts->rules, *tile));
  if (!abi::is_legal(with_program(design, tensors)) ||
      (tile->adds_vector && !has_vector_addend(tensors, design)))
    return std::nullopt;
  return Sm90Parts{.rules = name_parts->rules, .tile = *tile, .epilogue = name_parts->epilogue};
}

}  // namespace gemmery::templates
