// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/sm90/phases.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "operation/conv_windows.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/sm90/convolution.hpp"

namespace gemmery::templates {
namespace {

// The first pixel of a phase: depth, height, width.
using First = std::array<std::int64_t, 3>;

std::vector<First> list_phases(const Convolution& convolution) {
  std::vector<First> phases;
  for (std::int64_t depth = 0; depth < phases_along(convolution, 0); ++depth)
    for (std::int64_t height = 0; height < phases_along(convolution, 1); ++height)
      for (std::int64_t width = 0; width < phases_along(convolution, 2); ++width)
        phases.push_back({depth, height, width});
  return phases;
}

// True, for each dimension, if the phase has one pixel less than the largest phase.
std::array<bool, 3> are_shorter(const Convolution& convolution, const First& first) {
  std::array<bool, 3> shorter{};
  for (std::size_t d = 0; d < 3; ++d)
    shorter[d] = pixels_along(convolution, d, first[d]) != pixels_along(convolution, d, 0);
  return shorter;
}

std::int64_t count_maps(const Convolution& convolution) {
  std::vector<std::array<bool, 3>> kinds;
  for (const First& first : list_phases(convolution)) {
    const auto kind = are_shorter(convolution, first);
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  return std::ssize(kinds);
}

// Why a program's operands are not supported: emitted epilogues do not know phases.
std::string find_row_failure(const GemmProblem& problem) {
  if (problem.epilogue == default_epilogue) return {};
  if (problem.c)
    return "C: expected none beside an epilogue of a dgrad with a stride, got a tensor";
  for (const EpilogueOperandRule& rule : rules_of(problem.epilogue).operands)
    if (!rule.is_number && (rule.is_output || rule.varies_m))
      return fmt::format(
          "epilogue operand {}: expected an input that varies along channels alone, for a dgrad "
          "with a stride",
          rule.name);
  return {};
}

// Groups are further phases, which the epilogue does not know. The filters of all of them are taps
// of one tensor.
std::string find_phase_group_failure(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  if (convolution.groups == 1) return {};
  if (problem.c || problem.epilogue != default_epilogue)
    return "epilogue: expected alpha * accum alone for a dgrad with a stride and groups";
  if (!are_filters_adjacent(convolution))
    return "B: expected adjacent filters for a dgrad with a stride and groups, got other strides";
  return {};
}

}  // namespace

std::string find_sm90_phase_failure(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  if (convolution.batch == ConvBatch::images && problem.l != 1)
    return fmt::format("batch: expected one matrix for a dgrad with a stride, got {} images",
                       problem.l);
  if (std::string failure = find_phase_group_failure(problem); !failure.empty()) return failure;
  const std::int64_t phases = count_phases(convolution) * convolution.groups;
  if (phases > abi::Sm90PhaseParams::most_phases)
    return fmt::format("stride: expected at most {} phases of pixels for dgrad, got {}",
                       abi::Sm90PhaseParams::most_phases, phases);
  if (count_maps(convolution) > abi::Sm90PhaseParams::most_maps)
    return "stride: expected extents of dx that it divides along a dimension, got others along all";
  const std::int64_t bytes = problem.n * static_cast<std::int64_t>(byte_width(problem.out.dtype));
  if (bytes % widest_access != 0 || problem.out.alignment % widest_access != 0)
    return fmt::format(
        "out: expected channels in units of {} bytes for a dgrad with a stride, got {} bytes at an "
        "alignment of {}",
        widest_access, bytes, problem.out.alignment);
  return find_row_failure(problem);
}

operation::Window window_of_phases(const Convolution& convolution) {
  const auto parts = operation::windows_of(convolution);
  operation::Window all{.step = {1, 1, 1}};
  all.strides[0] = convolution.a_strides[0];
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t begin = parts.empty() ? 0 : box_along(parts.front().a, d).lower;
    std::int64_t end = begin;
    for (const operation::WindowPart& part : parts) {
      begin = std::min(begin, box_along(part.a, d).lower);
      end = std::max(end, part.a.origin[d]);
    }
    all.pixels[d + 1] = pixels_along(convolution, d, 0);
    all.extent[d] = convolution.output[d];
    all.strides[d + 1] = convolution.a_strides[d + 1];
    // The offsets of all phases, as if their taps were adjacent.
    all.origin[d] = begin;
    all.taps[d] = end - begin + 1;
    all.tap_step[d] = 1;
  }
  return all;
}

// --- parameters ---------------------------------------------------------------------------------

namespace {

// The map of the pixels of dx that belong to a phase, with the channels of a group.
driver::Im2colTensorMap map_of_phase(const GemmProblem& problem, const PhaseOperands& operands,
                                     const First& first, std::int64_t group) {
  const Convolution& convolution = *problem.convolution;
  const auto width = static_cast<std::int64_t>(byte_width(problem.out.dtype));
  const auto unsigned_of = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  driver::Im2colTensorMap map{
      .dtype = problem.out.dtype,
      .rank = convolution.dimensions + 2U,
      .channels = static_cast<std::uint32_t>(operands.out_box.adjacent),
      .pixels = static_cast<std::uint32_t>(operands.out_box.other),
      .swizzle = swizzle_of(operands.out_box.adjacent * static_cast<int>(width))};
  // A single pixel has no stride.
  std::int64_t bytes = std::max<std::int64_t>(problem.out.row_stride * width, widest_access);
  std::int64_t offset = group * problem.n * width;
  map.extents.fill(1);
  map.extents[0] = unsigned_of(problem.n);
  for (std::size_t at = 1; at <= convolution.dimensions; ++at) {
    const std::size_t d = spatial_of(at);
    map.extents[at] = unsigned_of(pixels_along(convolution, d, first[d]));
    map.byte_strides[at - 1] = unsigned_of(bytes * convolution.stride[d]);
    offset += first[d] * bytes;
    bytes *= convolution.image[d];
  }
  map.extents[map.rank - 1] = unsigned_of(convolution.images);
  map.byte_strides[map.rank - 2] = unsigned_of(bytes);
  map.address = static_cast<const char*>(operands.out) + offset;
  return map;
}

// Maps of dy, one for all phases with the same number of pixels.
class PhaseMaps {
 public:
  PhaseMaps(const GemmProblem& problem, const PhaseOperands& operands, const EncodePixels& encode,
            abi::Sm90PhaseParams& params)
      : problem_(problem), operands_(operands), encode_(encode), params_(params) {}

