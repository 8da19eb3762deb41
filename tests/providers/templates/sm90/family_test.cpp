// SPDX-License-Identifier: Apache-2.0
// The sm90 family: names, matches, refusals, source. No GPU and no compiler are needed.
#include "providers/templates/sm90/family.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <gemmery/device.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/problem.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernel/rules.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/sm90/prediction.hpp"
#include "tests/support/random_programs.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::templates {
namespace {

const Sm90Family& family() {
  static const Sm90Family sm90;
  return sm90;
}

std::vector<RankedKernel> match(const std::string& line, const char* device = "h200") {
  const GemmProblem problem = parse_problem(line).problem;
  std::vector<RankedKernel> kernels;
  family().match({problem, *find_device_info(device)}, kernels);
  std::ranges::sort(kernels, {}, &RankedKernel::predicted_us);
  return kernels;
}

std::string why_not(const std::string& line, const char* device = "h200") {
  const GemmProblem problem = parse_problem(line).problem;
  std::vector<Reason> reasons;
  family().explain({problem, *find_device_info(device)}, reasons);
  return reasons.empty() ? "" : reasons.front().failed;
}

std::vector<Kernel> sample(unsigned one_of) {
  std::mt19937_64 random(tests::random_seed());
  std::vector<Kernel> kernels;
  family().enumerate([&](const Kernel& kernel) {
    if (random() % one_of == 0) kernels.push_back(kernel);
  });
  return kernels;
}

std::size_t count_tiles_for(const OperandRules& rules) {
  return sm90_tiles(rules).size() + sm90_register_tiles(rules).size();
}

TEST(Sm90Family, every_kernel_is_legal_and_names_differ) {
  std::set<std::string> names;
  family().enumerate([&](const Kernel& kernel) {
    ASSERT_TRUE(abi::is_legal(sm90_design(kernel))) << sm90_name(kernel);
    EXPECT_TRUE(names.insert(family().kernel_name(kernel)).second) << sm90_name(kernel);
  });
  EXPECT_GT(names.size(), 10'000U);
  std::printf("%zu kernels\n", names.size());
}

TEST(Sm90Family, a_name_reads_back_as_its_kernel) {
  for (const Kernel& kernel : sample(16)) {
    const auto parsed = family().parse_name(family().kernel_name(kernel));
    ASSERT_TRUE(parsed) << sm90_name(kernel);
    EXPECT_EQ(*parsed, kernel) << sm90_name(kernel);
  }
}

// A prediction that discovery computes once for a class of rules is valid for all rules of the
// class.
TEST(Sm90Family, a_query_predicts_what_the_kernel_alone_would_be_predicted) {
  std::mt19937_64 random(tests::random_seed());
  const auto pick = [&](auto... words) {
    const char* const all[] = {words...};
    return std::string(all[random() % sizeof...(words)]);
  };
  for (int turn = 0; turn < 200; ++turn) {
    const auto extent = [&] { return std::to_string(8 * (1 + random() % 700)); };
    const GemmProblem problem =
        parse_problem("gemm " + extent() + "x" + extent() + "x" + extent() + " a=f16" +
                      pick("", ":c") + " b=f16" + pick("", ":c") + " out=" + pick("f16", "f32") +
                      pick("", ":c") + pick("", " acc=f16"))
            .problem;
    std::vector<RankedKernel> kernels;
    family().match({problem, *find_device_info("h200")}, kernels);
    ASSERT_FALSE(kernels.empty()) << to_string(problem);
    for (const RankedKernel& kernel : kernels) {
      const Sm90Prediction prediction(problem, kernel.operands(), *find_device_info("h200"));
      ASSERT_DOUBLE_EQ(kernel.predicted_us, prediction.microseconds(sm90_tile(kernel)))
          << to_string(problem) << ", " << sm90_name(kernel);
    }
  }
}

// The same for a program: the stages that fit with it, and its shared memory.
TEST(Sm90Family, a_query_fits_programs_as_the_kernel_alone_would_be_fitted) {
  std::mt19937_64 random(tests::random_seed() + 2);
  const DeviceInfo device = *find_device_info("h200");
  const auto extent = [&] { return 8 * (1 + random() % 700); };
  constexpr std::array layouts{"", ":c"};
  constexpr std::array outputs{"f16", "bf16", "f32"};
  std::size_t count = 0;
  for (int turn = 0; turn < 200; ++turn) {
    const std::string product = fmt::format(
        "gemm {}x{}x{} a=f16{} b=f16{} out={}{}", extent(), extent(), extent(),
        layouts[random() % 2], layouts[random() % 2], outputs[random() % 3], layouts[random() % 2]);
    const std::string line = tests::add_random_program(random, product);
    const GemmProblem problem = parse_problem(line).problem;
    for (const RankedKernel& kernel : match(line)) {
      const abi::Sm90Design design = sm90_design(kernel);
      const Sm90Prediction prediction(problem, kernel.operands(), device);
      ASSERT_TRUE(abi::is_legal(design)) << line << ", " << sm90_name(kernel);
      ASSERT_EQ(design.stages, abi::most_stages(design)) << line << ", " << sm90_name(kernel);
      ASSERT_TRUE(family().supports(kernel, {problem, device}).is_success()) << line;
      ASSERT_DOUBLE_EQ(kernel.predicted_us, prediction.microseconds(sm90_tile(kernel)))
          << line << ", " << sm90_name(kernel);
      ++count;
    }
  }
  EXPECT_GT(count, 1000U);
}

// The best designs of bench/results/h200-epilogues-rotation.md are ping-pong or rotation for every
// line, also for 4096^3, where a cooperative one is first without a program.
TEST(Sm90Family, programs_come_first_where_other_groups_multiply_meanwhile) {
  const DeviceInfo device = *find_device_info("h200");
  for (const char* const extents : {"4096x4096x4096", "8192x8192x1024", "8192x4096x512"}) {
    for (const char* const program :
         {R"p(epilogue="D = gelu(accum + bias)" bias=bf16[n])p",
          R"p(epilogue="D = gelu_tanh(accum + bias)" bias=bf16[n])p",
          R"p(epilogue="D = accum + aux" aux=bf16)p",
          R"p(epilogue="D = sigmoid(accum) * aux" aux=bf16)p",
          R"p(epilogue="D = gelu(accum + bias); peak = amax(D)" bias=bf16[n] peak=f32[1])p"}) {
      const std::string line = fmt::format("gemm {} a=bf16 b=bf16:c {}", extents, program);
      const Kernel first = get_kernels(parse_problem(line).problem, device).front();
      EXPECT_TRUE(abi::takes_turns(sm90_design(first))) << line << ": " << first.name();
    }
  }
}

TEST(Sm90Family, a_name_may_ask_for_fewer_stages) {
  const auto kernel =
      family().parse_name("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s3");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(sm90_tile(*kernel).stages, 3);
}

TEST(Sm90Family, a_name_may_ask_for_any_raster) {
  for (const char* word : {"m1", "m4", "m16", "m64", "n1", "n2", "n8", "n32"}) {
    const std::string name = std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_") +
                             "128x256x64_1x1_coop_" + word + "_s4";
    const auto kernel = family().parse_name(name);
    ASSERT_TRUE(kernel) << name;
    EXPECT_EQ(family().kernel_name(*kernel), name);
    const auto fields = family().design_fields(*kernel);
    EXPECT_TRUE(std::ranges::any_of(fields, [&](const DesignField& field) {
      return field.name == "raster" && field.value == word;
    })) << name;
  }
}

TEST(Sm90Family, a_name_of_no_tile_is_none_also_with_a_program) {
  const EpilogueId program =
      parse_problem(R"(gemm 512x512x512 a=bf16 b=bf16:c epilogue="D = accum + bias" bias=bf16[n])")
          .problem.epilogue;
  const std::string head = "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_";
  const std::string tail = "_e-" + digest(program);
  ASSERT_TRUE(family().parse_name(head + "64x128x64_1x1_k2_coop_m8_s4" + tail));
  for (const char* design :
       {"64x128x64_1x1_k0_coop_m8_s4", "0x128x64_1x1_coop_m8_s4", "64x0x64_1x1_coop_m8_s4",
        "32x128x64_1x1_coop_m8_s4", "64x8x64_1x1_coop_m8_s4", "64x128x64_0x1_coop_m8_s4",
        "64x128x64_1x0_pingpong_m8_s4", "64x128x64_1x1_coop_m0_s4", "64x128x64_1x1_coop_m8_s0"})
    for (const std::string& end : {std::string(), tail})
      EXPECT_FALSE(family().parse_name(head + design + end)) << design << end;
}

TEST(Sm90Family, rotation_is_offered_to_programs_alone) {
  const auto is_rotation = [](const RankedKernel& kernel) {
    return sm90_tile(kernel).schedule == abi::Schedule::rotation;
  };
  const std::string plain = "gemm 4096x4096x512 a=bf16 b=bf16:c";
  const std::string program = plain + R"p( epilogue="D = gelu(accum)")p";
  EXPECT_EQ(std::ranges::count_if(match(plain), is_rotation), 0);
  EXPECT_EQ(std::ranges::count_if(match(program), is_rotation), 3);
  for (const char* heavy : {"pow(accum, 2.5)", "erf(accum) * tanh(accum)", "log(softplus(accum))"})
    EXPECT_EQ(std::ranges::count_if(match(fmt::format("{} epilogue=\"D = {}\"", plain, heavy)),
                                    is_rotation),
              0)
        << heavy << ": 32 registers are too few";
  const std::string head = "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_";
  const std::string tail = "_e-" + digest(parse_problem(program).problem.epilogue);
  for (const char* design : {"128x128x64_1x1_rotation_m8_s5", "128x128x64_2x1_rotation_n4_s2"}) {
    const auto kernel = family().parse_name(head + design + tail);
    ASSERT_TRUE(kernel) << design;
    EXPECT_EQ(family().kernel_name(*kernel), head + design + tail);
    EXPECT_FALSE(family().parse_name(head + design)) << design;
  }
  for (const char* design : {"128x112x64_1x1_rotation_m8_s5", "64x128x64_1x1_rotation_m8_s5",
                             "128x128x64_1x1_rotation_m8_s6", "128x128x64_1x1_k2_rotation_m8_s2"})
    EXPECT_FALSE(family().parse_name(head + design + tail)) << design;
}

TEST(Sm90Family, a_wgmma_adds_a_vector_where_a_program_adds_one_first) {
  const std::string head = "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x128x64_1x1_rotation";
  const auto count = [](const std::string& words) {
    return std::ranges::count_if(
        match("gemm 4096x4096x512 a=bf16 b=bf16:c " + words),
        [](const RankedKernel& kernel) { return sm90_tile(kernel).adds_vector; });
  };
  const auto parse = [&](const std::string& words) {
    const EpilogueId program =
        parse_problem("gemm 512x512x512 a=bf16 b=bf16:c " + words).problem.epilogue;
    return family().parse_name(head + "-add_m8_s4_e-" + digest(program));
  };
  const std::string added = R"p(epilogue="D = gelu(accum + bias)" bias=bf16[n])p";
  EXPECT_EQ(count(added), 3);
  ASSERT_TRUE(parse(added));
  EXPECT_TRUE(sm90_tile(*parse(added)).adds_vector);
  for (const char* other :
       {R"p(epilogue="D = gelu(accum)")p", R"p(epilogue="D = gelu(accum + bias)" bias=f32[n])p",
        R"p(epilogue="D = gelu(accum + bias)" bias=f16[n])p",
        R"p(epilogue="D = gelu(accum + bias)" bias=bf16[m])p",
        R"p(epilogue="D = gelu(accum + bias)" bias=bf16)p",
        R"p(epilogue="D = (accum + bias) * t" bias=bf16[n] t=bf16)p",
        R"p(epilogue="D = (accum + bias) * t" bias=bf16[n] t=bf16[n])p",
        R"p(epilogue="D = gelu(2 * accum + bias)" bias=bf16[n])p"}) {
    EXPECT_EQ(count(other), 0) << other;
    EXPECT_FALSE(parse(other)) << other;
  }
  EXPECT_EQ(count(added + " out=f32"), 0) << "the sums' last bits are seen";
  EXPECT_FALSE(family().parse_name(head + "-add_m8_s4"));
}

// This is faster for a small k, where a tile waits for the program's arithmetic
// (bench/results/h200-epilogues-addend.md).
TEST(Sm90Family, a_vector_is_added_by_a_wgmma_where_k_is_small) {
  const DeviceInfo device = *find_device_info("h200");
  for (const char* const program : {"gelu(accum + bias)", "gelu_tanh(accum + bias)"}) {
    const auto adds = [&](const char* extents) {
      const std::string line = fmt::format(
          R"p(gemm {} a=bf16 b=bf16:c epilogue="D = {}" bias=bf16[n])p", extents, program);
      return sm90_tile(get_kernels(parse_problem(line).problem, device).front()).adds_vector;
    };
    EXPECT_TRUE(adds("8192x4096x512")) << program;
    EXPECT_FALSE(adds("8192x8192x1024")) << program;
    EXPECT_FALSE(adds("4096x4096x4096")) << program;
  }
}

TEST(Sm90Family, a_name_may_split_k) {
  const std::string name =
      "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_64x128x64_1x1_k4_coop_m8_s5";
  const auto kernel = family().parse_name(name);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(sm90_tile(*kernel).split_k, 4);
  EXPECT_EQ(family().kernel_name(*kernel), name);
  EXPECT_EQ(kernel->metadata().design_value("split_k"), "4");
  for (const char* other : {"64x128x64_1x1_k1_coop_m8_s5", "64x128x64_1x1_k3_coop_m8_s5",
                            "64x128x64_1x1_k16_coop_m8_s5", "64x128x64_1x1_4_coop_m8_s5",
                            "64x128x64_1x1_k4_pingpong_m8_s2", "64x128x64_2x1_k4_coop_m8_s5",
                            "64x96x64_1x1_k4_coop_m8_s5", "64x128x64_k4_1x1_coop_m8_s5"}) {
    EXPECT_FALSE(
        family().parse_name(std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_") + other))
        << other;
  }
}

TEST(Sm90Family, a_name_may_split_k_within_clusters_and_through_the_workspace) {
  const std::string name =
      "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_64x128x64_1x1_k4_parallel30_coop_m8_s5";
  const auto kernel = family().parse_name(name);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(sm90_tile(*kernel).split_k, 4);
  EXPECT_EQ(sm90_tile(*kernel).split, abi::SplitMode::parallel);
  EXPECT_EQ(sm90_tile(*kernel).slices, 30);
  EXPECT_EQ(family().kernel_name(*kernel), name);
  EXPECT_EQ(kernel->metadata().design_value("split_k"), "k4_parallel30");
}

TEST(Sm90Family, a_name_may_split_k_through_the_workspace) {
  const std::string head = "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_";
  for (const std::string word : {"parallel2", "parallel255", "serial3", "stream"}) {
    for (const std::string& schedule :
         {"1x1_" + word + "_coop_m8_s3", "2x1_" + word + "_pingpong_n4_s2"}) {
      const std::string name = head + "64x128x64_" + schedule;
      const auto kernel = family().parse_name(name);
      ASSERT_TRUE(kernel) << name;
      EXPECT_EQ(family().kernel_name(*kernel), name);
      EXPECT_EQ(kernel->metadata().design_value("split_k"), word);
    }
  }
  for (const char* other :
       {"64x128x64_1x1_none_coop_m8_s3", "64x128x64_1x1_parallel1_coop_m8_s3",
        "64x128x64_1x1_parallel256_coop_m8_s3", "64x128x64_1x1_serial_coop_m8_s3",
        "64x128x64_1x1_stream2_coop_m8_s3", "64x128x64_1x1_k2_stream_coop_m8_s3",
        "64x128x64_1x1_k2_serial2_coop_m8_s3", "64x128x64_1x1_parallel2_k2_coop_m8_s3",
        "64x128x64_1x1_k2_parallel1_coop_m8_s3", "64x128x64_1x1_k2_k2_coop_m8_s3",
        "64x128x64_1x1_k2_parallel2_pingpong_m8_s3", "64x128x64_2x1_k2_parallel2_coop_m8_s3",
        "192x64x64_1x1_k2_parallel2_coop_m8_s2", "64x128x64_1x1_k2_parallel2_parallel2_coop_m8_s3",
        "128x208x64_1x1_stream_pingpong_m8_s2", "64x128x64_stream_1x1_coop_m8_s3"})
    EXPECT_FALSE(family().parse_name(head + other)) << other;
  const EpilogueId program =
      parse_problem(R"(gemm 512x512x512 a=bf16 b=bf16:c epilogue="D = accum + bias" bias=bf16[n])")
          .problem.epilogue;
  EXPECT_FALSE(
      family().parse_name(head + "128x128x64_1x1_stream_rotation_m8_s3_e-" + digest(program)));
}

TEST(Sm90Family, parts_of_tiles_are_offered_beside_reductions) {
  const ProblemLine line = parse_problem(
      R"p(gemm 128x128x8192 a=bf16 b=bf16:c epilogue="D = accum; peak = amax(D)" peak=f32[1])p");
  const auto kernel = family().parse_name(
      "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_64x64x64_1x1_parallel4_coop_m8_s3_e-" +
      digest(line.problem.epilogue));
  ASSERT_TRUE(kernel);
  EXPECT_TRUE(family().supports(*kernel, {line.problem, *find_device_info("h200")}));
  const auto has_parts = [](const Kernel& offered) {
    return sm90_tile(offered).split != abi::SplitMode::none;
  };
  EXPECT_TRUE(std::ranges::any_of(match(to_string(line)), has_parts));
}

// Saturating partial sums would clamp at other values than the whole sum.
TEST(Sm90Family, k_is_split_for_every_type_but_not_where_accumulators_saturate) {
  const auto is_split = [](const Kernel& offered) {
    return sm90_tile(offered).split != abi::SplitMode::none;
  };
  for (const char* line :
       {"gemm 128x128x16384 a=s8 b=u8:c out=s32", "gemm 128x128x16384 a=e4m3:c b=e5m2 out=bf16",
        "gemm 128x128x16384 a=e4m3 b=e5m2:c out=e4m3 math=fp8_fast",
        "gemm 128x128x16384 a=f32:c b=f32 math=tf32"})
    EXPECT_TRUE(std::ranges::any_of(match(line), is_split)) << line;
  const std::string saturating = "gemm 128x128x16384 a=s8 b=s8:c out=s32 math=saturate";
  const auto offered = match(saturating);
  EXPECT_FALSE(offered.empty());
  for (const RankedKernel& kernel : offered) {
    EXPECT_EQ(sm90_tile(kernel).split_k, 1) << kernel.name();
    EXPECT_FALSE(is_split(kernel)) << kernel.name();
  }
  for (const char* split : {"k2", "parallel4", "serial2", "stream"})
    EXPECT_FALSE(family().parse_name(
        std::string("sm90v7_gemm_s8r16_s8c16_s32r16_acc-s32_wgmma-saturate_64x64x128_1x1_") +
        split + "_coop_m8_s4"))
        << split;
}

std::ptrdiff_t count_parts(const std::string& line, abi::SplitMode mode) {
  return std::ranges::count_if(
      match(line), [&](const RankedKernel& kernel) { return sm90_tile(kernel).split == mode; });
}

TEST(Sm90Family, parts_are_offered_where_tiles_leave_multiprocessors_idle) {
  for (const char* line :
       {"gemm 16x512x16384 a=bf16 b=bf16:c out=bf16", "gemm 128x128x65536 a=f16 b=f16 out=f32"})
    EXPECT_GT(count_parts(line, abi::SplitMode::parallel), 0) << line;
  EXPECT_GT(count_parts("gemm 2304x2048x8192 a=bf16 b=bf16:c", abi::SplitMode::stream), 0)
      << "tiles of 128x256 make 1.1 waves";
  for (const char* line :
       {"gemm 8192x8192x4096 a=bf16 b=bf16:c", "gemm 64x64x256 a=bf16 b=bf16:c"}) {
    EXPECT_EQ(count_parts(line, abi::SplitMode::parallel), 0) << line;
    EXPECT_EQ(count_parts(line, abi::SplitMode::stream), 0) << line;
  }
  EXPECT_EQ(count_parts("gemm 16x512x16384 a=bf16 b=bf16:c", abi::SplitMode::serial), 0);
}

std::ptrdiff_t count_splits(const std::string& line) {
  return std::ranges::count_if(
      match(line), [](const RankedKernel& kernel) { return sm90_tile(kernel).split_k > 1; });
}

// Blocks of a cluster wait for each other, so all blocks of a launch must run at once.
TEST(Sm90Family, splits_of_k_are_offered_where_tiles_are_few_and_k_is_long) {
  for (const char* line :
       {"gemm 16x4096x4096 a=bf16 b=bf16:c out=bf16", "gemm 128x4096x14336 a=f16 b=f16 out=f32",
        "gemm 512x512x16384 a=bf16:c b=bf16 out=bf16:c"}) {
    EXPECT_GT(count_splits(line), 0) << line;
    for (const RankedKernel& kernel : match(line)) {
      const Sm90Tile tile = sm90_tile(kernel);
      if (tile.split_k == 1) continue;
      const auto problem = parse_problem(line).problem;
      const Sm90TileCounts counts =
          count_tiles(extents_of(is_turned(kernel.operands(), tile), problem), tile);
      EXPECT_LE(counts.rows * counts.columns * tile.split_k, 132U) << kernel.name();
    }
  }
  for (const char* line :
       {"gemm 4096x4096x4096 a=bf16 b=bf16:c out=bf16", "gemm 64x64x256 a=bf16 b=bf16:c out=bf16",
        "gemm 64x64x4096x200 a=bf16 b=bf16:c out=bf16"})
    EXPECT_EQ(count_splits(line), 0) << line;
}

TEST(Sm90Family, other_names_are_not_its_own) {
  const std::string good = match("gemm 64x64x64 a=bf16 b=bf16 out=f32").front().name();
  ASSERT_TRUE(family().parse_name(good));
  for (const std::string& bad :
       {std::string(),
        std::string("sm90"),
        "x" + good,
        good + "_",
        good + "_c-",
        good.substr(0, good.size() - 1),
        "sm90v1" + good.substr(6),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x32_1x1_coop_m8_s4"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s5"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_2x2_coop_m8_s4"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m3_s4"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m0_s4"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_n128_s4"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_k8_s4"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_s4"),
        std::string("sm90v7_gemm_bf16r16_f16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4"),
        std::string("sm90v7_gemm_bf16r8_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4"),
        std::string("sm90v7_gemm_bf16x16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f64_128x256x64_1x1_coop_m8_s4"),
        std::string(
            "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4_c-bf16c16"),
        std::string("sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_0x0x64_0x0_coop_m8_s0")}) {
    EXPECT_FALSE(family().parse_name(bad)) << bad;
  }
}

TEST(Sm90Family, serves_all_layouts_of_both_types) {
  for (const char* type : {"bf16", "f16"}) {
    for (const char* a : {"", ":c"}) {
      for (const char* b : {"", ":c"}) {
        for (const char* out : {"f32", "bf16", "f16:c"}) {
          const std::string line =
              std::string("gemm 136x72x200x2 a=") + type + a + " b=" + type + b + " out=" + out;
          const auto kernels = match(line);
          ASSERT_FALSE(kernels.empty()) << line;
          EXPECT_EQ(kernels.size(), count_tiles_for(kernels.front().operands())) << line;
        }
      }
    }
  }
}

// Every type in every layout, with all options of a problem.
TEST(Sm90Family, serves_all_layouts_of_all_other_types) {
  struct Row {
    const char* a;
    const char* b;
    const char* out;
    const char* math;
    Math expected;
  };
  for (const Row& row :
       std::initializer_list<Row>{{"f32", "f32", "f32", "math=tf32", Math::tf32},
                                  {"f32", "f32", "bf16", "math=tf32", Math::tf32},
                                  {"f32", "f32", "f32", "math=tf32x3", Math::tf32x3},
                                  {"f32", "f32", "f16", "math=bf16x3", Math::bf16x3},
                                  {"f32", "f32", "bf16", "math=bf16x6", Math::bf16x6},
                                  {"f32", "f32", "f32", "math=bf16x9", Math::bf16x9},
                                  {"s8", "s8", "s32", "", Math::native},
                                  {"s8", "u8", "s8", "", Math::native},
                                  {"u8", "s8", "f32", "", Math::native},
                                  {"u8", "u8", "u8", "math=saturate", Math::saturate},
                                  {"e4m3", "e4m3", "bf16", "", Math::fp8_promoted},
                                  {"e4m3", "e5m2", "f16", "math=fp8_promoted", Math::fp8_promoted},
                                  {"e5m2", "e4m3", "f32", "math=fp8_fast", Math::fp8_fast},
                                  {"e5m2", "e5m2", "e4m3", "", Math::fp8_promoted},
                                  {"e4m3", "e4m3", "e5m2", "math=fp8_fast", Math::fp8_fast}}) {
    for (const char* a : {"", ":c"}) {
      for (const char* b : {"", ":c"}) {
        for (const char* out : {"", ":c"}) {
          const std::string line = fmt::format("gemm 144x80x208x2 a={}{} b={}{} out={}{} {}", row.a,
                                               a, row.b, b, row.out, out, row.math);
          const auto kernels = match(line);
          ASSERT_FALSE(kernels.empty()) << line << ": " << why_not(line);
          EXPECT_EQ(kernels.size(), count_tiles_for(kernels.front().operands())) << line;
          EXPECT_EQ(kernels.front().operands().math, row.expected) << line;
        }
      }
    }
  }
}

TEST(Sm90Family, sums_of_float16_have_kernels_and_larger_tiles) {
  const auto wide = match("gemm 4096x4096x4096 a=f16 b=f16:c out=f16");
  const auto narrow = match("gemm 4096x4096x4096 a=f16 b=f16:c out=f16 acc=f16");
  EXPECT_GT(narrow.size(), wide.size());
  for (const RankedKernel& kernel : narrow) {
    EXPECT_EQ(kernel.operands().accumulator, DType::float16) << kernel.name();
    EXPECT_NE(kernel.name().find("acc-f16"), std::string::npos) << kernel.name();
  }
}

TEST(Sm90Family, what_matches_is_supported) {
  for (const char* line :
       {"gemm 128x256x512 a=bf16 b=bf16:c out=bf16", "gemm 8x8x8 a=f16:c b=f16 out=f32",
        "gemm 40x48x56x3 a=bf16/batch=0 b=bf16 out=bf16:c c=f32:c beta=1",
        "gemm 512x512x512x3 a=f16 b=e5m2:c out=bf16 scale_b=f32[row] c=f16 beta=1",
        "conv3d_dgrad 8x8x16x16x256 k=512 t=2 r=3 s=3 pad=1 stride=2 a=e4m3 out=f16 math=fp8_fast",
        "conv2d_wgrad 8x28x28x208 k=512 r=3 s=3 pad=1 a=f32 math=tf32"}) {
    const GemmProblem problem = parse_problem(line).problem;
    const DeviceInfo device = *find_device_info("h200");
    const auto kernels = match(line);
    ASSERT_FALSE(kernels.empty()) << line;
    for (const RankedKernel& kernel : kernels) {
      EXPECT_TRUE(kernel::keeps_rules(kernel.operands(), problem)) << kernel.name();
      EXPECT_TRUE(family().supports(kernel, {problem, device}).is_success()) << kernel.name();
      EXPECT_TRUE(abi::is_legal(sm90_design(kernel))) << kernel.name();
      EXPECT_GT(kernel.predicted_us, 0) << kernel.name();
    }
  }
}

TEST(Sm90Family, says_why_it_does_not_serve) {
  struct Row {
    const char* line;
    const char* expected;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"gemm 64x64x64 a=f32", "types: expected A and B both float16 or bfloat16, 8-bit"},
           {"gemm 64x64x64 a=bf16 b=f16 out=f32", "types: expected A and B both"},
           {"gemm 64x64x64 a=f16 b=f16 out=f32 acc=f64", "types: expected A and B both"},
           {"gemm 64x64x64 a=f32 math=f16x3", "types: expected A and B both"}}) {
    EXPECT_TRUE(match(row.line).empty()) << row.line;
    EXPECT_EQ(why_not(row.line).find(row.expected), 0U) << row.line << ": " << why_not(row.line);
  }
}

// If TMA can load an operand, no copy of it is offered.
TEST(Sm90Family, operands_that_tma_does_not_walk_are_repacked) {
  struct Row {
    const char* line;
    const char* a;
    const char* b;
    const char* repacked;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"gemm 64x64x64 a=bf16", "bf16r16", "bf16r16", ""},
           {"gemm 64x64x63 a=bf16", "bf16r2", "bf16r16", "a"},
           {"gemm 64x64x63 a=bf16 b=bf16:c", "bf16r2", "bf16c2", "ab"},
           {"gemm 64x64x64 a=f16/align=8 b=f16", "f16r2", "f16r16", "a"},
           {"gemm 63x64x64 a=f16 b=f16:c/ld=100 out=f16", "f16r16", "f16c2", "b"},
           {"gemm 63x64x64 a=f16:c b=f16", "f16c2", "f16r16", "a"},
           {"gemm 64x64x64 a=bf16/strides=-64,1", "bf16r2", "bf16r16", "a"},
           {"gemm 64x64x64 a=bf16/strides=0,1", "bf16r2", "bf16r16", "a"},
           {"gemm 64x64x64 a=bf16 b=bf16/strides=200,3", "bf16r16", "bf16x2", "b"},
           {"gemm 64x64x64x2 a=bf16 b=bf16/batch=4097", "bf16r16", "bf16r2", "b"}}) {
    const auto kernels = match(row.line);
    ASSERT_FALSE(kernels.empty()) << row.line << ": " << why_not(row.line);
    for (const Kernel& kernel : kernels) {
      EXPECT_EQ(rule_text(kernel.operands().a), row.a) << row.line;
      EXPECT_EQ(rule_text(kernel.operands().b), row.b) << row.line;
      EXPECT_EQ(repacked_text(kernel.operands()), row.repacked) << row.line;
      const bool has_word =
          kernel.name().find("_pack" + std::string(row.repacked)) != std::string::npos;
      EXPECT_EQ(has_word, *row.repacked != 0) << kernel.name();
      EXPECT_EQ(family().parse_name(kernel.name()), kernel) << kernel.name();
    }
  }
}

