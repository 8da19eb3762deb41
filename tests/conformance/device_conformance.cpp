// SPDX-License-Identifier: Apache-2.0
// Runs the suite on every kernel that discovery offers for a device.
#include "tests/conformance/device_conformance.hpp"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "jit/nvrtc.hpp"
#include "platform/parallel.hpp"

namespace gemmery::conformance {
namespace {

std::size_t wanted_gpu() {
  const char* const text = std::getenv("GEMMERY_TEST_DEVICE");
  return static_cast<std::size_t>(text != nullptr ? std::atoi(text) : 0);
}

// --- which kernels ------------------------------------------------------------------------------

bool has_wanted_word(const Kernel& kernel) {
  const auto& words = DeviceConformance::GetParam().words;
  const std::string name = words.empty() ? "" : kernel.name();
  return words.empty() || std::ranges::any_of(words, [&](const char* word) {
           return name.find(word) != std::string::npos;
         });
}

// Whether the kernel is selected: by the family of the instance or GEMMERY_TEST_FAMILY, and by
// GEMMERY_TEST_NAME, a part of its name ("_k4_").
bool is_wanted(const Kernel& kernel) {
  const std::string& of_instance = DeviceConformance::GetParam().family;
  const char* const family = std::getenv("GEMMERY_TEST_FAMILY");
  const char* const part = std::getenv("GEMMERY_TEST_NAME");
  return (family == nullptr || kernel.family().name() == family) &&
         (of_instance.empty() || kernel.family().name() == of_instance) &&
         has_wanted_word(kernel) &&
         (part == nullptr || kernel.name().find(part) != std::string::npos);
}

std::vector<Kernel> wanted_of(const std::vector<RankedKernel>& ranked) {
  std::vector<Kernel> kernels;
  for (const RankedKernel& kernel : ranked) {
    if (is_wanted(kernel)) kernels.push_back(kernel);
  }
  return kernels;
}

// The first kernel of each family, schedule, cluster and split among those that run the arguments.
std::vector<Kernel> one_of_each_design(const GemmArguments& arguments) {
  std::vector<Kernel> chosen;
  std::set<std::string> seen;
  for (const Kernel& kernel : wanted_of(get_kernels(arguments))) {
    const Metadata metadata = kernel.metadata();
    const std::string design =
        fmt::format("{} {} {} {}", metadata.kernel_class, metadata.design_value("schedule"),
                    metadata.design_value("cluster"), metadata.design_value("split_k"));
    if (seen.insert(design).second) chosen.push_back(kernel);
  }
  return chosen;
}

bool is_plain(const OperandRules& rules) {
  const bool keeps_type = rules.out.dtype == rules.a.dtype || rules.out.dtype == rules.accumulator;
  return rules.a.dtype == rules.b.dtype && keeps_type;
}

// Discovery chooses one raster and number of stages for each tile; others are available by name.
Kernel with_other_picks(const Kernel& kernel, Choices& choices) {
  const Metadata metadata = kernel.metadata();
  const std::string stages(metadata.design_value("stages"));
  const std::string picked = fmt::format("_{}_s{}", metadata.design_value("raster"), stages);
  const std::size_t at = metadata.kernel_name.find(picked);
  if (at == std::string::npos || choices.percent(30)) return kernel;
  const std::string other =
      fmt::format("_{}{}_s{}", choices.one_of({'m', 'n'}), 1 << choices.between(0, 6),
                  choices.between(2, std::max(2, std::atoi(stages.c_str()))));
  std::string name = metadata.kernel_name;
  return find_kernel(name.replace(at, picked.size(), other)).value_or(kernel);
}

// Serial slices of sm90, which discovery does not offer.
Kernel with_serial_slices(const Kernel& kernel, Choices& choices) {
  constexpr std::string_view parallel = "_parallel";
  std::string name = kernel.name();
  const std::size_t at = name.find(parallel);
  if (kernel.family().name() != "sm90" || at == std::string::npos || choices.percent(60))
    return kernel;
  return find_kernel(name.replace(at, parallel.size(), "_serial")).value_or(kernel);
}

// Discovery also chooses the split of k, and never a serial one.
Kernel with_other_split(const Kernel& kernel, Choices& choices) {
  constexpr std::string_view none = "_none_";
  std::string name = kernel.name();
  const std::size_t at = name.find(none);
  if (at == std::string::npos) return with_serial_slices(kernel, choices);
  if (choices.percent(40)) return kernel;
  const std::string split =
      choices.percent(30)
          ? "stream"
          : fmt::format("{}{}", choices.percent(50) ? "serial" : "parallel", choices.between(2, 7));
  return find_kernel(name.replace(at, none.size(), "_" + split + "_")).value_or(kernel);
}

// A random sample of kernels that run on the device. In half of it A, B and out have one type, or
// out has that of the accumulators: few among all combinations, but the most used.
std::vector<Kernel> sample_kernels(Device device, std::size_t count, Choices& choices) {
  const Target target = device_info(device).target;
  std::vector<Kernel> plain;
  std::vector<Kernel> mixed;
  for_each_kernel([&](const Kernel& kernel) {
    if (!is_wanted(kernel) || !kernel.family().availability()) return;
    const auto targets = kernel.family().targets(kernel);
    const auto runs_here = [&](Target code) { return !code.is_cpu() && runs_on(code, target); };
    if (std::ranges::any_of(targets, runs_here)) {
      (is_plain(kernel.operands()) ? plain : mixed).push_back(kernel);
    }
  });
  std::vector<Kernel> chosen = choose_kernels(std::move(plain), count / 2, choices);
  for (const Kernel& kernel : choose_kernels(std::move(mixed), count - chosen.size(), choices)) {
    chosen.push_back(kernel);
  }
  for (Kernel& kernel : chosen)
    kernel = with_pointers(with_other_split(with_other_picks(kernel, choices), choices), choices);
  return chosen;
}

// Every `rounds`-th kernel, both plain and mixed ones.
std::vector<Kernel> kernels_of_round(const std::vector<Kernel>& kernels, int round, int rounds) {
  std::vector<Kernel> chosen;
  for (auto at = static_cast<std::size_t>(round); at < kernels.size();
       at += static_cast<std::size_t>(rounds))
    chosen.push_back(kernels[at]);
  return chosen;
}

// Compiles in parallel and reports all failures. For an emulated device nothing is compiled here:
// it runs PTX, which each kernel compiles at its first run.
void compile_all(const std::vector<Kernel>& kernels, Device device) {
  if (device.type == DeviceType::emulated) return;
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < platform::thread_count(); ++worker) {
    workers.emplace_back([&] {
      for (std::size_t index = next++; index < kernels.size(); index = next++) {
        try {
          const Kernel& kernel = kernels[index];
          const Artifact artifact = kernel.family().compile(
              kernel, kernel.family().target_for(kernel, device_info(device)));
          artifact.load(device);
        } catch (const std::exception& error) {
          const std::scoped_lock lock(mutex);
          ADD_FAILURE() << kernels[index].name() << ": " << error.what();
        }
      }
    });
  }
}

Buffer upload(const api::GuardedOperand& operand, Stream stream) {
  Buffer buffer(operand.bytes().size(), stream);
  copy(buffer.data(), stream.device(), operand.bytes().data(), Device::cpu(),
       operand.bytes().size(), stream);
  synchronize(stream);
  return buffer;
}

}  // namespace