  unsigned find(const First& first) {
    const Convolution& convolution = *problem_.convolution;
    const auto kind = operands_.reads ? are_shorter(convolution, first) : std::array<bool, 3>{};
    const auto known = std::ranges::find(kinds_, kind);
    if (known != kinds_.end()) return static_cast<unsigned>(known - kinds_.begin());
    kinds_.push_back(kind);
    const auto index = static_cast<unsigned>(kinds_.size() - 1);
    params_.images[index] = encode_(make(first));
    return index;
  }

 private:
  driver::Im2colTensorMap make(const First& first) const {
    if (!operands_.reads) return empty_image_map(operands_.a, problem_, operands_.a_box);
    const Convolution& convolution = *problem_.convolution;
    operation::Window window = window_of_phases(convolution);
    for (std::size_t d = 0; d < 3; ++d)
      window.pixels[d + 1] = pixels_along(convolution, d, first[d]);
    driver::Im2colTensorMap map = map_of_window(operands_.a, problem_, window, operands_.a_box);
    map.is_tf32 = operands_.is_tf32;
    return map;
  }

  const GemmProblem& problem_;
  const PhaseOperands& operands_;
  const EncodePixels& encode_;
  abi::Sm90PhaseParams& params_;
  std::vector<std::array<bool, 3>> kinds_;
};

// The window of a phase without taps: at pixels of the map of all phases, or at the only pixel of
// an empty map.
abi::TmaWindow window_without_taps(const GemmProblem& problem, const First& first,
                                   std::int64_t group, bool reads) {
  const Convolution& convolution = *problem.convolution;
  const operation::Window all = window_of_phases(convolution);
  abi::TmaWindow window{};
  for (std::size_t d = 0; d < 3; ++d) {
    window.pixels[d] = divisor_of(pixels_along(convolution, d, first[d]));
    window.taps[d] = divisor_of(1);
    window.step[d] = reads ? 1 : 0;
    window.lower[d] = reads ? static_cast<int>(all.origin[d]) : 0;
  }
  const std::int64_t filters = convolution.filters / convolution.groups;
  window.taps[2] = divisor_of(whole_stages(problem, std::max<std::int64_t>(filters, 1)));
  window.first_channel = reads ? static_cast<int>(group * filters) : 0;
  return window;
}

// Sets the places of the phase's pixels among the rows of out's matrix.
void set_rows(const Convolution& convolution, const First& first, abi::DgradPhase& phase) {
  std::int64_t rows = convolution.images;
  std::int64_t scale = 1;
  std::int64_t first_row = 0;
  for (std::size_t d = 3; d-- > 0;) {
    rows *= pixels_along(convolution, d, first[d]);
    first_row += first[d] * scale;
    phase.row_step[d] = static_cast<unsigned>(convolution.stride[d] * scale);
    scale *= convolution.image[d];
  }
  phase.rows = static_cast<unsigned>(rows);
  phase.first_row = static_cast<unsigned>(first_row);
  phase.image_rows = static_cast<unsigned>(scale);
}

std::int64_t taps_of(const operation::WindowPart& part) {
  return part.a.taps[0] * part.a.taps[1] * part.a.taps[2];
}

void add_taps(const GemmProblem& problem, const operation::WindowPart& part, std::int64_t group,
              abi::DgradPhase& phase) {
  const Convolution& convolution = *problem.convolution;
  abi::TmaWindow& window = phase.window;
  for (std::size_t d = 0; d < 3; ++d) {
    window.first_offset[d] = static_cast<int>(part.a.origin[d]) - window.lower[d];
    window.offset_step[d] = static_cast<int>(part.a.tap_step[d]);
  }
  window.taps[0] = divisor_of(part.a.taps[1]);
  window.taps[1] = divisor_of(part.a.taps[2]);
  window.tap_count = static_cast<unsigned>(taps_of(part));
  const std::int64_t filters = convolution.filters / convolution.groups;
  phase.filters = filters_of(convolution, part.b);
  phase.filters.first += static_cast<int>(group * filters * count_taps(convolution));
  phase.filters.batch_groups = 0;  // batches are phases
  phase.k_blocks = window.tap_count *
                   static_cast<unsigned>(whole_stages(problem, filters) / stage_elements(problem));
}

}  // namespace

namespace {

// Orders phases by k, the largest first: blocks take tiles in this order, so short ones balance the
// end.
struct PhaseTaps {
  First first;
  const operation::WindowPart* part;  // null without taps

