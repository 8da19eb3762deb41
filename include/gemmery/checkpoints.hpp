// SPDX-License-Identifier: Apache-2.0
// Weights of 4 bits as checkpoints of other libraries store them, converted to operands of this
// one: B (K, N) of a linear layer, K inputs and N outputs, with
//
//   W[k, n] = (codes[k, n] - zeros[k / group, n]) * scales[k / group, n]
//
// All tensors are in CPU memory, and the caller owns them. Results are written completely. Throws
// Error (invalid_argument) naming the tensor for shapes, types and strides that the format has not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <gemmery/export.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// GPTQ's "desc_act" is a g_idx: each k has a group of its own. Version 1 stores zero points minus
// one, version 2 as they are.
struct GptqWeight {
  Tensor qweight;                               // (K / 8, N) int32, the lowest nibble first along k
  std::optional<Tensor> qzeros = std::nullopt;  // (groups, N / 8) int32; none: all are 8
  std::optional<Tensor> g_idx = std::nullopt;   // (K) int32, the group of each k
  std::int64_t group = 0;                       // elements of k in a group; 0: K
  int version = 1;
};
// codes: (K, N), k adjacent and packed: strides (1, K); uint4, or int4 (codes minus 8) if there are
// no qzeros. zeros: (groups, N) uint8, row major, if there are. order: (K) int32, if there is a
// g_idx: row i of the result is row order[i] of the weight, so that groups are adjacent; A's
// columns must be taken in the same order, A[:, order]. Returns true if it is not 0, 1, 2, …
GEMMERY_API bool import_gptq(const GptqWeight& weight, const Tensor& codes,
                             const std::optional<Tensor>& zeros,
                             const std::optional<Tensor>& order);

// AWQ packs eight outputs into a word, in the order 0 2 4 6 1 3 5 7 from the lowest nibble on.
struct AwqWeight {
  Tensor qweight;          // (K, N / 8) int32
  Tensor qzeros;           // (groups, N / 8) int32
  std::int64_t group = 0;  // elements of k in a group; 0: K
};
// codes: (K, N) uint4, strides (1, K). zeros: (groups, N) uint8, row major.
GEMMERY_API void import_awq(const AwqWeight& weight, const Tensor& codes, const Tensor& zeros);

// Marlin stores tiles of 16x64 codes, and scales, permuted for its kernel; codes count from 8.
struct MarlinWeight {
  Tensor qweight;          // (K / 16, 2 N) int32
  Tensor scales;           // (groups, N)
  std::int64_t group = 0;  // 128, or 0: K
};
// codes: (K, N) int4, strides (1, K). scales: (groups, N), row major, of the type of the given
// ones.
GEMMERY_API void import_marlin(const MarlinWeight& weight, const Tensor& codes,
                               const Tensor& scales);

// bitsandbytes quantises the flattened weight (N, K) in blocks, the high nibble first. Maxima of
// blocks may be quantised again, in blocks of `nested_block`: code[absmax] * nested_absmax +
// offset.
struct BlockwiseWeight {
  Tensor codes;   // N * K / 2 uint8, packed, in any shape
  Tensor absmax;  // (N * K / block, rounded up) float32, or uint8 if it is nested
  std::int64_t block = 64;
  std::optional<Tensor> nested_code = std::nullopt;    // (256) float32
  std::optional<Tensor> nested_absmax = std::nullopt;  // float32
  std::int64_t nested_block = 256;
  double offset = 0;
};
// How many adjacent elements of k share a scale of the result: the greatest common divisor of k and
// the block, since a block may begin within a row of the weight.
GEMMERY_API std::int64_t scale_group(std::int64_t k, std::int64_t block) noexcept;
// codes: (K, N) uint4, strides (1, K). scales: (K / scale_group(K, block), N) float32, k adjacent:
// strides (1, K / scale_group). The table of codes (code_table::nf4) is the operand's.
GEMMERY_API void import_blockwise(const BlockwiseWeight& weight, const Tensor& codes,
                                  const Tensor& scales);

}  // namespace gemmery
