// SPDX-License-Identifier: Apache-2.0
// Checks that machine code of the sm90 family matches its designs. A short run compiles a new
// sample of GEMMERY_TEST_CUBINS kernels; a long one compiles every design with every combination of
// contiguous indices of A and B, each with random types and a random layout of out. Kernels come
// from discovery, so new designs are included automatically. No GPU is needed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "jit/nvrtc.hpp"
#include "platform/parallel.hpp"
#include "providers/templates/sm90/design.hpp"
#include "tests/providers/templates/sm90/cubin_checks.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/soak_journal.hpp"

namespace gemmery::templates {
namespace {

constexpr Target hopper{90, 'a'};
using Random = std::mt19937_64;

bool is_long() { return std::getenv("GEMMERY_SOAK") != nullptr; }

template <class Range>
const auto& draw(const Range& range, Random& random) {
  return range[random() % std::size(range)];
}

// --- which kernels ------------------------------------------------------------------------------

// GEMMERY_TEST_NAME selects names that contain it ("bf16c16_e4m3").
std::vector<Kernel> listed_kernels() {
  const char* const part = std::getenv("GEMMERY_TEST_NAME");
  std::vector<Kernel> kernels;
  for_each_kernel(
      [&](const Kernel& kernel) {
        if (kernel.family().name() == "sm90" &&
            (part == nullptr || kernel.name().find(part) != std::string::npos))
          kernels.push_back(kernel);
      },
      {.target = hopper, .providers = {"templates"}});
  return kernels;
}

// A kernel's design without its types, and without stages, which depend on the types.
std::string design_and_majors(const Kernel& kernel) {
  const abi::Sm90Design design = sm90_design(kernel);
  std::string key = fmt::format("{}{}", design.a_major == abi::Major::k ? 'k' : 'm',
                                design.b_major == abi::Major::k ? 'k' : 'n');
  for (const DesignField& field : kernel.family().design_fields(kernel)) {
    if (field.name != "stages") key += "_" + field.value;
  }
  return key;
}

// One random kernel of each design.
std::vector<Kernel> draw_one_of_each(const std::vector<Kernel>& listed, Random& random) {
  std::map<std::string, std::vector<Kernel>> groups;
  for (const Kernel& kernel : listed) groups[design_and_majors(kernel)].push_back(kernel);
  std::vector<Kernel> drawn;
  for (const auto& [key, kernels] : groups) drawn.push_back(draw(kernels, random));
  return drawn;
}

// A convolution whose channels TMA can load.
std::string draw_convolution(Random& random) {
  Sm90Products products = draw(sm90_products(), random);
  while (is_mixed_sm90(products.a, products.b)) products = draw(sm90_products(), random);
  const auto channels = [&] { return 16 / byte_width(products.a) * (1 + random() % 32); };
  const std::size_t dimensions = 1 + random() % 3;
  static constexpr std::array<const char*, 3> kinds{"fprop", "dgrad", "wgrad"};
  static constexpr std::array<const char*, 3> images{"x64", "x56x56", "x8x16x16"};
  static constexpr std::array<const char*, 3> filters{" s=5", " r=3 s=3", " t=2 r=3 s=3"};
  std::string line = fmt::format(
      "conv{}d_{} {}{}x{} k={}{} pad=1 stride={} a={} b={} out={} acc={} math={}", dimensions,
      draw(kinds, random), 1 + random() % 32, images[dimensions - 1], channels(), channels(),
      filters[dimensions - 1], 1 + random() % 2, alias(products.a), alias(products.b),
      alias(draw(sm90_outputs(products.a, products.b), random)), alias(products.accumulator),
      name(products.math));
  if (random() % 3 == 0)
    line += fmt::format(" c={} beta=1", alias(draw(sm90_addends(products.a, products.b), random)));
  return line;
}

// Scales of one operand or of both, for 8-bit floats.
std::string draw_scales(Random& random) {
  static constexpr std::array<const char*, 6> scales{"f32[1x128]",          "f32[128x128]",
                                                     "f32[1x64]",           "e8m0[1x32]",
                                                     "e8m0[1x32]:swizzled", "bf16[1x128]*f32"};
  const std::size_t operands = random() % 3;
  std::string text;
  if (operands != 1) text += fmt::format(" scale_a={}", draw(scales, random));
  if (operands != 2) text += fmt::format(" scale_b={}", draw(scales, random));
  return text;
}

// Scales and zero points of codes; integers have a scale in any case.
std::string draw_code_scales(const Sm90Products& products, Random& random) {
  static constexpr std::array<const char*, 5> scales{"f32[row]", "f32[1x64]", "bf16[1x32]",
                                                     "f16[128x128]", "e8m0[1x32]:swizzled"};
  const bool is_a = decodes_a_sm90(products.a, products.b);
  const DType code = is_a ? products.a : products.b;
  const char operand = is_a ? 'a' : 'b';
  if (code == DType::float4_e2m1fn && random() % 3 == 0)
    return fmt::format(" scale_{}=e4m3[1x16]", operand);
  if (!is_integer(code) && random() % 3 == 0) return {};
  std::string text = fmt::format(" scale_{}={}", operand, draw(scales, random));
  if (is_integer(code) && random() % 2 == 0)
    text += fmt::format(" zero_{}={}[1x64]:{}", operand, alias(code), is_a ? 'm' : 'n');
  return text;
}

// Any types and layouts, scales of codes; one in three has extents that TMA cannot load, half have
// a C, and half of those of promoted 8-bit floats have scales.
std::string draw_problem(Random& random) {
  static constexpr std::array<const char*, 2> layouts{"", ":c"};
  const Sm90Products& products = draw(sm90_products(), random);
  const bool is_packed = bit_width(products.a) < 8 || bit_width(products.b) < 8;
  const std::size_t unit = !is_packed && random() % 3 == 0 ? 1 : 16;  // packed rows fill bytes
  const auto extent = [&] { return unit * (1 + random() % (std::size_t{1} << random() % 12)); };
  const std::string_view out_layout = draw(layouts, random);
  std::string line = fmt::format("gemm {}x{}x{}x{} a={}{} b={}{} out={}{} acc={} math={}", extent(),
                                 extent(), extent(), 1 + random() % 3, alias(products.a),
                                 draw(layouts, random), alias(products.b), draw(layouts, random),
                                 alias(draw(sm90_outputs(products.a, products.b), random)),
                                 out_layout, alias(products.accumulator), name(products.math));
  if (random() % 2 == 0)
    line += fmt::format(" c={}{} beta=1", alias(draw(sm90_addends(products.a, products.b), random)),
                        out_layout);
  if (products.math == Math::fp8_promoted && random() % 2 == 0) line += draw_scales(random);
  if (is_mixed_sm90(products.a, products.b)) line += draw_code_scales(products, random);
  return line;
}

// Kernels that discovery returns for problems, with the stages and rasters that it chooses.
std::vector<Kernel> draw_from_problems(std::size_t count, Random& random) {
  const DeviceInfo device = *find_device_info("h200");
  std::vector<Kernel> drawn;
  while (drawn.size() < count) {
    std::vector<Kernel> fitting;
    for (const RankedKernel& kernel : get_kernels(
             parse_problem(random() % 4 == 0 ? draw_convolution(random) : draw_problem(random))
                 .problem,
             device)) {
      if (kernel.family().name() == "sm90") fitting.push_back(kernel);
    }
    if (!fitting.empty()) drawn.push_back(draw(fitting, random));
  }
  return drawn;
}

TEST(Sm90CubinProblems, that_are_drawn_are_valid) {
  Random random(tests::random_seed());
  for (int count = 0; count < 500; ++count) {
    const std::string line = count % 4 == 0 ? draw_convolution(random) : draw_problem(random);
    EXPECT_NO_THROW(parse_problem(line)) << line;
  }
}

// Kernels with the fewest registers besides accumulators, or whose producers have the most work, of
// which earlier versions spilled, and one whose shared memory ends within the last bytes of a
// kilobyte and was once counted too small: a few among 100,000.
constexpr const char* once_wrong[] = {
    "sm90v7_gemm_f16c16_f16c16_f16c16_acc-f16_256x192x64_1x1_k2_coop_m8_s2_c-bf16c16",
    "sm90v7_gemm_f16c16_f16c16_f16r16_acc-f32_192x160x64_1x1_k2_coop_m8_s2",
    "sm90v7_gemm_f16r16_f16c16_e4m3r16_acc-f16_192x128x64_1x1_coop_m16_s3_groups-persistent-gather_"
    "c-f16r16",
    "sm90v7_gemm_f16r16_f16c16_f32c16_acc-f32_192x128x64_1x1_coop_m8_s4_groups-persistent-gather-"
    "scatter",
    "sm90v7_gemm_u8r16_s8r16_u8r16_acc-s32_wgmma-saturate_192x192x128_2x1_coop_m8_s3_conv3d-dgrad-"
    "strided",
    "sm90v7_gemm_f32c16_f32r16_f32r16_acc-f32_wgmma-tf32_128x256x32_1x1_coop_m8_s4_conv3d-wgrad-"
    "padded",
};

// The number of kernels of each kind in a short run.
std::size_t short_sample() {
  const char* const wanted = std::getenv("GEMMERY_TEST_CUBINS");
  return wanted == nullptr ? 20 : std::strtoul(wanted, nullptr, 10) / 2;
}

std::vector<Kernel> choose_kernels(Random& random) {
  const std::size_t short_count = short_sample();
  const std::vector<Kernel> listed = listed_kernels();
  std::vector<Kernel> chosen;
  if (is_long()) {
    chosen = draw_one_of_each(listed, random);
  } else {
    while (chosen.size() < short_count) chosen.push_back(draw(listed, random));
  }
  const auto more = draw_from_problems(is_long() ? chosen.size() / 8 : short_count, random);
  chosen.insert(chosen.end(), more.begin(), more.end());
  for (const char* name : once_wrong) chosen.push_back(find_kernel(name).value());
  std::ranges::shuffle(chosen, random);  // long compilations spread over threads
  return chosen;
}

// --- the run ------------------------------------------------------------------------------------

struct Outcome {
  std::size_t kernels = 0;
  std::vector<std::string> resource_faults;
  std::vector<std::string> instruction_faults;
  std::vector<double> compile_ms;
};

class Run {
 public:
  explicit Run(std::optional<jit::Disassembler> disassembler)
      : disassembler_(std::move(disassembler)) {
    if (is_long()) journal_.emplace("sm90-cubins");
    Random random(journal_ ? journal_->seed() : tests::compilation_seed());
    kernels_ = choose_kernels(random);
    outcome_.kernels = kernels_.size();
  }