TEST(Sm90Family, out_that_tma_does_not_store_is_stored_by_threads) {
  struct Row {
    const char* line;
    const char* out;
    const char* c;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"gemm 64x64x64 a=bf16", "bf16r16", ""},
           {"gemm 64x63x64 a=bf16", "bf16r2", ""},
           {"gemm 64x62x64 a=bf16", "bf16r4", ""},
           {"gemm 64x60x64 a=bf16", "bf16r8", ""},
           {"gemm 63x64x64 a=bf16 out=f32:c", "f32c4", ""},
           {"gemm 64x64x64 a=bf16 out=bf16/strides=-64,1", "bf16r8", ""},
           {"gemm 64x64x64 a=bf16 out=bf16/strides=129,2", "bf16x2", ""},
           {"gemm 64x64x64 a=bf16 out=f32 c=bf16 beta=1", "f32r16", "bf16r16"},
           {"gemm 64x64x64 a=bf16 out=f32 c=f32:c beta=1", "f32r16", "f32x4"},
           {"gemm 64x64x64 a=bf16 out=f32 c=f32/strides=0,1 beta=1", "f32r16", "f32r16"},
           {"gemm 64x64x64 a=bf16 out=f32/strides=129,2 c=f32 beta=1", "f32x4", "f32x4"}}) {
    const auto kernels = match(row.line);
    ASSERT_FALSE(kernels.empty()) << row.line << ": " << why_not(row.line);
    for (const Kernel& kernel : kernels) {
      EXPECT_EQ(rule_text(kernel.operands().out), row.out) << row.line;
      EXPECT_EQ(kernel.operands().has_c ? rule_text(kernel.operands().c) : "", row.c) << row.line;
      EXPECT_EQ(family().parse_name(kernel.name()), kernel) << kernel.name();
    }
  }
}

