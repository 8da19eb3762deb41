// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/depthwise/wide_channels.hpp"

#include <algorithm>
#include <array>

namespace gemmery::templates {
namespace {

std::uintptr_t address_of(const Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data());
}

// True if the vectors of an operand's channels, of this many bytes, are aligned to their accesses.
bool are_aligned(std::uintptr_t address, std::uint64_t strides, DType dtype, int channels) {
  const std::uint64_t width = byte_width(dtype);
  const std::uint64_t access =
      std::min<std::uint64_t>(16, static_cast<std::uint64_t>(channels) * width);
  return (static_cast<std::uint64_t>(address) | (strides * width)) % access == 0;
}

std::uint64_t bits_of(const std::array<std::int64_t, 4>& strides) {
  std::uint64_t bits = 0;
  for (const std::int64_t stride : strides) bits |= static_cast<std::uint64_t>(stride);
  return bits;
}

bool has_wide_matrix(const MatrixType& matrix, std::uintptr_t address, int channels) {
  return matrix.batch_stride == 1 &&
         are_aligned(address, static_cast<std::uint64_t>(matrix.row_stride), matrix.dtype,
                     channels);
}

}  // namespace

DepthwiseAddresses addresses_of(const GemmArguments& arguments) noexcept {
  return {.a = address_of(arguments.a()),
          .b = address_of(arguments.b()),
          .c = arguments.c() ? address_of(*arguments.c()) : 0,
          .out = address_of(arguments.out())};
}

bool has_wide_channels(const abi::DepthwiseDesign& design, const GemmProblem& problem,
                       const DepthwiseAddresses& addresses) noexcept {
  const Convolution& convolution = *problem.convolution;
  if (convolution.filters != convolution.channels) return false;
  if (convolution.channels % design.channels != 0) return false;
  if (!are_aligned(addresses.a, bits_of(convolution.a_strides), problem.a.dtype, design.channels))
    return false;
  if (abi::is_wgrad(design))
    return are_aligned(addresses.b, bits_of(convolution.b_strides), problem.b.dtype,
                       design.channels);
  return has_wide_matrix(problem.out, addresses.out, design.channels);
}

bool has_wide_c(const abi::DepthwiseDesign& design, const GemmProblem& problem,
                const DepthwiseAddresses& addresses) noexcept {
  return problem.c && has_wide_matrix(*problem.c, addresses.c, design.channels);
}

}  // namespace gemmery::templates
