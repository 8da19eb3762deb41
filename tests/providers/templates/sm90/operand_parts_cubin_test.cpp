// SPDX-License-Identifier: Apache-2.0
// Machine code of sm90 kernels with split float32 operands: any legal tile, schedule and cluster,
// also those that discovery does not offer. A short run compiles a few, GEMMERY_SOAK=1 many. No GPU
// is needed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "platform/parallel.hpp"
#include "providers/templates/sm90/constraints.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/sm90/family.hpp"
#include "tests/providers/templates/sm90/cubin_checks.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::templates {
namespace {

using Random = std::mt19937_64;

template <class Range>
auto draw(const Range& range, Random& random) {
  return range[random() % std::size(range)];
}

OperandRules draw_rules(Random& random) {
  constexpr std::array maths{Math::tf32x3, Math::bf16x3, Math::bf16x6, Math::bf16x9};
  const Sm90Products products{DType::float32, DType::float32, DType::float32, draw(maths, random)};
  const auto outputs = sm90_outputs(DType::float32, DType::float32);
  std::optional<DType> c;
  if (random() % 2 == 0) c = draw(outputs, random);
  return draw(sm90_layouts(products, draw(outputs, random), c), random);
}

Kernel draw_kernel(const Sm90Family& family, Random& random) {
  constexpr std::array schedules{abi::Schedule::cooperative, abi::Schedule::ping_pong};
  constexpr std::array<std::uint8_t, 4> splits{1, 1, 1, 2};
  constexpr std::array modes{abi::SplitMode::none,     abi::SplitMode::none,
                             abi::SplitMode::none,     abi::SplitMode::serial,
                             abi::SplitMode::parallel, abi::SplitMode::stream};
  for (;;) {
    const OperandRules rules = draw_rules(random);
    Sm90Tile tile{.m = static_cast<std::uint16_t>(64 * (1 + random() % 5)),
                  .n = static_cast<std::uint16_t>(16 * (1 + random() % 16)),
                  .cluster_m = static_cast<std::uint8_t>(1 + random() % 2),
                  .cluster_n = static_cast<std::uint8_t>(1 + random() % 2),
                  .stages = 0,
                  .schedule = draw(schedules, random)};
    tile.split_k = draw(splits, random);
    tile.split = draw(modes, random);
    tile.slices =
        tile.split == abi::SplitMode::serial || tile.split == abi::SplitMode::parallel ? 3 : 1;
    tile.stages = static_cast<std::uint8_t>(abi::most_stages(sm90_design(rules, tile)));
    const abi::Sm90Design design = sm90_design(rules, tile);
    if (abi::is_legal(design)) return {family, rules, DesignBytes::of(tile)};
  }
}

class Sm90OperandPartCubins : public tests::WithNvrtc {};

TEST_F(Sm90OperandPartCubins, spill_nothing_and_hold_the_instructions_of_their_designs) {
  Random random(tests::compilation_seed());
  const Sm90Family family;
  std::vector<Kernel> kernels;
  while (kernels.size() < (std::getenv("GEMMERY_SOAK") != nullptr ? 300U : 8U))
    kernels.push_back(draw_kernel(family, random));
  const auto disassembler = jit::find_disassembler();
  std::mutex mutex;
  const auto visit = [&](const Kernel& kernel) {
    std::vector<std::string> faults;
    try {
      const jit::CompiledCode code = compile_sm90(kernel);
      faults = find_resource_faults(kernel, code.usage);
      if (disassembler) {
        for (std::string& fault :
             find_instruction_faults(kernel, disassembler->disassemble(code.cubin)))
          faults.push_back(std::move(fault));
      }
    } catch (const Error& error) {
      faults.emplace_back(error.what());
    }
    const std::scoped_lock lock(mutex);
    for (const std::string& fault : faults) ADD_FAILURE() << kernel.name() << ": " << fault;
  };
  platform::parallel_for(static_cast<std::int64_t>(kernels.size()), 1,
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t index = begin; index < end; ++index)
                             visit(kernels[static_cast<std::size_t>(index)]);
                         });
}

// Sixteen parts were requested at a time, which spilled 24 bytes.
TEST_F(Sm90OperandPartCubins, of_five_blocks_of_rows_and_few_columns_spill_nothing) {
  const auto kernel = find_kernel(
      "sm90v7_gemm_f32r16_f32r16_f32c16_acc-f32_wgmma-bf16x9_320x32x32_2x1_parallel3_coop_m8_s3");
  ASSERT_TRUE(kernel);
  for (const std::string& fault : find_resource_faults(*kernel, compile_sm90(*kernel).usage))
    ADD_FAILURE() << fault;
}

}  // namespace
}  // namespace gemmery::templates
