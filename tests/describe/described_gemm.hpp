// SPDX-License-Identifier: Apache-2.0
// A described GEMM on an emulated device or a GPU: random integers, poison in D, and a reference
// with float64 sums.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "describe/combinations.hpp"

namespace gemmery::describe::tests {

// The elements of one operand on the host, in memory order.
class Operand {
 public:
  Operand() = default;
  Operand(const TensorDescription& tensor, std::int64_t rows, std::int64_t columns,
          std::int64_t batch);

  std::int64_t offset(std::int64_t product, std::int64_t row, std::int64_t column) const;
  double at(std::int64_t product, std::int64_t row, std::int64_t column) const;
  void set(std::int64_t product, std::int64_t row, std::int64_t column, double value);
  void fill_random(std::mt19937& random, int low, int high);
  void fill_byte(unsigned char value);
  std::size_t bytes() const { return memory_.size(); }
  std::byte* data() { return memory_.data(); }
  const std::vector<std::byte>& memory() const { return memory_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  DType dtype() const { return dtype_; }

 private:
  DType dtype_ = DType::float32;
  Layout layout_ = Layout::RowMajor;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t batch_ = 1;
  std::vector<std::byte> memory_;
};

// GEMMERY_TEST_DEVICE; default: an emulated A100.
Device test_device();

// Computes the expected D from an accumulator and C.
using Finish = std::function<double(double accumulated, double c)>;

class DescribedGemm {
 public:
  DescribedGemm(const GemmOperationUniversal& operation, const GemmCoord& size,
                GemmOptions options = {}, Device device = test_device());

  // Integers in the ranges of PyCUTLASS's tests.
  void fill(std::uint32_t seed = 1);
  void fill(std::uint32_t seed, int low, int high);

  // Copies the operands to the device, runs, copies D back. D is poisoned before.
  void run();
  GemmArguments arguments();
  GemmPointers pointers();
  void upload();
  void download();
  void launch(const GemmArguments& arguments) const;

  // Compares D with alpha * accumulated + beta * c, or the result of `finish`, rounded to D's type
  // once. Returns the first element that differs, or "".
  std::string first_difference(const Finish& finish = {}) const;
  double accumulated(std::int64_t product, std::int64_t row, std::int64_t column) const;

  Operand a, b, c, d;
  bool without_c = false;
  Stream stream() const;
  void* d_on_device() const { return memory_[3].data(); }
  const void* c_on_device() const { return memory_[2].data(); }
  std::vector<std::byte> b_after() const;  // B on the device after the run

 private:
  std::size_t parts() const;
  std::size_t part_bytes(const Operand& operand) const;
  std::size_t part_step(const Operand& operand) const;
  std::byte* part_of(const Buffer& memory, const Operand& operand, std::size_t part) const;

  GemmOperationUniversal operation_;
  GemmCoord size_;
  GemmOptions options_;
  Device device_;
  std::vector<Buffer> memory_;
};

// --- descriptions that tests share --------------------------------------------------------------

struct Sketch {
  int compute_capability = 80;
  std::array<int, 3> tile{64, 64, 32};
  int stages = 3;
  std::array<int, 3> warps{2, 2, 1};
  std::array<int, 3> instruction{16, 8, 16};
  Element ab = Element::float16;        // the instruction's type
  std::optional<Element> tensors = {};  // the type of A and B if it differs
  Element accumulator = Element::float32;
  Element cd = Element::float32;
  OpcodeClass opcode_class = OpcodeClass::TensorOp;
  MathOperation operation = MathOperation::multiply_add;
  std::array<Layout, 3> layouts{Layout::RowMajor, Layout::ColumnMajor, Layout::RowMajor};
  std::optional<std::array<int, 3>> alignments = {};  // default: the widest
  SwizzlingFunctor swizzle = SwizzlingFunctor::IdentitySwizzle1;
  std::optional<EpilogueFunctor> functor = {};  // default: LinearCombination
};
GemmDescription description_of(const Sketch& sketch);
GemmOperationUniversal operation_of(const Sketch& sketch);

// A description with the smallest tile that supports a row of the table of combinations.
GemmDescription description_of_row(const Combination& row);

// Runs small sizes of an operation, with partial tiles, and compares every element of D exactly.
void expect_exact(const Sketch& sketch, const std::vector<GemmCoord>& sizes,
                  const GemmOptions& options = {.output_op = {.alpha = 1, .beta = 2}},
                  Device device = test_device());

// Sizes similar to PyCUTLASS's universal sweep, reduced to those that an emulator runs quickly: one
// access and partial tiles in M and N; K near and above that of all stages.
std::vector<GemmCoord> swept_sizes(const Sketch& sketch);

}  // namespace gemmery::describe::tests