TEST(Sm90Family, a_name_says_which_operands_are_repacked) {
  const std::string head = "sm90v7_gemm_bf16r2_bf16r16_bf16r16_acc-f32_128x128x64_1x1_coop_m8_s4";
  EXPECT_TRUE(family().parse_name(head + "_packa"));
  for (const char* other : {"", "_packb", "_packab", "_pack", "_packa_packa"})
    EXPECT_FALSE(family().parse_name(head + other)) << other;
}

TEST(Sm90Family, repacking_comes_first_where_the_product_is_large) {
  const DeviceInfo device = *find_device_info("h200");
  const auto first = [&](const char* line) {
    return get_kernels(parse_problem(line).problem, device).front().name();
  };
  for (const char* large : {"gemm 4095x4097x4099 a=bf16", "gemm 4096x4096x4099 a=bf16",
                            "gemm 4096x4096x4096 a=f16/strides=8193,2"})
    EXPECT_NE(first(large).find("_packa"), std::string::npos) << first(large);
  for (const char* small : {"gemm 64x64x67 a=bf16", "gemm 8x256x256 a=bf16 b=bf16:c/ld=257"})
    EXPECT_EQ(first(small).find("_pack"), std::string::npos) << first(small);
}

TEST(Sm90Family, other_devices_are_refused_by_target) {
  for (const char* device : {"a100", "rtx4090", "b200"}) {
    EXPECT_TRUE(match("gemm 64x64x64 a=bf16 b=bf16 out=f32", device).empty()) << device;
    EXPECT_EQ(why_not("gemm 64x64x64 a=bf16 b=bf16 out=f32", device).find("target:"), 0U) << device;
  }
}

