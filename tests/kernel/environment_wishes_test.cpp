// SPDX-License-Identifier: Apache-2.0
// The effects of GEMMERY_DETERMINISTIC and GEMMERY_TARGET_SM on discovery, and of
// GEMMERY_WARN_CLIFFS on its warnings. They are read once per process, so each case is a child
// process.
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/log.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "tests/kernel/toy_family.hpp"
#include "tests/support/child_process.hpp"

namespace gemmery {
namespace {

// A family whose kernel 2 is not deterministic.
class Varying final : public tests::ToyFamily {
 public:
  Varying() : ToyFamily("varying") {}
  bool is_deterministic(const Kernel& kernel) const override {
    return kernel.design().as<tests::ToyDesign>().number != 2;
  }
  // Like a family that ignores the variable.
  void match(const Query&, std::vector<RankedKernel>& kernels) const override {
    enumerate([&](const Kernel& one) { kernels.emplace_back(one, 1.0); });
  }
};

bool holds_with(const char* variable, const char* value, const std::function<bool()>& claim) {
  return tests::holds_in_child([&] {
    value != nullptr ? setenv(variable, value, 1) : unsetenv(variable);
    return claim();
  });
}

// The count in a child process without these variables.
std::size_t count_without_wishes(const std::function<std::size_t()>& count) {
  int channel[2];
  if (pipe(channel) != 0) return 0;
  const bool is_told = holds_with("GEMMERY_TARGET_SM", nullptr, [&] {
    const std::size_t number = count();
    return write(channel[1], &number, sizeof number) == sizeof number;
  });
  std::size_t number = 0;
  const bool is_read = is_told && read(channel[0], &number, sizeof number) == sizeof number;
  close(channel[0]);
  close(channel[1]);
  return is_read ? number : 0;
}

const GemmProblem& problem() {
  static const GemmProblem made = parse_problem("gemm 8x8x8 a=f32").problem;
  return made;
}
const DeviceInfo& h200() {
  static const DeviceInfo info = *find_device_info("h200");
  return info;
}

bool lists(const std::vector<Kernel>& kernels, std::string_view name) {
  return std::ranges::any_of(kernels, [&](const Kernel& one) { return one.name() == name; });
}
bool finds(std::string_view name) {
  const auto kernels = get_kernels(problem(), h200());
  return std::ranges::any_of(kernels, [&](const Kernel& one) { return one.name() == name; });
}
bool tells_reason(std::string_view words) {
  const std::string text = to_string(explain(problem(), h200()));
  return text.find(words) != std::string::npos;
}

TEST(Deterministic, silent_and_off_kernels_whose_bits_vary_are_found_and_marked) {
  for (const char* const value : {static_cast<const char*>(nullptr), "0", "off"}) {
    EXPECT_TRUE(holds_with("GEMMERY_DETERMINISTIC", value, [] {
      register_family(std::make_unique<Varying>());
      const auto varying = find_kernel("varying_2");
      return varying && !varying->metadata().deterministic && finds("varying_2") &&
             lists(get_kernels(), "varying_2") && !tells_reason("determinism") &&
             varying->supports(problem(), h200());
    }));
  }
}

TEST(Deterministic, on_they_are_left_out_and_refused_by_name) {
  EXPECT_TRUE(holds_with("GEMMERY_DETERMINISTIC", "1", [] {
    register_family(std::make_unique<Varying>());
    const auto varying = find_kernel("varying_2");
    return varying && !finds("varying_2") && finds("varying_1") &&
           !lists(get_kernels(), "varying_2") && lists(get_kernels(), "varying_3") &&
           tells_reason("GEMMERY_DETERMINISTIC") &&
           varying->supports(problem(), h200()).error().starts_with("determinism: expected");
  }));
  EXPECT_TRUE(holds_with("GEMMERY_DETERMINISTIC", "on", [] {
    register_family(std::make_unique<Varying>());
    try {
      find_kernel("varying_2")->compile(h200().target);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::unsupported &&
             error.got().find("GEMMERY_DETERMINISTIC") != std::string::npos;
    }
    return false;
  }));
}

TEST(Deterministic, on_every_kernel_of_our_own_stays) {
  const std::size_t all = count_without_wishes([] { return get_kernels().size(); });
  EXPECT_GT(all, 1000U);
  EXPECT_TRUE(
      holds_with("GEMMERY_DETERMINISTIC", "true", [&] { return get_kernels().size() == all; }));
}

// --- cliffs --------------------------------------------------------------------------------------

bool warns_with(const char* setting, int expected) {
  return holds_with("GEMMERY_WARN_CLIFFS", setting, [&] {
    int warnings = 0;
    set_log_sink([&](LogLevel, std::string_view) { ++warnings; }, LogLevel::warning);
    for (int round = 0; round < 3; ++round) {
      for (const auto* const line : {"gemm 256x4096x4096 a=bf16 b=bf16:c/ld=4097",
                                     "gemm 128x4096x4096 a=bf16 b=bf16:c/ld=4097"})
        (void)get_kernels(parse_problem(line).problem, h200());
    }
    set_log_sink({});
    return warnings == expected;
  });
}

TEST(Cliff, is_one_warning_a_problem_unless_the_setting_is_off) {
  EXPECT_TRUE(warns_with(nullptr, 2));
  EXPECT_TRUE(warns_with("on", 2));
  EXPECT_TRUE(warns_with("off", 0));
}

// --- the target ---------------------------------------------------------------------------------

bool all_have_code_for(std::string_view target, const std::vector<RankedKernel>& kernels) {
  return !kernels.empty() && std::ranges::all_of(kernels, [&](const Kernel& one) {
    const std::vector<Target> targets = one.family().targets(one);
    return std::ranges::any_of(targets, [&](Target own) { return own == parse_target(target); });
  });
}

// A problem for which there are kernels for sm_90a and portable ones.
GemmProblem large() { return parse_problem("gemm 512x512x512 a=bf16 b=bf16:c out=bf16").problem; }

TEST(TargetVariable, is_the_target_of_filters_that_name_none) {
  EXPECT_TRUE(holds_with("GEMMERY_TARGET_SM", "", [] {
    return !environment_target() && !all_have_code_for("sm_80", get_kernels(large(), h200()));
  }));
  EXPECT_TRUE(holds_with("GEMMERY_TARGET_SM", "sm_80", [] {
    const auto narrowed = get_kernels(large(), h200());
    Filter silent;
    Filter named;
    named.target = parse_target("sm_90");
    return environment_target() == parse_target("sm_80") && all_have_code_for("sm_80", narrowed) &&
           get_kernels(large(), h200(), named).size() > narrowed.size() &&
           get_kernels(named).size() > get_kernels(silent).size();
  }));
}

TEST(TargetVariable, leaves_the_kernels_of_the_cpu_alone) {
  const auto count = [] { return get_kernels(problem(), device_info(Device::cpu())).size(); };
  const std::size_t on_cpu = count_without_wishes(count);
  EXPECT_GT(on_cpu, 0U);
  EXPECT_TRUE(holds_with("GEMMERY_TARGET_SM", "90a", [&] { return count() == on_cpu; }));
}

TEST(EnvironmentWishes, that_cannot_be_read_are_an_error_of_each_call_by_name) {
  struct Row {
    const char* variable;
    const char* value;
  };
  for (const Row& row : {Row{"GEMMERY_TARGET_SM", "hopper"}, Row{"GEMMERY_TARGET_SM", "cpu"},
                         Row{"GEMMERY_TARGET_SM", "sm_80a"}, Row{"GEMMERY_TARGET_SM", "sm_90b"},
                         Row{"GEMMERY_DETERMINISTIC", "maybe"}, Row{"GEMMERY_LOG_LEVEL", "all"},
                         Row{"GEMMERY_LOG_FILE", "here.log"}}) {
    EXPECT_TRUE(holds_with(
        row.variable, row.value,
        [&] {
          int errors = 0;
          for (const std::function<void()>& call :
               {std::function<void()>([] { get_kernels(); }),
                std::function<void()>([] { finds("x"); }),
                std::function<void()>([] { tells_reason("x"); }),
                std::function<void()>([] { find_kernel("x"); })}) {
            try {
              call();
            } catch (const Error& error) {
              errors += error.operand() == row.variable && !error.expected().empty() ? 1 : 0;
            }
          }
          return errors == 4;
        }))
        << row.variable << "=" << row.value;
  }
}

}  // namespace
}  // namespace gemmery
