// SPDX-License-Identifier: Apache-2.0
// Properties of predictions that are independent of constants, on random problems.
#include "model/warp_specialized_gemm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "model/tiled_gemm.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::model {
namespace {

constexpr double wgmma_fma_per_clock = 2048;

std::mt19937_64& numbers() {
  static std::mt19937_64 source(tests::random_seed());
  return source;
}

int draw(int least, int most) { return std::uniform_int_distribution(least, most)(numbers()); }

GemmProblem problem_of(int m, int n, int k, int l = 1, const std::string& more = "") {
  const auto line = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + "x" +
                    std::to_string(l);
  return parse_problem("gemm " + line + " a=bf16 b=bf16:c" + more).problem;
}

GemmProblem random_problem() {
  const auto extent = [] { return static_cast<int>(std::exp2(draw(0, 1400) / 100.0)); };
  return problem_of(extent(), extent(), extent(), draw(1, 4));
}

WarpSpecializedDesign random_design() {
  const int cluster = draw(0, 2);
  WarpSpecializedDesign design{.tile_m = 64 * draw(1, 4),
                               .tile_n = 16 * draw(1, 16),
                               .tile_k = 64,
                               .cluster_m = cluster == 1 ? 2 : 1,
                               .cluster_n = cluster == 2 ? 2 : 1,
                               .stages = draw(2, 8),
                               .turns = draw(1, 3),
                               .band_tiles = 1 << draw(0, 6),
                               .is_band_of_rows = draw(0, 1) == 1,
                               .staging_bytes = 64 * 128};
  design.stage_bytes = (design.tile_m + design.tile_n) * 128;
  design.wgmma_columns = design.tile_n;
  design.consumers = design.turns > 1 ? 1 : std::max(design.tile_m / 64, 1);
  return design;
}

DeviceInfo h200() { return *find_device_info("h200"); }

double predict_us(const GemmProblem& problem, const WarpSpecializedDesign& design,
                  const DeviceInfo& device = h200()) {
  return WarpSpecializedModel(problem, false, device).predict(design).total_us();
}

TEST(WarpSpecializedModel, every_known_device_gets_a_finite_positive_time) {
  for (const std::string_view name : known_device_names()) {
    for (int turn = 0; turn < 200; ++turn) {
      const double us = predict_us(random_problem(), random_design(), *find_device_info(name));
      EXPECT_TRUE(std::isfinite(us) && us > 0) << name << ": " << us;
    }
  }
}

TEST(WarpSpecializedModel, empty_problems_cost_a_launch) {
  for (const auto& problem :
       {problem_of(0, 8, 8), problem_of(8, 0, 8), problem_of(8, 8, 0), problem_of(8, 8, 8, 0)}) {
    const double us = predict_us(problem, random_design());
    EXPECT_TRUE(std::isfinite(us) && us > 0 && us < 100) << to_string(problem) << ": " << us;
  }
}

TEST(WarpSpecializedModel, nothing_beats_the_tensor_cores_and_the_memory) {
  for (int turn = 0; turn < 2000; ++turn) {
    const GemmProblem problem = random_problem();
    EXPECT_GE(predict_us(problem, random_design()),
              roofline_us(problem, wgmma_fma_per_clock, h200()))
        << to_string(problem);
  }
}

// Rows of A and B begin at cache lines for any k.
TEST(WarpSpecializedModel, more_k_takes_longer) {
  for (int turn = 0; turn < 500; ++turn) {
    const int m = draw(1, 8192);
    const int n = draw(1, 8192);
    const int k = 64 * draw(1, 128);
    const WarpSpecializedDesign design = random_design();
    EXPECT_LT(predict_us(problem_of(m, n, k), design), predict_us(problem_of(m, n, 2 * k), design))
        << m << "x" << n << "x" << k;
  }
}

// Less than twice as long, since the clock is higher while half of the multiprocessors are idle.
TEST(WarpSpecializedModel, a_tile_more_than_fit_at_once_begins_another_wave) {
  const int multiprocessors = h200().multiprocessors;
  for (int turn = 0; turn < 100; ++turn) {
    WarpSpecializedDesign design = random_design();
    design.cluster_m = design.cluster_n = 1;
    design.turns = 1;
    const int k = draw(2048, 8192);
    const auto compute_us = [&](int rows) {
      const GemmProblem problem = problem_of(rows, design.tile_n, k);
      return WarpSpecializedModel(problem, false, h200()).predict(design).compute_us;
    };
    const int rows = design.tile_m * multiprocessors;
    EXPECT_GT(compute_us(rows + 8), 1.2 * compute_us(rows))
        << design.tile_m << "x" << design.tile_n << " k " << k;
  }
}

TEST(WarpSpecializedModel, a_turned_problem_costs_what_its_transpose_costs) {
  for (int turn = 0; turn < 200; ++turn) {
    const int m = draw(1, 4096);
    const int n = draw(1, 4096);
    const int k = draw(1, 4096);
    const WarpSpecializedDesign design = random_design();
    const WarpSpecializedModel turned(problem_of(m, n, k, 1, " out=bf16:c"), true, h200());
    EXPECT_DOUBLE_EQ(turned.predict(design).total_us(), predict_us(problem_of(n, m, k), design));
  }
}

TEST(WarpSpecializedModel, a_matrix_that_batches_share_is_read_once) {
  GemmProblem own = problem_of(64, 4096, 4096, 16);
  GemmProblem shared = own;
  shared.b.batch_stride = 0;
  const WarpSpecializedDesign design = random_design();
  const double own_us = WarpSpecializedModel(own, false, h200()).predict(design).memory_us;
  const double shared_us = WarpSpecializedModel(shared, false, h200()).predict(design).memory_us;
  EXPECT_GT(own_us, 5 * shared_us);
}

TEST(WarpSpecializedModel, reading_c_costs_time_beyond_its_bytes) {
  GemmProblem problem = problem_of(4096, 4096, 4096);
  const WarpSpecializedDesign design = random_design();
  const double without_us = predict_us(problem, design);
  problem.c = problem.out;
  EXPECT_GT(predict_us(problem, design), without_us);
}

// By parts, as above.
TEST(WarpSpecializedModel, a_prefetched_c_is_waited_for_less) {
  GemmProblem problem = problem_of(4096, 4096, 4096);
  problem.c = problem.out;
  for (int turn = 0; turn < 100; ++turn) {
    WarpSpecializedDesign design = random_design();
    design.turns = 1;
    const auto compute_us = [&](bool prefetches) {
      design.prefetches_inputs = prefetches;
      return WarpSpecializedModel(problem, false, h200()).predict(design).compute_us;
    };
    problem.c->column_stride = 1;
    problem.c->row_stride = 4096;
    EXPECT_LT(compute_us(true), compute_us(false));
    std::swap(problem.c->column_stride, problem.c->row_stride);  // its columns are not contiguous
    EXPECT_EQ(compute_us(true), compute_us(false));
  }
}

// --- programs ------------------------------------------------------------------------------------

WarpSpecializedParts parts_of(const GemmProblem& problem, const WarpSpecializedDesign& design,
                              const ProgramWork& program) {
  return WarpSpecializedModel(problem, false, h200(), {}, program).predict(design);
}

// By parts: their sum counts less where two of them stop being alike.
TEST(WarpSpecializedModel, programs_take_longer_the_more_they_do) {
  for (int turn = 0; turn < 500; ++turn) {
    const GemmProblem problem = random_problem();
    const WarpSpecializedDesign design = random_design();
    const double instructions = draw(1, 40);
    const WarpSpecializedParts plain = parts_of(problem, design, {});
    const auto light = parts_of(problem, design, {.instructions = instructions});
    const auto heavy = parts_of(problem, design, {.instructions = 2 * instructions});
    const auto wide = parts_of(problem, design, {.bytes = 1e6});
    EXPECT_GE(light.compute_us, plain.compute_us) << to_string(problem);
    EXPECT_GE(heavy.compute_us, light.compute_us) << to_string(problem);
    EXPECT_GT(wide.memory_us, plain.memory_us) << to_string(problem);
    EXPECT_EQ(plain.total_us(), predict_us(problem, design)) << to_string(problem);
  }
}

// While one warpgroup runs its program, another multiplies, so a long k hides most of the program.
TEST(WarpSpecializedModel, turns_hide_most_of_a_program) {
  for (int turn = 0; turn < 100; ++turn) {
    WarpSpecializedDesign design = random_design();
    design.tile_m = 128;
    design.tile_n = 64 * draw(2, 4);
    design.wgmma_columns = design.tile_n;
    const GemmProblem problem = problem_of(8192, 8192, 64 * draw(64, 128));
    const ProgramWork program{.instructions = static_cast<double>(draw(1, 12)),
                              .slow_results = static_cast<double>(draw(1, 2))};
    const auto cost_us = [&](int turns) {
      design.turns = turns;
      design.consumers = turns > 1 ? 1 : 2;
      return parts_of(problem, design, program).compute_us -
             parts_of(problem, design, {}).compute_us;
    };
    EXPECT_LT(cost_us(2), 0.5 * cost_us(1)) << to_string(problem);
    EXPECT_LE(cost_us(3), cost_us(2)) << to_string(problem);
  }
}

TEST(WarpSpecializedModel, power_lowers_the_clock_of_problems_that_fill_the_tensor_cores) {
  const auto clock_ghz = [](const GemmProblem& problem) {
    return WarpSpecializedModel(problem, false, h200()).clock_ghz();
  };
  EXPECT_DOUBLE_EQ(clock_ghz(problem_of(64, 16, 4096)), h200().clock_ghz);
  EXPECT_LT(clock_ghz(problem_of(8192, 8192, 8192)), 0.85 * h200().clock_ghz);
}

}  // namespace
}  // namespace gemmery::model
