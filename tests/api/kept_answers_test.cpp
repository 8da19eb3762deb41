// SPDX-License-Identifier: Apache-2.0
// A cached answer of discovery equals the answer that a new search would give.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include <gemmery/discovery.hpp>

#include "tests/kernel/toy_family.hpp"

namespace gemmery {
namespace {

GemmProblem problem_of(std::string_view line) { return parse_problem(line).problem; }
const DeviceInfo& h200() {
  static const DeviceInfo info = *find_device_info("h200");
  return info;
}
KernelList ask(std::string_view line, const DeviceInfo& device = h200(),
               const Filter& filter = {}) {
  return get_shared_kernels(problem_of(line), device, filter);
}

// A history with one kernel's time.
class OneTime : public History {
 public:
  explicit OneTime(const Kernel& kernel) : kernel_(kernel) {}
  std::optional<double> measured_us(const Query&, const Kernel& asked) const override {
    return asked == kernel_ ? std::optional(1e-6) : std::nullopt;
  }

 private:
  Kernel kernel_;
};

TEST(KeptAnswers, an_equal_query_gets_the_same_answer) {
  const KernelList first = ask("gemm 512x512x512 a=bf16");
  EXPECT_EQ(ask("gemm 512x512x512 a=bf16"), first);
  EXPECT_FALSE(first->empty());
}

TEST(KeptAnswers, another_problem_device_or_target_gets_its_own) {
  const KernelList first = ask("gemm 512x512x512 a=bf16");
  EXPECT_NE(ask("gemm 512x512x513 a=bf16"), first);
  DeviceInfo slower = h200();
  slower.bandwidth_bytes_per_second /= 2;
  EXPECT_NE(ask("gemm 512x512x512 a=bf16", slower), first);
  const KernelList portable =
      ask("gemm 512x512x512 a=bf16", h200(), {.target = parse_target("sm_80")});
  EXPECT_LT(portable->size(), first->size());
  const Filter named{.providers = {"templates"}};
  EXPECT_EQ(ask("gemm 512x512x512 a=bf16", h200(), named)->size(), first->size());
  const Filter none{.metadata = [](const Metadata&) { return false; }};
  EXPECT_TRUE(ask("gemm 512x512x512 a=bf16", h200(), none)->empty());
}

TEST(KeptAnswers, a_history_outranks_them_and_its_end_brings_them_back) {
  const auto problem = problem_of("gemm 640x512x512 a=bf16");
  const KernelList first = get_shared_kernels(problem, h200(), {});
  const Kernel last = first->back();
  set_history(std::make_shared<OneTime>(last));
  EXPECT_EQ(get_kernels(problem, h200()).front(), last);
  set_history(nullptr);
  EXPECT_EQ(get_shared_kernels(problem, h200(), {}), first);
}

TEST(KeptAnswers, are_the_same_from_many_threads) {
  std::vector<std::jthread> threads;
  const std::size_t count = get_kernels(problem_of("gemm 256x768x512 a=bf16"), h200()).size();
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 300; ++k) {
        EXPECT_EQ(get_kernels(problem_of("gemm 256x768x512 a=bf16"), h200()).size(), count);
        (void)ask("gemm " + std::to_string(64 + (i * 300 + k) % 200) + "x64x64 a=f32");
      }
    });
}

// Must be the last test, since a registered family remains.
TEST(KeptAnswers, a_family_that_comes_is_seen) {
  const KernelList before = ask("gemm 8x8x8 a=f32");
  register_family(std::make_unique<tests::ToyFamily>("toy"));
  EXPECT_NE(ask("gemm 8x8x8 a=f32"), before);
  EXPECT_GT(ask("gemm 8x8x8 a=f32")->size(), before->size());
}

}  // namespace
}  // namespace gemmery
