// SPDX-License-Identifier: Apache-2.0
// Problems with few elements that are more than 2^32 elements apart, to find 32-bit products in
// address arithmetic. Emulated devices allocate only memory that is accessed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {

enum class FarOperand : std::uint8_t { a, b, c, out, input, output, vector };
enum class FarAlong : std::uint8_t { rows, columns, batches };

// The operand whose elements are far apart, and the extent along which they are. Others are packed.
// `is_strided`: elements are contiguous along no extent.
struct FarCase {
  const char* name;
  FarOperand operand;
  FarAlong along;
  bool is_strided = false;
};
std::span<const FarCase> far_cases() noexcept;

struct FarExtents {
  std::int64_t m, n, k, l;
};

// One of these problems on an emulated device: out = A B + C, or with a program
// D = accum + x * w, y = accum - x.
class FarTrial {
 public:
  FarTrial(const FarCase& far, const FarExtents& extents, DType dtype, Device device,
           Choices& choices);

  const GemmArguments& arguments() const { return *arguments_; }
  // Runs the kernel. Returns a description of wrong results, or "".
  std::string run(const Kernel& kernel) const;

 private:
  // A matrix of a batch and its expected contents.
  struct Matrix {
    Buffer memory;
    Tensor view;
    std::vector<float> values;
    float& at(std::int64_t l, std::int64_t row, std::int64_t column) {
      return values[static_cast<std::size_t>((l * view.extent(1) + row) * view.extent(2) + column)];
    }
  };

  Matrix make(FarOperand operand, std::int64_t rows, std::int64_t columns, DType dtype) const;
  void draw(Matrix& matrix, Choices& choices) const;
  void multiply();
  void bind(Math math);
  std::string compare(const Matrix& matrix, const char* name) const;

  FarCase far_;
  FarExtents extents_;
  OwnedStream stream_;
  Matrix a_, b_, c_, out_, x_, y_, w_;
  std::optional<GemmArguments> arguments_;
};

}  // namespace gemmery::conformance
