// SPDX-License-Identifier: Apache-2.0
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <type_traits>

#include "kernel/epilogue.hpp"
#include "kernel/rank.hpp"
#include "kernel/registry.hpp"
#include "kernel/rules.hpp"
#include "model/tiled_gemm.hpp"
#include "tests/kernel/toy_family.hpp"
#include "tune/measured_history.hpp"

namespace gemmery {
namespace {

using tests::ToyDesign;
using tests::ToyFamily;

const DeviceInfo& h200() {
  static const DeviceInfo info = *find_device_info("h200");
  return info;
}

GemmProblem problem_of(const char* line) { return parse_problem(line).problem; }

std::vector<int> numbers(const std::vector<RankedKernel>& kernels) {
  std::vector<int> list;
  for (const RankedKernel& kernel : kernels) list.push_back(kernel.design().as<ToyDesign>().number);
  return list;
}

TEST(Kernel, is_a_small_value) {
  static_assert(sizeof(Kernel) <= 64);
  const ToyFamily family("toy");
  EXPECT_EQ(family.kernel(2), family.kernel(2));
  EXPECT_FALSE(family.kernel(2) == family.kernel(3));
}

// Leaving the stream out does not compile.
static_assert(!std::is_default_constructible_v<Stream>);
static_assert(!std::is_default_constructible_v<RunOptions>);

TEST(Kernel, metadata_tells_what_it_is) {
  const ToyFamily family("toy");
  const Metadata metadata = family.kernel(2).metadata();
  EXPECT_EQ(metadata.kernel_name, "toy_2");
  EXPECT_EQ(metadata.kernel_class, "toy");
  EXPECT_EQ(metadata.provider, "toys");
  EXPECT_EQ(metadata.design_value("number"), "2");
  EXPECT_EQ(metadata.design_value("colour"), "");
  EXPECT_EQ(metadata.epilogue, "D = alpha * accum + beta * C");
}

// A family that does not declare epilogues supports only the default program, whatever its `match`
// returns.
TEST(Kernel, of_a_family_without_epilogues_refuses_programs_by_program_and_node) {
  const ToyFamily family("toy");
  const GemmProblem problem = problem_of("gemm 8x8x8 a=f32 epilogue=\"D = gelu(accum)\"");
  const Status status = family.kernel(1).supports(problem, h200());
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().find("\"D = gelu(accum)\""), std::string::npos) << status.error();
  EXPECT_NE(status.error().find("its node"), std::string::npos) << status.error();
  const Family* const families[] = {&family};
  EXPECT_TRUE(kernel::rank_kernels({problem, h200()}, families, nullptr).empty());
  const std::vector<Reason> reasons = kernel::collect_reasons({problem, h200()}, families);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].fitting, 0);
  EXPECT_EQ(reasons[0].failed, status.error());
}

TEST(Epilogue, names_end_in_its_digest_and_give_it_back) {
  const EpilogueId gelu = problem_of("gemm 8x8x8 a=f32 epilogue=\"D = gelu(accum)\"").epilogue;
  EXPECT_EQ(kernel::epilogue_suffix(default_epilogue), "");
  const std::string name = "family_design" + kernel::epilogue_suffix(gelu);
  EXPECT_EQ(name, "family_design_e-" + digest(gelu));
  std::string_view rest = name;
  EXPECT_EQ(kernel::take_epilogue_suffix(rest), gelu);
  EXPECT_EQ(rest, "family_design");
  std::string_view plain = "family_design";
  EXPECT_EQ(kernel::take_epilogue_suffix(plain), default_epilogue);
  std::string_view unknown = "family_design_e-0123456789ab";
  EXPECT_FALSE(kernel::take_epilogue_suffix(unknown));
}

TEST(Epilogue, what_differs_is_said_in_words) {
  const auto id = [](const char* fields) { return problem_of(fields).epilogue; };
  const EpilogueId row = id("gemm 8x8x8 a=f32 epilogue=\"D = accum + x\" x=f32[n]");
  const EpilogueId column = id("gemm 8x8x8 a=f32 epilogue=\"D = accum + x\" x=f32[m]");
  EXPECT_EQ(kernel::check_epilogue(row, column).error(),
            "epilogue operand x: expected f32[n], contiguous along n, aligned to 16 bytes, got "
            "f32[m], contiguous along m, aligned to 16 bytes");
  EXPECT_EQ(kernel::check_epilogue(default_epilogue, row).error(),
            "epilogue: expected \"D = alpha * accum + beta * C\", got \"D = accum + x\"");
  EXPECT_FALSE(kernel::serves_epilogue(row, default_epilogue));
}

