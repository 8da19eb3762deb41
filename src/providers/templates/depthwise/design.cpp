// SPDX-License-Identifier: Apache-2.0
// The tiles for a filter, and conversion of kernels to and from names.
#include "providers/templates/depthwise/design.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "core/arithmetic.hpp"
#include "providers/templates/abi_type.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/simt/design.hpp"

namespace gemmery::templates {
namespace {

constexpr std::array<std::string_view, 4> kind_words{"fprop", "dgrad", "dgrad-strided", "wgrad"};

// Strips that divide lines of 7, 14, 28, 56 or 112 pixels, and shorter ones for few pixels.
constexpr std::array<std::uint8_t, 3> strip_pixels{2, 4, 7};

// The number of channels of out, or of dw.
std::int64_t channels_of(const Convolution& convolution) noexcept {
  return convolution.kind == ConvKind::dgrad ? convolution.channels : convolution.filters;
}

// A filter's extents along width, and its number of lines.
struct FilterShape {
  int lines;
  int width;
  int stride;
  bool is_dense;  // no dilation along width
};

FilterShape shape_of(const Convolution& convolution) {
  return {.lines = convolution.filter[1],
          .width = convolution.filter[2],
          .stride = convolution.kind == ConvKind::dgrad ? 1 : convolution.stride[2],
          .is_dense = convolution.dilation[2] == 1 || convolution.filter[2] == 1};
}

// As many lanes as there are channels for, up to 128 bytes of each pixel.
std::uint8_t lanes_for(const OperandRules& rules, int channels, std::int64_t of_problem) {
  const auto width =
      static_cast<std::int64_t>(std::max(byte_width(rules.a.dtype), byte_width(rules.b.dtype)));
  const std::int64_t most = std::max<std::int64_t>(128 / (channels * width), 1);
  const auto needed = std::bit_ceil(static_cast<std::uint64_t>(divide_up(of_problem, channels)));
  return static_cast<std::uint8_t>(
      std::min({most, static_cast<std::int64_t>(needed), std::int64_t{32}}));
}

// Sets the number of taps along width that share a strip's source pixels in registers.
void set_taps(DepthwiseTile& tile, const FilterShape& shape, int taps) {
  const bool is_together = shape.is_dense && taps > 1 && shape.stride <= 4 &&
                           tile.kind != abi::DepthwiseKind::strided_dgrad;
  tile.taps = static_cast<std::uint8_t>(is_together ? taps : 1);
  tile.stride = static_cast<std::uint8_t>(is_together ? shape.stride : 1);
}

// Sets as many taps of a filter as fit the registers; false if none do.
bool set_filter(DepthwiseTile& tile, const FilterShape& shape, const OperandRules& rules) {
  const auto is_legal = [&] { return abi::is_legal(depthwise_design(rules, tile)); };
  if (tile.kind != abi::DepthwiseKind::wgrad) {
    set_taps(tile, shape, shape.width);
    if (!is_legal()) set_taps(tile, shape, 1);
    return is_legal();
  }
  // The smallest number of equal chunks of taps.
  for (int chunks = 1; chunks <= shape.width; ++chunks) {
    set_taps(tile, shape, static_cast<int>(divide_up(shape.width, chunks)));
    for (int parts = 1; parts <= shape.lines; ++parts) {
      const std::int64_t rows = divide_up(shape.lines, parts);
      tile.rows = static_cast<std::uint8_t>(std::min<std::int64_t>(rows, 255));
      if (is_legal()) return true;
    }
  }
  return false;
}

// Visits tiles with all strips and vectors of channels for a filter of this shape.
template <class Visit>
void for_each_tile(abi::DepthwiseKind kind, const FilterShape& shape, const OperandRules& rules,
                   std::int64_t channels, Visit&& visit) {
  // wgrad has narrower vectors, too: more taps at a time.
  const int widths = kind == abi::DepthwiseKind::wgrad ? 2 : 1;
  int found_widths = 0;
  for (const int vector : {8, 4, 2, 1}) {
    bool is_found = false;
    for (const std::uint8_t pixels : strip_pixels) {
      DepthwiseTile tile{.kind = kind,
                         .pixels = pixels,
                         .channels = static_cast<std::uint8_t>(vector),
                         .lanes = lanes_for(rules, vector, channels)};
      if (!set_filter(tile, shape, rules)) continue;
      is_found = true;
      visit(tile);
    }
    if (is_found && ++found_widths == widths) return;
  }
}

std::vector<std::uint16_t> slices_for(const abi::DepthwiseDesign& design,
                                      const Convolution& convolution, const DeviceInfo& device) {
  std::vector<std::uint16_t> all{1};
  const std::int64_t tiles = channel_tiles(design, convolution) * tap_tiles(design, convolution);
  const std::int64_t places = std::int64_t{2} * std::max(device.multiprocessors, 1);
  const std::int64_t strips = strip_tiles(design, convolution);
  for (std::int64_t slices = 2; slices <= 1024; slices *= 2) {
    if (tiles * slices > 2 * places || slices > strips) break;
    all.push_back(static_cast<std::uint16_t>(slices));
  }
  return all;
}

// --- names --------------------------------------------------------------------------------------

std::optional<abi::DepthwiseKind> read_kind(std::string_view word) {
  const auto found = std::ranges::find(kind_words, word);
  if (found == kind_words.end()) return std::nullopt;
  return static_cast<abi::DepthwiseKind>(found - kind_words.begin());
}

// "fprop", "1x3x1", "4x8x8", "none"
std::optional<DepthwiseTile> read_tile(const std::vector<std::string_view>& words) {
  const auto kind = read_kind(words[0]);
  const auto window = read_integers(words[1], 3);
  const auto thread = read_integers(words[2], 3);
  const auto split = read_split(words[3]);
  if (!kind || !window || !thread || !split) return std::nullopt;
  const auto is_byte = [](int number) { return number > 0 && number < 256; };
  if (!std::ranges::all_of(*window, is_byte) || !std::ranges::all_of(*thread, is_byte))
    return std::nullopt;
  const bool has_slices = split->mode == abi::SplitMode::parallel;
  if (split->mode != abi::SplitMode::none && !has_slices) return std::nullopt;
  if (has_slices && *kind != abi::DepthwiseKind::wgrad) return std::nullopt;
  const auto byte = [](int number) { return static_cast<std::uint8_t>(number); };
  return DepthwiseTile{.kind = *kind,
                       .rows = byte((*window)[0]),
                       .taps = byte((*window)[1]),
                       .stride = byte((*window)[2]),
                       .pixels = byte((*thread)[0]),
                       .channels = byte((*thread)[1]),
                       .lanes = byte((*thread)[2]),
                       .slices = static_cast<std::uint16_t>(split->slices)};
}

bool is_by_element(const OperandRule& rule) {
  return rule.layout == LayoutRule::any && rule.alignment == byte_width(rule.dtype);
}

}  // namespace

bool is_depthwise(const Convolution& convolution) noexcept {
  return convolution.groups > 1 && convolution.groups == convolution.channels;
}

abi::DepthwiseKind depthwise_kind(const Convolution& convolution) noexcept {
  switch (convolution.kind) {
    case ConvKind::fprop:
      return abi::DepthwiseKind::fprop;
    case ConvKind::dgrad:
      return has_phases(convolution) ? abi::DepthwiseKind::strided_dgrad
                                     : abi::DepthwiseKind::dgrad;
    case ConvKind::wgrad:
      break;
  }
  return abi::DepthwiseKind::wgrad;
}

std::int64_t filters_of_channel(const Convolution& convolution) noexcept {
  return convolution.filters / convolution.groups;
}

std::int64_t kept_taps(const Convolution& convolution) noexcept {
  const std::int64_t taps =
      std::int64_t{convolution.filter[0]} * convolution.filter[1] * convolution.filter[2];
  return convolution.kind == ConvKind::dgrad ? taps * filters_of_channel(convolution) : taps;
}

std::int64_t filter_bytes_of(const abi::DepthwiseDesign& design, const Convolution& convolution) {
  const std::int64_t taps = abi::is_wgrad(design) ? 1 : kept_taps(convolution);
  return (std::int64_t{abi::depthwise_shared_bytes(design, 1)} * taps + 15) / 16 * 16;
}

std::int64_t shared_bytes_of(const abi::DepthwiseDesign& design, const GemmProblem& problem) {
  const auto outputs = program_tensors(problem.epilogue, false).outputs;
  const auto reductions = std::ranges::count_if(outputs, [](const abi::EpilogueTensor& output) {
    return output.reduction != abi::Reduction::none;
  });
  return filter_bytes_of(design, *problem.convolution) +
         reductions * abi::depthwise_reduction_bytes(design);
}

bool fits_taps(const DepthwiseTile& tile, const Convolution& convolution) noexcept {
  if (tile.taps == 1) return true;
  const FilterShape shape = shape_of(convolution);
  const bool holds = tile.kind == abi::DepthwiseKind::wgrad || tile.taps == shape.width;
  return holds && shape.is_dense && tile.stride == shape.stride;
}

std::int64_t tap_tiles(const abi::DepthwiseDesign& design,
                       const Convolution& convolution) noexcept {
  return convolution.filter[0] * divide_up(convolution.filter[1], design.rows) *
         divide_up(convolution.filter[2], design.taps);
}

std::int64_t channel_tiles(const abi::DepthwiseDesign& design,
                           const Convolution& convolution) noexcept {
  return divide_up(channels_of(convolution), abi::tile_channels(design));
}

std::int64_t strip_tiles(const abi::DepthwiseDesign& design,
                         const Convolution& convolution) noexcept {
  const bool is_dgrad = convolution.kind == ConvKind::dgrad;
  std::int64_t lines = convolution.images;
  std::int64_t width = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    width = is_dgrad ? pixels_along(convolution, d, 0) : convolution.output[d];
    if (d < 2) lines *= width;
  }
  const std::int64_t strips = lines * divide_up(width, design.pixels);
  const std::int64_t phases =
      design.kind == abi::DepthwiseKind::strided_dgrad ? count_phases(convolution) : 1;
  return divide_up(strips, abi::tile_strips(design)) * phases;
}

