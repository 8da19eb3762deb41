// SPDX-License-Identifier: Apache-2.0
// Runs convolutions with the kernels of one family on one emulated device, and checks their bounds.
#pragma once

#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <span>
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

// True if families are asked about a plain GEMM instead, whose layout they may refuse.
inline bool is_plain_gemm(const GemmProblem& problem, const Served& served) {
  return !explain(problem, device_info(*parse_device(served.device))).runs_as.empty();
}

inline void expect_right(const ProblemLine& line, const Kernel& kernel, const Served& served) {
  const VerifyReport report =
      verify(line, kernel, {.seed = random_seed(), .device = *parse_device(served.device)});
  ASSERT_TRUE(report.passed) << to_string(line) << " by " << kernel.name() << ", seed "
                             << report.seed << ": " << report.first_failure;
}

// Runs the problem with a random kernel of the family. A problem of many operations is run by one
// of the first: others multiply up to forty times as many zeros, or have too few blocks.
inline void expect_right_by_any(const ProblemLine& line, const Served& served, Draw& draw) {
  auto kernels = kernels_of(line.problem, served);
  ASSERT_FALSE(kernels.empty()) << to_string(line) << ": " << reason_of(line.problem, served);
  if (line.problem.flops() > 1e8 && kernels.size() > 4) kernels.resize(4, kernels.front());
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

// Tensors without memory, far apart.
inline GemmProblem imaginary_problem(const ConvCase& conv, ConvKind kind,
                                     const Products& products) {
  const auto shapes = shapes_of(conv, kind);
  std::uintptr_t begin = 0;
  const auto view = [&](const Extents& shape, DType dtype) {
    begin += std::uintptr_t{1} << 44;
    return Tensor(reinterpret_cast<const void*>(begin), dtype,  // NOLINT: never read
                  std::span<const std::int64_t>(shape));
  };
  const Tensor a = view(shapes[0], products.operands);
  const Tensor b = view(shapes[1], products.operands);
  return ConvArguments(kind, a, b, view(shapes[2], products.out), conv.settings(),
                       {.math = products.math})
      .problem();
}

// True if a case is small enough to be run on the emulator, and drawn: all of them in a soak, else
// one in so many.
inline bool is_run(const GemmProblem& problem, const NastyConvolution& nasty, Draw& draw,
                   int one_in) {
  // Little work for each of many pixels.
  const double most_flops = (is_soak() ? 1e8 : 4e6) * (nasty.elements() > 5e5 ? 5 : 1);
  return (is_soak() || draw.below(one_in) == 0) && problem.flops() <= most_flops;
}

}  // namespace gemmery::tests