std::string name_of(const testing::TestParamInfo<DeviceUnderTest>& instance) {
  const DeviceUnderTest& tested = instance.param;
  if (!tested.name.empty()) return tested.name;
  return tested.family.empty() ? "any" : tested.family;
}

void DeviceConformance::SetUp() {
  const jit::CompilerStatus compiler = jit::compiler_status();
  if (!compiler.found) GTEST_SKIP() << compiler.searched;
  if (GetParam().device != "gpu") {
    device_ = parse_device(GetParam().device).value();
    return;
  }
  const auto gpus = devices();
  if (gpus.empty()) GTEST_SKIP() << "no GPU on this machine";
  ASSERT_LT(wanted_gpu(), gpus.size()) << "GEMMERY_TEST_DEVICE";
  device_ = gpus[wanted_gpu()];
}

void DeviceConformance::shake(Choices& choices) const {
  if (device_.type == DeviceType::emulated) set_emulator_seed(choices.bits() >> 1);
}

// --- random problems ----------------------------------------------------------------------------

void DeviceConformance::try_random_problems() {
  const std::uint64_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  Choices choices(seed);
  const int rounds = scale().rounds;
  const std::vector<Kernel> sample = sample_kernels(
      device(), scale().kernels_per_round * static_cast<std::size_t>(rounds), choices);
  ASSERT_FALSE(sample.empty());
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const std::vector<Kernel> kernels = kernels_of_round(sample, round, rounds);
    compile_all(kernels, device());
    if (HasFailure()) return;
    shake(choices);
    const SuiteReport report = run_suite({.kernels = kernels,
                                          .cases = scale().cases_per_round,
                                          .seed = choices.bits(),
                                          .threads = std::min(platform::thread_count(), 16),
                                          .limits = limits()});
    std::cout << kernels.size() << " kernels on " << device_info(device()).name << "\n"
              << to_string(report) << std::flush;
    EXPECT_EQ(report.mismatches(), 0) << "seed " << seed;
  }
}