  Outcome finish() {
    std::printf("%zu kernels%s\n", kernels_.size(), resumption().c_str());
    std::fflush(stdout);
    platform::parallel_for(static_cast<std::int64_t>(kernels_.size()), 1,
                           [&](std::int64_t begin, std::int64_t end) {
                             for (std::int64_t index = begin; index < end; ++index)
                               visit(kernels_[static_cast<std::size_t>(index)]);
                           });
    const bool is_clean = outcome_.resource_faults.empty() && outcome_.instruction_faults.empty();
    if (journal_ && is_clean) journal_->finish();
    print_times();
    return outcome_;
  }

 private:
  void print_times() {
    std::vector<double>& times = outcome_.compile_ms;
    if (times.empty()) return;
    std::ranges::sort(times);
    std::printf("compiled on %d threads: median %.0f ms, longest %.0f ms\n",
                platform::thread_count(), times[times.size() / 2], times.back());
  }

  std::string resumption() const {
    if (!journal_ || journal_->size() == 0) return "";
    return fmt::format(", {} of them passed before (GEMMERY_TEST_SEED={})", journal_->size(),
                       journal_->seed());
  }

  void visit(const Kernel& kernel) {
    const std::string kernel_name = kernel.name();
    if (journal_ && journal_->contains(kernel_name)) {
      const std::lock_guard lock(noting_);
      return note_progress();
    }
    std::vector<std::string> resource_faults;
    std::vector<std::string> instruction_faults;
    std::optional<double> compile_ms;
    try {
      const jit::CompiledCode code = compile_sm90(kernel);
      compile_ms = code.compile_ms;
      resource_faults = find_resource_faults(kernel, code.usage);
      if (disassembler_) {
        instruction_faults =
            find_instruction_faults(kernel, disassembler_->disassemble(code.cubin));
      }
    } catch (const Error& error) {
      resource_faults.emplace_back(error.what());
    }
    if (journal_ && resource_faults.empty() && instruction_faults.empty())
      journal_->add(kernel_name);
    const std::lock_guard lock(noting_);
    if (compile_ms) outcome_.compile_ms.push_back(*compile_ms);
    note_faults(kernel_name, resource_faults, outcome_.resource_faults);
    note_faults(kernel_name, instruction_faults, outcome_.instruction_faults);
    note_progress();
  }

