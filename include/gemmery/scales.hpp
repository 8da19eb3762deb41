// SPDX-License-Identifier: Apache-2.0
// Scales, zero points and code tables of an operand. They belong to it: its elements are
//
//   A'[m, k] = (A[m, k] - zero[m / rows, k / block_k]) * scale[m / rows, k / block_k] * ...
//
// with exact values of all factors; with a table, table[A[m, k]] takes the place of A[m, k]. For B,
// whose shape is (K, N), n takes the place of m. A program (operand_program.hpp) is applied to the
// result.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gemmery/dtype.hpp>
#include <gemmery/export.hpp>
#include <gemmery/operand_program.hpp>
#include <gemmery/scale_layout.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// The elements of an operand that share one scale: so many rows of A (columns of B), so many
// elements along k. 0 means all of them. Blocks at the end may be shorter.
struct ScaleBlock {
  std::int32_t rows = 0;
  std::int32_t k = 0;

  friend bool operator==(const ScaleBlock&, const ScaleBlock&) = default;
};
// "tensor", "row", "1x128", "128xall"
GEMMERY_API std::string to_string(ScaleBlock block);
// Reads the above, and the names of other libraries: torch's "RowWise", "BlockWise1x128", …,
// CUTLASS's "Blockwise1x32". nullopt for other words.
GEMMERY_API std::optional<ScaleBlock> parse_scale_block(std::string_view word) noexcept;

// The blocks by their usual names.
namespace scale_block {
inline constexpr ScaleBlock tensor{0, 0};
inline constexpr ScaleBlock row{1, 0};                // a row of A, a column of B
inline constexpr ScaleBlock block_1x128{1, 128};      // DeepSeek's activations
inline constexpr ScaleBlock block_128x128{128, 128};  // DeepSeek's weights
inline constexpr ScaleBlock block_128x1{128, 1};
inline constexpr ScaleBlock mx{1, 32};     // MXFP8, MXFP6, MXFP4
inline constexpr ScaleBlock nvfp4{1, 16};  // beside a scale of the whole tensor
constexpr ScaleBlock groups_of(std::int32_t k) noexcept { return {1, k}; }
}  // namespace scale_block

// A tensor with one value for each block of an operand.
//
// A strided one has the operand's shape with every extent divided by the block's, rounded up: for A
// (M, K) and blocks of 1x128 it is (M, ceil(K / 128)), for B (K, N) it is (ceil(K / 128), N). A
// leading batch extent may be absent or 1 if all matrices of a batch share it. If there is one
// block in all, or if there are several along one extent only, it may have rank 1.
//
// A swizzled one is packed and has `swizzled_scale_count` values for each matrix, in any shape. The
// value of row r and block c lies at ((r / 128) * ceil(C / 4) + c / 4) * 512 + (r % 32) * 16 +
// (r % 128) / 32 * 4 + c % 4. Values of padding are not read, and it is never transposed.
struct Companion {
  Tensor values;
  ScaleBlock block;
  ScaleLayout layout;

  Companion(const Tensor& tensor, ScaleBlock of, ScaleLayout where)
      : values(tensor), block(of), layout(where) {}
};

// The numbers that the sixteen codes of 4 bits stand for, in the order of the codes. They are a
// part of the problem, not memory: arguments keep a copy. All are finite.
struct CodeTable {
  std::array<float, 16> values{};

  friend bool operator==(const CodeTable&, const CodeTable&) = default;
};
// "nf4", "nf4.bf16", "nf4.f16", or the sixteen numbers, joined by commas.
GEMMERY_API std::string to_string(const CodeTable& table);
// Reads the above; nullopt for other words.
GEMMERY_API std::optional<CodeTable> parse_code_table(std::string_view word);
// The same table with every value rounded to nearest even: kernels of tensor cores multiply 16-bit
// floats, and serve tables that are exact in the other operand's type.
GEMMERY_API CodeTable rounded(const CodeTable& table, DType dtype);

namespace code_table {
// NormalFloat of 4 bits: quantiles of the normal distribution, scaled to [-1, 1] (QLoRA,
// arXiv 2305.14314, appendix E).
inline constexpr CodeTable nf4{
    {-1.0F, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F,
     -0.28444138169288635F, -0.18477343022823334F, -0.09105003625154495F, 0.0F,
     0.07958029955625534F, 0.16093020141124725F, 0.24611230194568634F, 0.33791524171829224F,
     0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1.0F}};
}  // namespace code_table

// The order of an operand's elements in memory: by its strides, or in that of the fragments that
// tensor cores take, into which prepare_operand (prepare.hpp) brings codes of 4 and 8 bits. Kernels
// take one of them.
enum class ElementOrder : std::uint8_t { strided, fragments };
GEMMERY_API std::string_view name(ElementOrder order) noexcept;

// An operand of a GEMM with its scales, which multiply, its zero point or its code table, and its
// program, which is applied to the scaled elements.
// Scales are float32, float16, bfloat16, e8m0 or e4m3; a zero point is int4, uint4, int8, uint8,
// int32, float32, float16 or bfloat16 and strided. A table belongs to an operand of uint4 without a
// zero point. The caller owns all memory. Scales are read when the work runs, on the device of the
// operand.
struct ScaledOperand {
  Tensor quantized;
  std::vector<Companion> scales = {};  // at most two
  std::optional<Companion> zero_point = std::nullopt;
  std::optional<CodeTable> table = std::nullopt;
  ElementOrder order = ElementOrder::strided;
  std::optional<OperandProgram> program = std::nullopt;

  ScaledOperand(const Tensor& tensor) : quantized(tensor) {}  // NOLINT: without scales
  ScaledOperand(const Tensor& tensor, std::vector<Companion> factors,
                std::optional<Companion> zero = std::nullopt)
      : quantized(tensor), scales(std::move(factors)), zero_point(std::move(zero)) {}
  ScaledOperand(const Tensor& codes, std::vector<Companion> factors, const CodeTable& numbers)
      : quantized(codes), scales(std::move(factors)), table(numbers) {}
  ScaledOperand(const Tensor& tensor, OperandProgram elementwise)
      : quantized(tensor), program(std::move(elementwise)) {}

  // True if there is more to it than a tensor.
  bool is_scaled() const noexcept {
    return !scales.empty() || zero_point || table || order != ElementOrder::strided || program;
  }
};

// The number of values of a scale in the swizzled layout: rows rounded up to 128 times blocks
// along k rounded up to 4. `rows` and `k` are extents of the operand.
GEMMERY_API std::int64_t swizzled_scale_count(std::int64_t rows, std::int64_t k,
                                              ScaleBlock block) noexcept;
// The same for either layout; a strided one has no padding.
GEMMERY_API std::int64_t scale_count(std::int64_t rows, std::int64_t k, ScaleBlock block,
                                     ScaleLayout layout) noexcept;

}  // namespace gemmery