TEST_P(DeviceConformance, every_kernel_is_right_on_random_problems) { try_random_problems(); }

// Degenerate problems: rows, columns or batches are so close together that elements are less
// aligned than they seem, or an extent is 0. Each of them has been a source of wrong results.
constexpr const char* degenerate_lines[] = {
    "gemm 64x1x64 a=f32",
    "gemm 1x64x64 a=f32:c",
    "gemm 64x64x1 a=f32",
    "gemm 64x64x1 a=s8 out=s32",
    "gemm 1x1x1 a=bf16 out=f32",
    "gemm 64x1x64 a=bf16",
    "gemm 1x64x64 a=f16:c out=f32:c",
    "gemm 64x64x1x2 a=f32 math=tf32",
    "gemm 1x64x64 a=f32:c math=bf16x9",
    "gemm 64x64x1x2 a=f32 math=tf32x3",
    "gemm 65x1x2048 a=f16 acc=f16",
    "gemm 3x5x1111 a=f64:c b=f64:c",
    "gemm 64x64x64x3 a=f32 b=f32/batch=1",
    "gemm 64x64x64 a=f32 b=f32/strides=1,1",
    "gemm 64x64x64 a=bf16/strides=1,1 out=f32",
    "gemm 32x32x32x5 a=bf16/batch=1 out=f32",
    "gemm 64x64x64x2 a=f32 c=f32/batch=1 beta=1",
    "gemm 64x64x64 a=s8/strides=1,1 out=s32",
    "gemm 33x17x1x4 a=f64 b=f64/batch=0",
    "gemm 16x16x0 a=f32 c=f32[n] beta=0.5",
    "gemm 64x8x8 a=f16/strides=0,0 out=f32",
    "gemm 33x17x40x1 a=f32/pointers b=f32/pointers out=f32/pointers",
    "gemm 64x64x64x3 a=bf16/pointers b=bf16:c/pointers out=f32/pointers c=f32/pointers beta=1",
    "gemm 64x64x1x2 a=s8/pointers b=s8:c out=s32/pointers",
    "gemm 136x72x200x300 a=f16/pointers b=f16:c/pointers out=f16/pointers",
    "gemm 64x40x96x9 a=e4m3/pointers b=e4m3/pointers out=bf16/pointers",
    "gemm 48x56x64x5 a=s8:c b=s8/pointers out=s32:c/pointers",
    "gemm 65x33x129x4 a=bf16/pointers/align=2/ld=131 b=bf16/pointers/align=4/ld=34 "
    "out=bf16/pointers/align=2/ld=35",
    "gemm 96x64x64x6 a=f32/pointers b=f32/pointers out=f32/pointers math=tf32",
    "gemm 0x64x64x3 a=bf16/pointers b=bf16/pointers out=bf16/pointers",
    "gemm 16x16x0x2 a=f16/pointers b=f16 out=f32:c/pointers/align=4 c=f32[l,n]/pointers beta=0.5",
};

