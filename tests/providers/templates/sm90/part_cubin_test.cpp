// SPDX-License-Identifier: Apache-2.0
// Machine code of sm90 kernels whose blocks share tiles through the workspace: any legal tile,
// schedule and split, also those that discovery does not offer. A short run compiles a few,
// GEMMERY_SOAK=1 many. No GPU is needed.
#include <fmt/format.h>
#include <gtest/gtest.h>
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
  const Sm90Products products = draw(sm90_products(), random);
  std::optional<DType> c;
  if (random() % 2 == 0) c = draw(sm90_addends(products.a, products.b), random);
  const DType out = draw(sm90_outputs(products.a, products.b), random);
  return draw(sm90_layouts(products, out, c), random);
}

Kernel draw_kernel(const Sm90Family& family, Random& random, bool is_in_cluster) {
  constexpr std::array modes{abi::SplitMode::serial, abi::SplitMode::parallel,
                             abi::SplitMode::stream};
  constexpr std::array<std::uint8_t, 3> splits{2, 4, 8};
  constexpr std::array schedules{abi::Schedule::cooperative, abi::Schedule::ping_pong};
  for (;;) {
    const OperandRules rules = draw_rules(random);
    Sm90Tile tile{.m = static_cast<std::uint16_t>(64 * (1 + random() % 5)),
                  .n = static_cast<std::uint16_t>(16 * (1 + random() % 16)),
                  .cluster_m = static_cast<std::uint8_t>(1 + random() % 2),
                  .cluster_n = static_cast<std::uint8_t>(1 + random() % 2),
                  .stages = 0,
                  .schedule = draw(schedules, random)};
    tile.split = draw(modes, random);
    tile.by_registers = is_mixed_sm90(rules.a.dtype, rules.b.dtype);
    // A third of the kernels also split k within clusters.
    if (is_in_cluster) tile.split_k = draw(splits, random);
    tile.slices = tile.split == abi::SplitMode::stream ? 1 : 3;
    tile.stages = static_cast<std::uint8_t>(abi::most_stages(sm90_design(rules, tile)));
    if (abi::is_legal(sm90_design(rules, tile))) return {family, rules, DesignBytes::of(tile)};
  }
}

class Sm90PartCubins : public tests::WithNvrtc {};

TEST_F(Sm90PartCubins, spill_nothing_and_hold_the_instructions_of_their_designs) {
  Random random(tests::compilation_seed());
  const Sm90Family family;
  std::vector<Kernel> kernels;
  while (kernels.size() < (std::getenv("GEMMERY_SOAK") != nullptr ? 300U : 8U))
    kernels.push_back(draw_kernel(family, random, kernels.size() % 3 == 0));
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

}  // namespace
}  // namespace gemmery::templates
