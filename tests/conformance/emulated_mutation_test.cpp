// SPDX-License-Identifier: Apache-2.0
// Conformance on an emulated device passes the correct kernels and catches every planted fault of
// device code.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "emulator/device.hpp"
#include "jit/nvrtc.hpp"
#include "runtime/device_family.hpp"
#include "tests/conformance/device_mutants.hpp"
#include "tests/conformance/fault_hunt.hpp"
#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {
namespace {

// A short run looks at one kernel in so many, at others each time; GEMMERY_SOAK=1 looks at all.
constexpr std::int64_t kernels_for_each_hunted = 5;

bool is_drawn(Choices& choices) {
  const bool is_chosen_by_name = std::getenv("GEMMERY_TEST_FAULTS") != nullptr;
  return is_chosen_by_name || is_soak() || choices.between(1, kernels_for_each_hunted) == 1;
}

// The number of cases within which a fault must be found; most are found by the first.
constexpr std::int64_t first_rounds = 32;
constexpr std::int64_t patience = 1024;

std::int64_t most_cases(const DeviceFault& fault) {
  if (fault.on_emulator == Shows::seldom) return 16;
  if (!fault.is_none()) return first_rounds;
  if (!program_of(fault.kernel).text.empty()) return 8;
  return is_simt(fault.kernel) ? 64 : 16;
}

// Whether the emulator is not expected to find the fault.
bool is_silent(const DeviceFault& fault) {
  return fault.is_none() || fault.on_emulator == Shows::seldom;
}

// Searches for faults that few random problems reveal, such as many groups in few blocks.
std::string hunt_at_edges_of_seeds(const Kernel& kernel, Device device, std::uint64_t seed) try {
  constexpr std::uint64_t seeds = 8;  // which draw sizes of groups
  std::string found;
  for (std::uint64_t next = 0; next < seeds && found.empty(); ++next)
    found = hunt_at_edges(kernel, device, seed + next);
  return found;
} catch (const Error& error) {
  return error.what();
}

std::string hunt(const Kernel& kernel, Device device, std::uint64_t seed) {
  const DeviceFault& fault = fault_of(kernel);
  std::string found =
      hunt_at_random(kernel, {.device = device, .most_cases = most_cases(fault), .seed = seed});
  if (!found.empty() || is_silent(fault)) return found;
  found = hunt_at_edges_of_seeds(kernel, device, seed);
  if (!found.empty()) return found;
  return hunt_at_random(
      kernel,
      {.device = device, .most_cases = patience, .seed = seed, .first_cases = 2 * first_rounds});
}

TEST(DeviceMutation, problems_at_edges_suit_their_kernels) {
  const std::unique_ptr<Family> mutants = make_device_mutants();
  const DeviceInfo device = device_info(parse_device("emulated:h200").value());
  mutants->enumerate([&](const Kernel& kernel) {
    const DeviceFault& fault = fault_of(kernel);
    if (!fault.is_none()) return;
    for (const std::string& text : edge_lines(fault.kernel)) {
      const Status status = kernel.supports(parse_problem(text).problem, device);
      EXPECT_TRUE(status) << name(fault.kernel) << ": " << text << ": " << status.error();
    }
  });
}

// Emits the source of each correct kernel once, with all headers in it.
TEST(DeviceMutation, every_fault_has_its_place_in_the_source) {
  const std::unique_ptr<Family> mutants = make_device_mutants();
  const auto& family = dynamic_cast<const runtime::DeviceFamily&>(*mutants);
  std::map<SoundKernel, std::string> sources;
  family.enumerate([&](const Kernel& kernel) {
    const DeviceFault& fault = fault_of(kernel);
    if (fault.is_none()) sources.emplace(fault.kernel, family.emit(kernel, Target{90, 'a'}).text);
  });
  for (const DeviceFault& fault : device_faults()) {
    ASSERT_TRUE(sources.contains(fault.kernel)) << name(fault.kernel);
    EXPECT_EQ(find_misfit(sources.at(fault.kernel), fault), "") << fault.name;
  }
}

TEST(DeviceMutation, only_the_sound_kernels_pass) {
  const jit::CompilerStatus compiler = jit::compiler_status();
  if (!compiler.found) GTEST_SKIP() << compiler.searched;
  const std::uint64_t seed = test_seed();
  set_emulator_seed(seed >> 1);
  emulator::set_step_limit(std::uint64_t{1} << 24);  // sound kernels are far from it
  std::cout << "GEMMERY_TEST_SEED=" << seed << "\n";
  std::unique_ptr<Family> mutants = make_device_mutants();
  const Family& family = *mutants;
  register_family(std::move(mutants));
  int hunted = 0;
  Choices choices(seed);
  family.enumerate([&](const Kernel& kernel) {
    const DeviceFault& fault = fault_of(kernel);
    if (!is_wanted(fault) || !is_drawn(choices)) return;
    ++hunted;
    const Device device = *parse_device("emulated:h200");
    const std::string found = hunt(kernel, device, seed);
    EXPECT_EQ(found.empty(), is_silent(fault))
        << fault.name << ", seed " << seed << ": "
        << (is_silent(fault) ? found : fmt::format("passed {} cases", patience));
    EXPECT_EQ(found.find("compile error"), std::string::npos) << found;
    std::cout << fmt::format("{:42} {}\n", fault.name,
                             found.empty() ? "not seen" : found.substr(0, found.find('\n')))
              << std::flush;
  });
  EXPECT_GT(hunted, 0) << "no fault is called so";
}

// A line that is refused would pass for a fault that was found.
}  // namespace
}  // namespace gemmery::conformance