// One violated rule per row. The error names the operand, the expectation and the actual value.
TEST(Rules, each_broken_rule_is_named) {
  const struct {
    const char* line;
    const char* words;
  } rows[] = {
      {"gemm 8x8x8 a=bf16 b=f32 out=f32", "A: expected element type float32, got bfloat16"},
      {"gemm 8x8x8 a=f32 b=f32:c", "B: expected layout row, got column"},
      {"gemm 8x8x8 a=f32/strides=3,70", "A: expected layout row, got strided"},
      {"gemm 8x8x8 a=f32 out=bf16", "out: expected element type float32, got bfloat16"},
      {"gemm 8x8x8 a=f32 c=f32 beta=1", "C: expected none, got a tensor"},
      {"gemm 8x8x8 a=f32 acc=f64", "accumulator: expected float32, got float64"},
      {"gemm 8x8x8 a=f32 math=tf32", "math: expected native, got tf32"},
  };
  const ToyFamily family("toy");
  for (const auto& [line, words] : rows) {
    const GemmProblem problem = problem_of(line);
    EXPECT_EQ(kernel::check_rules(family.kernel(1).operands(), problem).error(), words);
    EXPECT_FALSE(kernel::keeps_rules(family.kernel(1).operands(), problem)) << line;
  }
  EXPECT_TRUE(kernel::keeps_rules(family.kernel(1).operands(), problem_of("gemm 8x8x8 a=f32")));
}

TEST(Rules, a_matrix_without_elements_has_every_layout) {
  for (const LayoutRule layout : {LayoutRule::row, LayoutRule::column}) {
    OperandRules rules;
    for (OperandRule* const rule : {&rules.a, &rules.b, &rules.out}) rule->layout = layout;
    for (const char* const line : {"gemm 0x63x0 a=f32", "gemm 0x63x0 a=f32:c b=f32:c out=f32:c"})
      EXPECT_EQ(kernel::check_rules(rules, problem_of(line)).error(), "") << line;
    const std::string refusal =
        kernel::check_rules(rules, problem_of("gemm 65x63x0 a=f32")).error();
    EXPECT_EQ(refusal, layout == LayoutRule::row ? "" : "out: expected layout column, got row");
  }
}

TEST(Rules, alignment_must_be_a_multiple) {
  OperandRules rules;
  rules.a.alignment = 16;
  EXPECT_EQ(kernel::check_rules(rules, problem_of("gemm 8x8x6 a=f32")).error(),
            "A: expected alignment in bytes of 16, got 8");
}

TEST(Rules, a_device_target_takes_what_runs_there_and_an_exact_one_what_compiles_for_it) {
  const auto serves = [](const char* code, const char* asked) {
    return kernel::serves_target(parse_target(code), parse_target(asked));
  };
  EXPECT_TRUE(serves("sm_90a", "sm_90"));
  EXPECT_TRUE(serves("sm_90", "sm_90"));
  EXPECT_TRUE(serves("sm_90", "sm_90a"));
  EXPECT_FALSE(serves("sm_80", "sm_90a"));
  EXPECT_FALSE(serves("sm_100f", "sm_100a"));
  EXPECT_TRUE(serves("sm_90a", "sm_90a"));
}

TEST(Rank, orders_by_prediction) {
  const ToyFamily family("toy");
  const Family* const families[] = {&family};
  const GemmProblem problem = problem_of("gemm 8x8x8 a=f32");
  EXPECT_EQ(numbers(kernel::rank_kernels({problem, h200()}, families, nullptr)),
            (std::vector{1, 2, 3}));
}