DepthwiseWork depthwise_work(const DepthwiseTile& tile, const abi::DepthwiseDesign& design,
                             const Convolution& convolution, int multiprocessors) noexcept {
  // Several equal shares for each block that runs at a time, so that little time is lost at the
  // end.
  constexpr std::int64_t shares_a_multiprocessor = 8;
  const std::int64_t tiles = strip_tiles(design, convolution);
  const std::int64_t wanted =
      abi::is_wgrad(design)
          ? tile.slices
          : divide_up(shares_a_multiprocessor * std::max(multiprocessors, 1),
                      std::max<std::int64_t>(channel_tiles(design, convolution), 1));
  const std::int64_t per_unit =
      divide_up(tiles, std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(tiles, 1)));
  return {.tiles = tiles,
          .tiles_per_unit = per_unit,
          .shares = per_unit > 0 ? divide_up(tiles, per_unit) : 1};
}

std::vector<DepthwiseTile> depthwise_tiles(const OperandRules& rules, const GemmProblem& problem,
                                           const DeviceInfo& device) {
  const Convolution& convolution = *problem.convolution;
  const abi::DepthwiseKind kind = depthwise_kind(convolution);
  std::vector<DepthwiseTile> tiles;
  const auto add = [&](DepthwiseTile tile) {
    const auto shared_bytes = [&] {
      return shared_bytes_of(depthwise_design(rules, tile), problem);
    };
    while (tile.lanes > 1 && shared_bytes() > abi::most_depthwise_shared_bytes) tile.lanes /= 2;
    if (shared_bytes() > abi::most_depthwise_shared_bytes) return;
    const abi::DepthwiseDesign design = depthwise_design(rules, tile);
    if (!abi::is_legal(design)) return;
    if (kind != abi::DepthwiseKind::wgrad) {
      tiles.push_back(tile);
      return;
    }
    for (const std::uint16_t slices : slices_for(design, convolution, device)) {
      tile.slices = slices;
      tiles.push_back(tile);
    }
  };
  for_each_tile(kind, shape_of(convolution), rules, channels_of(convolution), add);
  return tiles;
}

