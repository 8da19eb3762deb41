// SPDX-License-Identifier: Apache-2.0
// Runs convolutions with the kernels of one family on one emulated device, and checks their bounds.
#pragma once

#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/convolution_cases.hpp"
#include "tests/support/naive_convolution.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {

// The types of a product, and its math mode.
struct Products {
  DType operands, out;
  Math math = Math::native;
};

// A family, and a device on which its kernels run.
struct Served {
  const char* family;
  const char* device;
};
inline void PrintTo(const Served& served, std::ostream* stream) {
  *stream << served.family << " on " << served.device;
}

// Each kernel takes a third of a second to compile, so only a soak runs all problems.
inline bool is_soak() { return std::getenv("GEMMERY_SOAK") != nullptr; }

inline std::vector<Kernel> kernels_of(const GemmProblem& problem, const Served& served) {
  std::vector<Kernel> kernels;
  for (const RankedKernel& kernel : get_kernels(problem, device_info(*parse_device(served.device)),
                                                {.providers = {"templates"}}))
    if (kernel.family().name() == served.family) kernels.push_back(kernel);
  return kernels;
}

// The reason why the family has no kernel for a problem; empty if it has one.
inline std::string reason_of(const GemmProblem& problem, const Served& served) {
  for (const Reason& reason : explain(problem, device_info(*parse_device(served.device))).reasons)
    if (reason.family == served.family) return reason.failed;
  return "no reason";
}

inline void expect_right(const ProblemLine& line, const Kernel& kernel, const Served& served) {
  const VerifyReport report =
      verify(line, kernel, {.seed = random_seed(), .device = *parse_device(served.device)});
  ASSERT_TRUE(report.passed) << to_string(line) << " by " << kernel.name() << ", seed "
                             << report.seed << ": " << report.first_failure;
}

// Runs the problem with a random kernel of the family.
inline void expect_right_by_any(const ProblemLine& line, const Served& served, Draw& draw) {
  const auto kernels = kernels_of(line.problem, served);
  ASSERT_FALSE(kernels.empty()) << to_string(line) << ": " << reason_of(line.problem, served);
  expect_right(line, kernels[static_cast<std::size_t>(draw.below(std::ssize(kernels)))], served);
}

// The gap in elements after each pixel (or tap) of A, B and out.
struct Gaps {
  std::int64_t a = 0, b = 0, out = 0;
};
inline GemmProblem problem_of(const ConvCase& conv, ConvKind kind, const Products& products,
                              const Gaps& gaps) {
  const auto [a, b, out] = shapes_of(conv, kind);
  const HeldTensor of_a(products.operands, a, gaps.a);
  const HeldTensor of_b(products.operands, b, gaps.b);
  const HeldTensor of_out(products.out, out, gaps.out);
  return ConvArguments(kind, of_a.view(), of_b.view(), of_out.view(), conv.settings(),
                       {.math = products.math})
      .problem();
}

}  // namespace gemmery::tests
