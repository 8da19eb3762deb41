// SPDX-License-Identifier: Apache-2.0
#include <gemmery/prepare.hpp>

#include <gemmery/error.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "device/abi/prepared_layout.hpp"

namespace gemmery {
namespace {

[[noreturn]] void refuse_preparation(std::string operand, std::string expected, std::string got,
                                     std::string hint = {},
                                     ErrorKind kind = ErrorKind::invalid_argument) {
  throw Error({.kind = kind,
               .operand = "prepare_operand: " + std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

void check_weight(const ScaledOperand& B) {
  const Tensor& codes = B.quantized;
  const int bits = bit_width(codes.dtype());
  if (B.order != ElementOrder::strided)
    refuse_preparation("B", "elements in the order of their strides", "a prepared operand");
  if (codes.rank() != 2 && codes.rank() != 3)
    refuse_preparation("B", "rank 2, (K, N), or a weight for each group, (G, K, N)",
                       to_string(codes));
  if (bits > 8 || bits == 6)
    refuse_preparation("B", "codes of 4 or 8 bits", std::string(name(codes.dtype())), "",
                       ErrorKind::unsupported);
  if (!codes.device().is_cpu())
    refuse_preparation("B", "memory of the CPU", to_string(codes.device()),
                       "prepare it before it is copied");
  const int lines = abi::prepared_lines(bits);
  const int k = codes.rank() - 2;
  if (codes.extent(k) % abi::prepared_k != 0 || codes.extent(k + 1) % lines != 0)
    refuse_preparation("B",
                       fmt::format("K of a multiple of {} and N of {}", abi::prepared_k, lines),
                       to_string(codes), "pass the operand as it is", ErrorKind::unsupported);
}

void check_prepared_memory(const Tensor& codes, const Tensor& memory) {
  constexpr std::uintptr_t alignment = 16;
  const bool is_stack = codes.rank() == 3;
  const std::int64_t k = codes.extent(codes.rank() - 2), n = codes.extent(codes.rank() - 1);
  const auto has_stride = [&](int from_last, std::int64_t stride) {
    const int dimension = memory.rank() - from_last;
    return memory.extent(dimension) <= 1 || memory.stride(dimension) == stride;
  };
  const bool has_shape = std::ranges::equal(memory.shape(), codes.shape()) && has_stride(2, 1) &&
                         has_stride(1, k) && (!is_stack || has_stride(3, k * n));
  if (memory.dtype() != codes.dtype() || !has_shape || !memory.device().is_cpu() ||
      reinterpret_cast<std::uintptr_t>(memory.data()) % alignment != 0)
    refuse_preparation(
        "memory",
        fmt::format("{} ({}{}, {}), strides ({}1, {}), aligned to 16 bytes, of the CPU",
                    name(codes.dtype()), is_stack ? fmt::format("{}, ", codes.extent(0)) : "", k, n,
                    is_stack ? fmt::format("{}, ", k * n) : "", k),
        to_string(memory));
}

void check_kernel(const ScaledOperand& B, const Kernel& kernel) {
  const OperandRules& rules = kernel.operands();
  if (!rules.b_companions.is_prepared)
    refuse_preparation("kernel", "one that takes a prepared B", kernel.name(),
                       "get_kernels lists such kernels for arguments with a prepared operand");
  if (rules.b.dtype != B.quantized.dtype())
    refuse_preparation("B", std::string(name(rules.b.dtype)) + " for the kernel " + kernel.name(),
                       std::string(name(B.quantized.dtype())));
  if (rules.b_companions.has_table != B.table.has_value())
    refuse_preparation("B", rules.b_companions.has_table ? "a code table" : "no code table",
                       B.table ? "a code table" : "none");
}

// Copies a code of 4 or 8 bits.
void copy_code(const void* from, std::int64_t from_index, void* to, std::int64_t to_index,
               int bits) {
  const auto* const read = static_cast<const std::uint8_t*>(from);
  auto* const written = static_cast<std::uint8_t*>(to);
  if (bits == 8) {
    written[to_index] = read[from_index];
    return;
  }
  const int code = read[from_index >> 1] >> 4 * (from_index & 1) & 15;
  const auto place = static_cast<int>(4 * (to_index & 1));
  std::uint8_t& byte = written[to_index >> 1];
  byte = static_cast<std::uint8_t>((byte & ~(15 << place)) | code << place);
}

// A matrix of codes, whose first one is at `first` in the tensor's memory.
struct CodeMatrix {
  const Tensor& codes;
  std::int64_t first;
};

void prepare_matrix(const CodeMatrix& from, const CodeMatrix& to, bool has_table) {
  const int k_dimension = from.codes.rank() - 2;
  const std::int64_t k = from.codes.extent(k_dimension);
  const std::int64_t k_stride = from.codes.stride(k_dimension);
  const std::int64_t column_stride = from.codes.stride(k_dimension + 1);
  const int bits = bit_width(from.codes.dtype());
  for (std::int64_t column = 0; column < from.codes.extent(k_dimension + 1); ++column)
    for (std::int64_t row = 0; row < k; ++row)
      copy_code(from.codes.data(), from.first + row * k_stride + column * column_stride,
                to.codes.data(), to.first + abi::prepared_index(column, row, k, bits, has_table),
                bits);
}

}  // namespace

ScaledOperand prepare_operand(const ScaledOperand& B, const Tensor& memory) {
  check_weight(B);
  const Tensor& codes = B.quantized;
  check_prepared_memory(codes, memory);
  const bool is_stack = codes.rank() == 3;
  for (std::int64_t group = 0; group < (is_stack ? codes.extent(0) : 1); ++group)
    prepare_matrix({codes, is_stack ? group * codes.stride(0) : 0},
                   {memory, is_stack ? group * memory.stride(0) : 0}, B.table.has_value());
  ScaledOperand prepared = B;
  prepared.quantized = memory;
  prepared.order = ElementOrder::fragments;
  return prepared;
}

ScaledOperand prepare_operand(const ScaledOperand& B, const Tensor& memory, const Kernel& kernel) {
  check_kernel(B, kernel);
  return prepare_operand(B, memory);
}

}  // namespace gemmery