std::vector<DepthwiseTile> listed_depthwise_tiles(const OperandRules& rules) {
  constexpr std::int64_t many_channels = 1024;
  constexpr std::array<FilterShape, 4> shapes{
      {{3, 3, 1, true}, {3, 3, 2, true}, {5, 5, 1, true}, {7, 7, 1, false}}};
  std::vector<DepthwiseTile> tiles;
  const auto add = [&](const DepthwiseTile& tile) {
    if (std::ranges::find(tiles, tile) == tiles.end()) tiles.push_back(tile);
  };
  for (std::size_t kind = 0; kind < kind_words.size(); ++kind)
    for (const FilterShape& shape : shapes) {
      const auto of = static_cast<abi::DepthwiseKind>(kind);
      const bool has_stride = of == abi::DepthwiseKind::fprop || of == abi::DepthwiseKind::wgrad;
      if (shape.stride == 1 || has_stride) for_each_tile(of, shape, rules, many_channels, add);
    }
  return tiles;
}

abi::DepthwiseDesign depthwise_design(const OperandRules& rules,
                                      const DepthwiseTile& tile) noexcept {
  const OperandRule& c = rules.has_c ? rules.c : rules.out;
  return {.a = abi_type(rules.a.dtype),
          .b = abi_type(rules.b.dtype),
          .c = abi_type(c.dtype),
          .out = abi_type(rules.out.dtype),
          .accumulator = abi_type(rules.accumulator),
          .kind = tile.kind,
          .channels = tile.channels,
          .pixels = tile.pixels,
          .rows = tile.rows,
          .taps = tile.taps,
          .stride = tile.stride,
          .lanes = tile.lanes,
          .has_c = rules.has_c};
}