TEST_P(DeviceConformance, degenerate_problems_are_right_on_every_layout_that_fits) {
  const std::uint64_t seed = test_seed();
  Choices choices(seed);
  for (const char* const text : degenerate_lines) {
    const ProblemLine line = parse_problem(text);
    std::vector<Kernel> fitting = wanted_of(get_kernels(line.problem, device_info(device())));
    const bool is_narrowed = std::getenv("GEMMERY_TEST_FAMILY") != nullptr ||
                             std::getenv("GEMMERY_TEST_NAME") != nullptr ||
                             !GetParam().family.empty();
    ASSERT_TRUE(!fitting.empty() || is_narrowed) << text;
    const std::vector<Kernel> kernels =
        choose_kernels(std::move(fitting), scale().kernels_per_line, choices);
    compile_all(kernels, device());
    shake(choices);
    for (const Kernel& kernel : kernels) {
      const VerifyReport report =
          verify(line, kernel, {.seed = seed, .guard_bands = true, .device = device()});
      EXPECT_TRUE(report.passed) << text << " " << kernel.name() << ", seed " << seed << ": "
                                 << report.first_failure;
    }
  }
}

// --- one bit pattern ----------------------------------------------------------------------------

DeviceOperands DeviceOperands::make(const ProblemLine& line, std::uint64_t seed, Stream stream) {
  const GemmProblem& p = line.problem;
  api::Trial trial{.line = line,
                   .options = {.seed = seed, .guard_bands = false, .device = stream.device()}};
  OperandRules rules;
  rules.accumulator = p.accumulator;
  rules.math = p.math;
  api::TrialOperands host(trial, rules);
  Buffer a = upload(host.a, stream);
  Buffer b = upload(host.b, stream);
  Buffer out(host.out.bytes().size(), stream);
  synchronize(stream);
  GemmArguments arguments(host.a.at(a.data(), nullptr, stream.device()),
                          host.b.at(b.data(), nullptr, stream.device()),
                          host.out.at(out.data(), nullptr, stream.device()), p.accumulator,
                          {.alpha = line.alpha, .math = p.math});
  return {std::move(a), std::move(b), std::move(out), std::move(arguments)};
}

std::vector<std::byte> download(const Buffer& buffer, Stream stream) {
  std::vector<std::byte> bytes(buffer.bytes());
  copy(bytes.data(), Device::cpu(), buffer.data(), stream.device(), bytes.size(), stream);
  synchronize(stream);
  return bytes;
}

// Runs the same operands on each of eight streams.
class EightStreams {
 public:
  EightStreams(Device device, const ProblemLine& line, std::uint64_t seed) {
    for (int index = 0; index < 8; ++index) {
      streams_.emplace_back(device);
      operands_.push_back(DeviceOperands::make(line, seed, streams_.back()));
    }
  }

  const GemmArguments& arguments() const { return operands_.front().arguments; }

  void run(const Kernel& kernel) const {
    for (std::size_t index = 0; index < 8; ++index) {
      fill(operands_[index].out.data(), 0xff, operands_[index].out.bytes(), streams_[index]);
      kernel.run(operands_[index].arguments, {.stream = streams_[index]});
    }
  }

  std::vector<std::byte> result(std::size_t index) const {
    return download(operands_[index].out, streams_[index]);
  }

 private:
  std::vector<OwnedStream> streams_;
  std::vector<DeviceOperands> operands_;
};

TEST_P(DeviceConformance, repeated_runs_on_eight_streams_give_one_bit_pattern) {
  const std::uint64_t seed = test_seed();
  Choices choices(seed);
  for (const char* const text : GetParam().repeated_lines) {
    const EightStreams streams(device(), parse_problem(text), seed);
    for (const Kernel& kernel : one_of_each_design(streams.arguments())) {
      ASSERT_TRUE(kernel.metadata().deterministic);
      streams.run(kernel);
      const std::vector<std::byte> first = streams.result(0);
      int patterns = 1;
      for (int round = 0; round < scale().repetitions; ++round) {
        shake(choices);
        streams.run(kernel);
        for (std::size_t index = 0; index < 8; ++index)
          patterns += streams.result(index) == first ? 0 : 1;
      }
      EXPECT_EQ(patterns, 1) << kernel.name() << " on " << text << ", seed " << seed;
      std::cout << fmt::format("{} runs of {}: {}\n", 8 * scale().repetitions, kernel.name(),
                               patterns == 1 ? "one bit pattern" : "several bit patterns");
    }
  }
}

}  // namespace gemmery::conformance