TEST(Sm90Family, source_names_its_design_and_is_equal_for_equal_kernels) {
  const Kernel kernel = match("gemm 512x512x512 a=bf16 b=bf16:c out=bf16").front();
  const auto source = family().emit(kernel, {90, 'a'});
  EXPECT_EQ(source.text, family().emit(kernel, {90, 'a'}).text);
  EXPECT_NE(source.text.find("Sm90Design"), std::string::npos);
  EXPECT_EQ(source.max_dynamic_shared_bytes, abi::launch_shared_bytes(sm90_design(kernel)));
}

TEST(Sm90Groups, are_refused_by_name) {
  const std::string rows = "grouped_gemm 512x64x64 groups=4 a=bf16 b=bf16:c";
  const std::string scattered = rows + " scatter=i32/of=900";
  EXPECT_EQ(why_not(scattered), "");
  EXPECT_EQ(why_not(scattered + " c=bf16 beta=1"), "");
  EXPECT_EQ(why_not(scattered + " epilogue=\"D = relu(accum) * w\" w=f32[m]"), "");
  EXPECT_EQ(why_not(scattered + " epilogue=\"D = accum + residual; E = D * 2\" residual=f32 E=f32"),
            "");
  EXPECT_EQ(why_not(scattered + " epilogue=\"D = accum; peak = amax(D)\" peak=f32[l,1]"),
            "groups: expected an epilogue without reductions beside a scatter by indices, got one "
            "with");
  EXPECT_EQ(why_not(rows + " gather=i32/of=900 outside=zero"), "");
  EXPECT_EQ(why_not("grouped_gemm 512x64x64 groups=4 gather=i32/of=900 a=f32 math=tf32"), "");
  EXPECT_EQ(why_not(scattered + " out=bf16:c"),
            "out: expected row major for rows by index, got column major");
  EXPECT_EQ(why_not("grouped_gemm 64x512x64 groups=4 ragged=n ends=i32/align=8 scatter=i32/of=900 "
                    "a=bf16 b=bf16:c"),
            "out: expected column major for columns by index, got row major");
  EXPECT_EQ(why_not(rows + " outside=zero"), "");
  EXPECT_EQ(why_not(rows + " labels=i32/align=32"),
            "labels: expected ones that change at multiples of 64 (alignment of groups), got 32");
}

TEST(Sm90Groups, are_of_kernels_of_their_own_and_have_names_that_read_back) {
  const DeviceInfo h200 = *find_device_info("h200");
  std::vector<Kernel> kernels;
  std::vector<GemmProblem> problems;
  for (const char* const form :
       {"", " ends=i32/host", " outside=zero", " ends=i32/host outside=zero", " scatter=i32/of=900",
        " gather=i32/of=900 outside=zero"}) {
    const std::string line = std::string("grouped_gemm 512x64x64 groups=4 a=bf16 b=bf16:c") + form;
    problems.push_back(parse_problem(line).problem);
    kernels.push_back(match(line).front());
  }
  for (std::size_t kernel = 0; kernel < kernels.size(); ++kernel) {
    EXPECT_EQ(family().parse_name(kernels[kernel].name()), kernels[kernel]);
    for (std::size_t problem = 0; problem < problems.size(); ++problem)
      EXPECT_EQ(family().supports(kernels[kernel], {problems[problem], h200}).is_success(),
                kernel == problem)
          << kernels[kernel].name() << ", " << to_string(problems[problem]);
  }
}

}  // namespace
}  // namespace gemmery::templates