DepthwiseTile depthwise_tile(const Kernel& kernel) noexcept {
  return kernel.design().as<DepthwiseTile>();
}

abi::DepthwiseDesign depthwise_design(const Kernel& kernel) noexcept {
  return depthwise_design(kernel.operands(), depthwise_tile(kernel));
}

std::string_view kind_text(abi::DepthwiseKind kind) noexcept {
  return kind_words[static_cast<std::size_t>(kind)];
}

SplitWord split_word(const DepthwiseTile& tile) noexcept {
  if (tile.slices == 1) return {};
  return {.mode = abi::SplitMode::parallel, .slices = tile.slices};
}

std::string depthwise_name(const Kernel& kernel) {
  const DepthwiseTile tile = depthwise_tile(kernel);
  return gemm_name(fmt::format("depthwise{}", depthwise_version), kernel.operands(),
                   fmt::format("{}_{}x{}x{}_{}x{}x{}_{}", kind_text(tile.kind), tile.rows,
                               tile.taps, tile.stride, tile.pixels, tile.channels, tile.lanes,
                               split_text(split_word(tile))),
                   kernel.epilogue());
}

std::optional<DepthwiseParts> parse_depthwise_name(std::string_view name) {
  const auto parts = read_gemm_name(name, fmt::format("depthwise{}", depthwise_version), 4);
  if (!parts) return std::nullopt;
  const OperandRules& rules = parts->rules;
  const auto tile = read_tile(parts->design);
  if (!tile || !simt_arithmetic(rules.a.dtype, rules.b.dtype, rules.accumulator) ||
      is_packed(rules.a.dtype) || is_packed(rules.b.dtype))
    return std::nullopt;
  if (!is_by_element(rules.a) || !is_by_element(rules.b) || !is_by_element(rules.out) ||
      (rules.has_c && !is_by_element(rules.c)))
    return std::nullopt;
  if (!abi::is_legal(depthwise_design(rules, *tile))) return std::nullopt;
  return DepthwiseParts{.rules = rules, .tile = *tile, .epilogue = parts->epilogue};
}

}  // namespace gemmery::templates