  std::int64_t taps() const { return part == nullptr ? 0 : taps_of(*part); }
};
std::vector<PhaseTaps> order_phases(const Convolution& convolution,
                                    const std::vector<operation::WindowPart>& parts) {
  std::vector<PhaseTaps> phases;
  for (const First& first : list_phases(convolution)) {
    const auto part = std::ranges::find_if(
        parts, [&](const operation::WindowPart& one) { return one.rows.first() == first; });
    phases.push_back({first, part == parts.end() ? nullptr : &*part});
  }
  std::ranges::stable_sort(phases, std::greater(), &PhaseTaps::taps);
  return phases;
}

}  // namespace

void set_phases(const GemmProblem& problem, const PhaseOperands& operands,
                const EncodePixels& encode, abi::Sm90PhaseParams& params) {
  std::vector<operation::WindowPart> parts;
  const auto all = operation::windows_of(*problem.convolution);
  for (const operation::WindowPart& part : all) parts.push_back(part);
  PhaseMaps maps(problem, operands, encode, params);
  abi::DgradPhase* phase = params.phases;
  for (const auto& [first, part] : order_phases(*problem.convolution, parts)) {
    for (std::int64_t group = 0; group < problem.convolution->groups; ++group, ++phase) {
      phase->out = encode(map_of_phase(problem, operands, first, group));
      phase->window = window_without_taps(problem, first, group, operands.reads);
      phase->images = maps.find(first);
      phase->k_blocks = 1;
      set_rows(*problem.convolution, first, *phase);
      if (part != nullptr && operands.reads) add_taps(problem, *part, group, *phase);
    }
  }
}

}  // namespace gemmery::templates
