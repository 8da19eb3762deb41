// SPDX-License-Identifier: Apache-2.0
// A described convolution on an emulated device or a GPU: random integers, poison in D, and the
// definition as the reference.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe_conv.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/describe/described_gemm.hpp"
#include "tests/support/convolution_cases.hpp"
#include "tests/support/naive_convolution.hpp"

namespace gemmery::describe::tests {

using gemmery::tests::ConvCase;
using gemmery::tests::Extents;
using gemmery::tests::HeldTensor;

// Parses a problem in the form of the lists in tests/support/convolution_cases.hpp.
ConvCase read_case(std::string_view text);
Conv2dProblemSize size_of(const ConvCase& conv);

// The fields of a description that tests vary; alignments are the widest by default.
struct ConvSketch {
  ConvKind kind = ConvKind::fprop;
  IteratorAlgorithm algorithm = IteratorAlgorithm::optimized;
  std::array<int, 3> tile{64, 64, 32};
  int stages = 3;
  std::array<int, 3> warps{2, 2, 1};
  std::array<int, 3> instruction{16, 8, 16};
  Element ab = Element::float16;  // the instruction's type
  Element accumulator = Element::float32;
  Element cd = Element::float32;
  OpcodeClass opcode_class = OpcodeClass::TensorOp;
  std::optional<std::array<int, 3>> alignments = {};
  StrideSupport support = StrideSupport::Strided;
  SwizzlingFunctor swizzle = SwizzlingFunctor::IdentitySwizzle1;
  std::optional<EpilogueFunctor> functor = {};
  bool is_interleaved = false;
};
Conv2dDescription description_of(const ConvSketch& sketch);
ConvSketch simt_sketch(ConvKind kind);

class DescribedConv {
 public:
  DescribedConv(const ConvSketch& sketch, const ConvCase& conv, Conv2dOptions options = {},
                std::optional<std::array<std::int64_t, 2>> output = {});

  Conv2dArguments arguments();
  void run();
  void download();
  // Compares D with alpha * sum + beta * c, or the result of `finish`, rounded to D's type once.
  // Returns the first element that differs, or "".
  std::string first_difference(const Finish& finish = {}) const;

  const std::vector<std::uint8_t>& result() const { return d_.bytes(); }
  const Conv2dOperation& operation() const { return operation_; }
  Stream stream() const { return Stream::of(nullptr, device_); }
  Buffer& memory(std::size_t operand) { return memory_[operand]; }
  // True if the run did not change A and B.
  bool kept_inputs() const;

 private:
  void upload(std::size_t operand, const HeldTensor& tensor, Layout layout);

  Conv2dOperation operation_;
  ConvCase conv_;
  Conv2dProblemSize size_;
  Conv2dOptions options_;
  Device device_;
  HeldTensor a_, b_, c_, d_;
  std::vector<Buffer> memory_;
  std::vector<std::vector<std::uint8_t>> sent_;
};

// Runs sizes and compares every element exactly.
void expect_exact(const ConvSketch& sketch, const std::vector<std::string_view>& cases,
                  const Conv2dOptions& options = {.output_op = {.alpha = 1, .beta = 2}});

}  // namespace gemmery::describe::tests