  // The caller holds the lock. Printed at once, since long runs may be interrupted.
  static void note_faults(const std::string& kernel_name, const std::vector<std::string>& found,
                          std::vector<std::string>& all) {
    for (const std::string& fault : found) {
      all.push_back(kernel_name + ": " + fault);
      std::printf("%s\n", all.back().c_str());
    }
  }

  // The caller holds the lock.
  void note_progress() {
    const std::size_t done = ++done_;
    if (done % 100 != 0 && done != kernels_.size()) return;
    const auto seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::printf("%zu of %zu kernels, %zu faults, %.0f s\n", done, kernels_.size(),
                outcome_.resource_faults.size() + outcome_.instruction_faults.size(), seconds);
    std::fflush(stdout);
  }

  std::optional<jit::Disassembler> disassembler_;
  std::optional<tests::SoakJournal> journal_;
  std::vector<Kernel> kernels_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex noting_;  // guards what follows
  std::size_t done_ = 0;
  Outcome outcome_;
};

// Both tests use one run.
const Outcome& outcome() {
  static const Outcome once = Run(jit::find_disassembler()).finish();
  return once;
}

class Sm90Cubins : public testing::Test {
 protected:
  void SetUp() override {
    const jit::CompilerStatus status = jit::compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
    if (!jit::find_nvrtc().knows(hopper)) GTEST_SKIP() << "NVRTC does not know sm_90a";
  }
};

TEST_F(Sm90Cubins, take_the_registers_and_the_shared_memory_of_their_designs_and_spill_nothing) {
  for (const std::string& fault : outcome().resource_faults) ADD_FAILURE() << fault;
  EXPECT_GT(outcome().kernels, 0U);
}

TEST_F(Sm90Cubins, hold_the_instructions_that_their_designs_promise) {
  if (!jit::find_disassembler()) {
    GTEST_SKIP() << "no nvdisasm among "
                 << fmt::format("{}", fmt::join(jit::disassembler_places(), ", "));
  }
  for (const std::string& fault : outcome().instruction_faults) ADD_FAILURE() << fault;
}

// --- the checks themselves ----------------------------------------------------------------------

// A cooperative kernel with two consumers, 16-bit operands and no cluster.
Kernel draw_plain_kernel(Random& random) {
  const std::vector<Kernel> listed = listed_kernels();
  for (;;) {
    const Kernel& kernel = draw(listed, random);
    const Sm90Tile tile = sm90_tile(kernel);
    if (byte_width(kernel.operands().a.dtype) == 2 && tile.m == 128 && tile.n >= 32 &&
        tile.cluster_m * tile.cluster_n * tile.split_k == 1 &&
        tile.schedule == abi::Schedule::cooperative && abi::stores_by_tma(sm90_design(kernel)))
      return kernel;
  }
}

Kernel with_tile(const Kernel& kernel, const Sm90Tile& tile) {
  return {kernel.family(), kernel.operands(), DesignBytes::of(tile)};
}

Kernel with_rules(const Kernel& kernel, const OperandRules& rules) {
  return {kernel.family(), rules, kernel.design()};
}

// Kernels that differ from this one in one field, so that its code must fail their checks; each
// with a word of the expected message.
std::vector<std::pair<Kernel, std::string>> strangers_to(const Kernel& kernel) {
  Sm90Tile narrower = sm90_tile(kernel);
  narrower.n = static_cast<std::uint16_t>(narrower.n - 16);
  Sm90Tile pair = sm90_tile(kernel);
  pair.cluster_m = 2;
  Sm90Tile alone = sm90_tile(kernel);
  alone.m = 64;
  OperandRules other_type = kernel.operands();
  other_type.a.dtype = other_type.b.dtype =
      other_type.a.dtype == DType::float16 ? DType::bfloat16 : DType::float16;
  OperandRules other_layout = kernel.operands();
  other_layout.a.layout =
      other_layout.a.layout == LayoutRule::row ? LayoutRule::column : LayoutRule::row;
  return {{with_tile(kernel, narrower), "wgmma: expected HGMMA"},
          {with_tile(kernel, pair), "has loads of two blocks"},
          {with_tile(kernel, alone), "setmaxnreg of consumers: expected 0"},
          {with_rules(kernel, other_type), "wgmma: expected HGMMA"},
          {with_rules(kernel, other_layout), "wgmma turns"}};
}

bool names(const std::vector<std::string>& faults, std::string_view word) {
  return std::ranges::any_of(
      faults, [&](const std::string& fault) { return fault.find(word) != std::string::npos; });
}

TEST_F(Sm90Cubins, of_a_design_that_differs_in_one_field_are_found_out) {
  const auto disassembler = jit::find_disassembler();
  if (!disassembler) GTEST_SKIP() << "no nvdisasm";
  Random random(tests::compilation_seed() + 1);
  const Kernel kernel = draw_plain_kernel(random);
  const std::string sass = disassembler->disassemble(compile_sm90(kernel).cubin);
  EXPECT_TRUE(find_instruction_faults(kernel, sass).empty()) << kernel.name();
  for (const auto& [stranger, word] : strangers_to(kernel)) {
    EXPECT_TRUE(names(find_instruction_faults(stranger, sass), word))
        << "code of " << kernel.name() << " passes for " << stranger.name();
  }
  EXPECT_TRUE(names(find_instruction_faults(kernel, sass + "/*0000*/ STL [R1], R2 ;\n"), "local"));
  EXPECT_TRUE(names(find_instruction_faults(kernel, ""), "stores by TMA"));
}

// The most instructions from a wgmma of a kernel's loop to the next one.
int most_between_wgmmas(std::string_view sass) {
  int most = 0;
  int last = -1;
  int index = 0;
  jit::for_each_instruction(sass, [&](const jit::SassInstruction& instruction) {
    if (instruction.mnemonic.find("GMMA.") != std::string_view::npos) {
      if (last >= 0) most = std::max(most, index - last);
      last = index;
    }
    ++index;
  });
  return most;
}

// A wgmma of 256 columns takes 128 clocks, those of two consumers 256, in which a scheduler issues
// the instructions of one warp of each.
TEST_F(Sm90Cubins, decode_codes_by_few_instructions_beside_each_wgmma) {
  const auto disassembler = jit::find_disassembler();
  if (!disassembler) GTEST_SKIP() << "no nvdisasm";
  struct Row {
    const char* types;
    int most;
  };
  for (const Row& row :
       {Row{"bf16r16_e2m1c16", 44}, Row{"bf16r16_e4m3c16", 34}, Row{"f16r16_e5m2c16", 22}}) {
    const std::string name =
        fmt::format("sm90v7_gemm_{}_f32r16_acc-f32_128x256x64_1x1_coop_m8_s4_regb", row.types);
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    const int most = most_between_wgmmas(disassembler->disassemble(compile_sm90(*kernel).cubin));
    EXPECT_GT(most, 0) << name;
    EXPECT_LE(most, row.most) << name;
  }
}

TEST(Sm90CubinResources, beyond_those_of_a_launch_are_found_out) {
  Random random(tests::compilation_seed() + 2);
  const Kernel kernel = draw_plain_kernel(random);  // 384 threads, 504 registers by setmaxnreg
  const auto faults_of = [&](const jit::CodeUsage& usage) {
    return find_resource_faults(kernel, usage);
  };
  const auto usage = [](int registers) {
    jit::CodeUsage whole;
    whole.registers = registers;
    return whole;
  };
  EXPECT_TRUE(faults_of(usage(168)).empty());
  EXPECT_TRUE(names(faults_of(usage(160)), "registers after setmaxnreg"));
  EXPECT_TRUE(names(faults_of(usage(169)), "registers of a block"));
  jit::CodeUsage spilling = usage(168);
  spilling.spill_load_bytes = 4;
  EXPECT_TRUE(names(faults_of(spilling), "bytes spilled"));
  jit::CodeUsage stacking = usage(168);
  stacking.stack_bytes = 8;
  EXPECT_TRUE(names(faults_of(stacking), "bytes of stack"));
}

}  // namespace
}  // namespace gemmery::templates
