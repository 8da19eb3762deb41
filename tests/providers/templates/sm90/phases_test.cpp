// SPDX-License-Identifier: Apache-2.0
// The phases of a dgrad with a stride: their taps and pixels.
#include "providers/templates/sm90/phases.hpp"

#include <gtest/gtest.h>
#include <gemmery/discovery.hpp>
#include <gemmery/problem.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace gemmery::templates {
namespace {

struct Phases {
  abi::Sm90PhaseParams params{};
  std::vector<driver::Im2colTensorMap> maps;
};

std::unique_ptr<Phases> phases_of(const GemmProblem& problem) {
  auto phases = std::make_unique<Phases>();
  alignas(16) static constexpr char memory[16] = {};
  const PhaseOperands operands{.a = memory,
                               .out = memory,
                               .a_box = {.adjacent = 64, .other = 128},
                               .out_box = {.adjacent = 64, .other = 16},
                               .is_tf32 = false,
                               .reads = true};
  const auto keep = [&](const driver::Im2colTensorMap& map) {
    phases->maps.push_back(map);
    return abi::TensorMap{};
  };
  set_phases(problem, operands, keep, phases->params);
  return phases;
}

TEST(Sm90Phases, every_tap_is_multiplied_once_at_each_pixel_of_its_phase) {
  struct Row {
    const char* problem;
    unsigned taps;     // of all phases together
    unsigned touched;  // number of phases with taps
  };
  for (const Row& row :
       {Row{"conv2d_dgrad 2x8x8x64 k=64 r=3 s=3 pad=1 stride=2 a=f16", 9, 4},
        Row{"conv2d_dgrad 2x8x8x64 k=64 r=1 s=1 stride=2 a=f16", 1, 1},
        Row{"conv2d_dgrad 2x9x9x64 k=64 r=2 s=5 pad=1,2 stride=2,4 dilation=1,2 a=f16", 10, 4},
        Row{"conv2d_dgrad 2x20x20x64 k=64 r=3 s=3 pad=2 stride=4,2 dilation=6,1 a=f16", 9, 4},
        Row{"conv1d_dgrad 2x40x64 k=64 s=7 pad=2 stride=5 a=f16", 7, 5}}) {
    const GemmProblem problem = parse_problem(row.problem).problem;
    const auto phases = phases_of(problem);
    unsigned taps = 0;
    unsigned touched = 0;
    unsigned last = row.taps;
    for (std::int64_t at = 0; at < count_phases(*problem.convolution); ++at) {
      const abi::DgradPhase& phase = phases->params.phases[at];
      EXPECT_LE(phase.window.tap_count, last) << "the deepest are first";
      last = phase.window.tap_count;
      taps += phase.window.tap_count;
      touched += phase.window.tap_count > 0 ? 1U : 0U;
      EXPECT_EQ(phase.k_blocks, std::max(phase.window.tap_count, 1U));  // of 64 channels
    }
    EXPECT_EQ(taps, row.taps) << row.problem;
    EXPECT_EQ(touched, row.touched) << row.problem;
  }
}

// The phases together have as many pixels as dx.
TEST(Sm90Phases, every_pixel_is_of_one_phase) {
  for (const char* const text : {"conv2d_dgrad 2x9x11x64 k=64 r=3 s=3 pad=1 stride=2 a=f16",
                                 "conv2d_dgrad 2x1x3x64 k=64 r=1 s=3 pad=0,1 stride=4,2 a=f16",
                                 "conv3d_dgrad 1x4x5x6x64 k=64 t=2 r=3 s=3 pad=1 stride=2 a=f16"}) {
    const GemmProblem problem = parse_problem(text).problem;
    const auto phases = phases_of(problem);
    std::uint64_t pixels = 0;
    for (const driver::Im2colTensorMap& map : phases->maps) {
      if (map.pixels != 16) continue;  // of dy
      pixels += map.extents[1] * map.extents[2] * map.extents[3] * map.extents[4];
    }
    EXPECT_EQ(pixels, static_cast<std::uint64_t>(problem.m)) << text;
  }
}

}  // namespace
}  // namespace gemmery::templates