TEST(Rank, equals_stay_in_the_order_of_the_list) {
  const ToyFamily second("b");
  const ToyFamily first("a");
  const Family* const families[] = {&second, &first};
  const GemmProblem problem = problem_of("gemm 8x8x8 a=f32");
  const auto kernels = kernel::rank_kernels({problem, h200()}, families, nullptr);
  ASSERT_EQ(kernels.size(), 6U);
  EXPECT_EQ(kernels[0].name(), "b_1");
  EXPECT_EQ(kernels[1].name(), "a_1");
}

TEST(Rank, measured_times_outrank_predictions) {
  const ToyFamily family("toy");
  const Family* const families[] = {&family};
  const GemmProblem problem = problem_of("gemm 8x8x8 a=f32");
  const GemmProblem other = problem_of("gemm 8x8x9 a=f32");
  tuning::MeasuredHistory history;
  history.record({problem, h200()}, family.kernel(3), 1.5);
  const auto kernels = kernel::rank_kernels({problem, h200()}, families, &history);
  EXPECT_EQ(numbers(kernels), (std::vector{3, 1, 2}));
  EXPECT_TRUE(kernels.front().is_measured);
  EXPECT_EQ(kernels.front().predicted_us, 1.5);
  EXPECT_EQ(numbers(kernel::rank_kernels({other, h200()}, families, &history)),
            (std::vector{1, 2, 3}));
}

TEST(Rank, a_family_that_does_not_fit_gives_its_reason) {
  const ToyFamily family("toy");
  const Family* const families[] = {&family};
  const GemmProblem problem = problem_of("gemm 8x8x8 a=bf16");
  EXPECT_TRUE(kernel::rank_kernels({problem, h200()}, families, nullptr).empty());
  const auto reasons = kernel::collect_reasons({problem, h200()}, families);
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(reasons[0].failed, "A: expected element type float32, got bfloat16");
}

TEST(Rank, a_kernel_for_another_target_is_refused_with_the_list) {
  const ToyFamily family("toy", parse_target("sm_80"));
  const Status status = family.kernel(1).supports(problem_of("gemm 8x8x8 a=f32"), h200());
  EXPECT_EQ(status.error(), "target: expected one of sm_80, got sm_90 (NVIDIA H200)");
}

TEST(Registry, additions_during_discovery_are_safe_and_seen_later) {
  std::atomic<bool> is_done{false};
  std::thread reader([&] {
    while (!is_done) {
      for (const Family* family : kernel::families()) ASSERT_FALSE(family->name().empty());
    }
  });
  const std::size_t before = kernel::families().size();
  for (int i = 0; i < 100; ++i)
    kernel::add_family(std::make_unique<ToyFamily>("storm" + std::to_string(i)));
  is_done = true;
  reader.join();
  EXPECT_EQ(kernel::families().size(), before + 100);
  EXPECT_THROW(kernel::add_family(std::make_unique<ToyFamily>("storm7")), Error);
}

TEST(History, threads_may_record_and_ask_at_once) {
  const ToyFamily family("toy");
  tuning::MeasuredHistory history;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        GemmProblem problem = problem_of("gemm 8x8x8 a=f32");
        problem.m = i;
        history.record({problem, h200()}, family.kernel(1 + t % 3), 1 + t);
        EXPECT_TRUE(history.measured_us({problem, h200()}, family.kernel(1 + t % 3)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Model, predictions_grow_with_the_work_and_never_beat_the_roofline) {
  const model::TiledDesign design{.tile_m = 128,
                                  .tile_n = 128,
                                  .tile_k = 8,
                                  .threads = 256,
                                  .blocks_per_multiprocessor = 1,
                                  .fma_per_clock = 128,
                                  .efficiency = 0.9,
                                  .step_latency_clocks = 300};
  double last = 0;
  for (const char* const line : {"gemm 128x128x128 a=f32", "gemm 1024x1024x1024 a=f32",
                                 "gemm 4096x4096x4096 a=f32", "gemm 8192x8192x8192 a=f32"}) {
    const GemmProblem problem = problem_of(line);
    const double predicted = model::TiledGemmModel(problem, h200()).predict(design).total_us();
    EXPECT_GT(predicted, last);
    EXPECT_GE(predicted, model::roofline_us(problem, 128, h200()));
    last = predicted;
  }
}

}  // namespace
}  // namespace gemmery
