// SPDX-License-Identifier: Apache-2.0
// The layouts of weights in checkpoints of other libraries. Each is a function from (k, n) to the
// place of a code; the rest is shared.
#include <gemmery/checkpoints.hpp>

#include <gemmery/error.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/number.hpp"

namespace gemmery {
namespace {

constexpr std::int64_t codes_per_word = 8;
constexpr std::array<std::int64_t, 8> interleaved{0, 2, 4, 6, 1, 3, 5, 7};
constexpr unsigned middle_code = 8;  // of codes whose zero point is not stored

[[noreturn]] void refuse_checkpoint(std::string_view tensor, std::string expected, std::string got,
                                    std::string hint = {}) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "checkpoint: " + std::string(tensor),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

struct Strides2 {
  std::int64_t rows, columns;
};

// Checks that a tensor is a matrix on the CPU of this type and these extents.
void check_stored_matrix(std::string_view name, const Tensor& tensor, DType dtype,
                         std::int64_t rows, std::int64_t columns) {
  if (tensor.rank() != 2 || tensor.dtype() != dtype || tensor.extent(0) != rows ||
      tensor.extent(1) != columns)
    refuse_checkpoint(name, fmt::format("{} ({}, {})", gemmery::name(dtype), rows, columns),
                      to_string(tensor));
  if (!tensor.device().is_cpu())
    refuse_checkpoint(name, "memory of the CPU", to_string(tensor.device()), "copy it");
}

// The same with these strides, which extents of 1 need not have.
void check_written_matrix(std::string_view name, const Tensor& tensor, DType dtype,
                          std::int64_t rows, std::int64_t columns, const Strides2& strides) {
  check_stored_matrix(name, tensor, dtype, rows, columns);
  const bool fits = (rows <= 1 || tensor.stride(0) == strides.rows) &&
                    (columns <= 1 || tensor.stride(1) == strides.columns);
  if (!fits)
    refuse_checkpoint(name, fmt::format("strides ({}, {})", strides.rows, strides.columns),
                      to_string(tensor));
}

void check_stored_vector(std::string_view name, const Tensor& tensor, DType dtype,
                         std::int64_t count) {
  if (tensor.rank() != 1 || tensor.dtype() != dtype || tensor.extent(0) != count)
    refuse_checkpoint(name, fmt::format("{} ({})", gemmery::name(dtype), count), to_string(tensor));
  if (!tensor.device().is_cpu())
    refuse_checkpoint(name, "memory of the CPU", to_string(tensor.device()), "copy it");
}

// Checks the codes that are to be written, and returns (K, N).
std::pair<std::int64_t, std::int64_t> check_codes(const Tensor& codes, DType dtype) {
  if (codes.rank() != 2 || codes.dtype() != dtype)
    refuse_checkpoint("codes", std::string(name(dtype)) + " (K, N)", to_string(codes));
  const std::int64_t k = codes.extent(0), n = codes.extent(1);
  check_written_matrix("codes", codes, dtype, k, n, {1, k});
  return {k, n};
}

void check_multiple(std::string_view extent, std::int64_t value, std::int64_t of) {
  if (value % of != 0)
    refuse_checkpoint(extent, fmt::format("a multiple of {}", of), std::to_string(value),
                      "pad the weight before it is quantised");
}

std::int64_t count_checkpoint_groups(std::int64_t k, std::int64_t group) {
  if (group < 0) refuse_checkpoint("group", "at least 1, or 0 for all of K", std::to_string(group));
  return group == 0 ? 1 : (k + group - 1) / group;
}

// A matrix of words of which each holds eight codes.
class Words {
 public:
  explicit Words(const Tensor& tensor)
      : data_(static_cast<const std::uint32_t*>(tensor.data())),
        row_stride_(tensor.stride(0)),
        column_stride_(tensor.stride(1)) {}

  unsigned code(std::int64_t row, std::int64_t column, std::int64_t place) const {
    return data_[row * row_stride_ + column * column_stride_] >> 4 * place & 15U;
  }

 private:
  const std::uint32_t* data_;
  std::int64_t row_stride_, column_stride_;
};

// The place of column n among the codes of a word.
std::int64_t interleaved_place(std::int64_t n) {
  const auto found = std::ranges::find(interleaved, n % codes_per_word);
  return found - interleaved.begin();
}

// Writes code(k, n) for all k and n; K is even. `flip` is applied to each.
template <class Code>
void write_codes(const Tensor& codes, unsigned flip, const Code& code) {
  const std::int64_t k = codes.extent(0), n = codes.extent(1);
  auto* byte = static_cast<std::uint8_t*>(codes.data());
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < k; row += 2)
      *byte++ = static_cast<std::uint8_t>((code(row, column) ^ flip) |
                                          (code(row + 1, column) ^ flip) << 4);
}

template <class Code>
void write_zeros(const Tensor& zeros, const Code& code) {
  auto* byte = static_cast<std::uint8_t*>(zeros.data());
  for (std::int64_t row = 0; row < zeros.extent(0); ++row)
    for (std::int64_t column = 0; column < zeros.extent(1); ++column)
      *byte++ = static_cast<std::uint8_t>(code(row, column));
}

// --- GPTQ ---------------------------------------------------------------------------------------

// The k of each group, one group after the other; those of a group in ascending order.
std::vector<std::int32_t> sorted_by_group(const Tensor& g_idx, std::int64_t groups,
                                          std::int64_t group) {
  const std::int64_t k = g_idx.extent(0);
  const auto* const data = static_cast<const std::int32_t*>(g_idx.data());
  const auto group_of = [&](std::int64_t index) { return data[index * g_idx.stride(0)]; };
  std::vector<std::int64_t> counts(static_cast<std::size_t>(groups));
  for (std::int64_t index = 0; index < k; ++index) {
    if (group_of(index) < 0 || group_of(index) >= groups)
      refuse_checkpoint("g_idx", fmt::format("groups from 0 to {}", groups - 1),
                        fmt::format("{} of k = {}", group_of(index), index));
    ++counts[static_cast<std::size_t>(group_of(index))];
  }
  for (std::int64_t one = 0; one < groups; ++one) {
    const std::int64_t size = group == 0 ? k : std::min(group, k - one * group);
    if (counts[static_cast<std::size_t>(one)] != size)
      refuse_checkpoint("g_idx", fmt::format("{} elements of k in group {}", size, one),
                        std::to_string(counts[static_cast<std::size_t>(one)]),
                        "dequantise such a weight by its formula");
  }
  std::vector<std::int32_t> order(static_cast<std::size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, group_of);
  return order;
}

void check_gptq(const GptqWeight& weight, const Tensor& codes, const std::optional<Tensor>& zeros,
                const std::optional<Tensor>& order, std::int64_t groups) {
  const std::int64_t k = codes.extent(0), n = codes.extent(1);
  check_multiple("K", k, codes_per_word);
  check_stored_matrix("qweight", weight.qweight, DType::int32, k / codes_per_word, n);
  if (weight.version != 1 && weight.version != 2)
    refuse_checkpoint("version", "1 or 2", std::to_string(weight.version));
  if (weight.qzeros.has_value() != zeros.has_value())
    refuse_checkpoint("zeros",
                      weight.qzeros ? "a tensor for the zero points" : "none without qzeros",
                      zeros ? to_string(*zeros) : "none");
  if (weight.g_idx.has_value() != order.has_value())
    refuse_checkpoint("order", weight.g_idx ? "a tensor for the order of k" : "none without g_idx",
                      order ? to_string(*order) : "none");
  if (zeros) {
    check_multiple("N", n, codes_per_word);
    check_stored_matrix("qzeros", *weight.qzeros, DType::int32, groups, n / codes_per_word);
    check_written_matrix("zeros", *zeros, DType::uint8, groups, n, {n, 1});
  }
  if (!order) return;
  check_stored_vector("g_idx", *weight.g_idx, DType::int32, k);
  check_stored_vector("order", *order, DType::int32, k);
}

}  // namespace

bool import_gptq(const GptqWeight& weight, const Tensor& codes, const std::optional<Tensor>& zeros,
                 const std::optional<Tensor>& order) {
  const auto [k, n] = check_codes(codes, weight.qzeros ? DType::uint4 : DType::int4);
  const std::int64_t groups = count_checkpoint_groups(k, weight.group);
  check_gptq(weight, codes, zeros, order, groups);
  std::vector<std::int32_t> sorted(static_cast<std::size_t>(k));
  std::iota(sorted.begin(), sorted.end(), 0);
  if (order) sorted = sorted_by_group(*weight.g_idx, groups, weight.group);
  const Words words(weight.qweight);
  write_codes(codes, zeros ? 0U : middle_code, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t from = sorted[static_cast<std::size_t>(row)];
    return words.code(from / codes_per_word, column, from % codes_per_word);
  });
  if (zeros) {
    const Words stored(*weight.qzeros);
    const unsigned least = weight.version == 1 ? 1 : 0;
    write_zeros(*zeros, [&](std::int64_t row, std::int64_t column) {
      return stored.code(row, column / codes_per_word, column % codes_per_word) + least;
    });
  }
  if (!order) return false;
  auto* const written = static_cast<std::int32_t*>(order->data());
  for (std::int64_t index = 0; index < k; ++index)
    written[index * order->stride(0)] = sorted[static_cast<std::size_t>(index)];
  return !std::ranges::is_sorted(sorted);
}

// --- AWQ ----------------------------------------------------------------------------------------

void import_awq(const AwqWeight& weight, const Tensor& codes, const Tensor& zeros) {
  const auto [k, n] = check_codes(codes, DType::uint4);
  const std::int64_t groups = count_checkpoint_groups(k, weight.group);
  check_multiple("K", k, 2);
  check_multiple("N", n, codes_per_word);
  check_stored_matrix("qweight", weight.qweight, DType::int32, k, n / codes_per_word);
  check_stored_matrix("qzeros", weight.qzeros, DType::int32, groups, n / codes_per_word);
  check_written_matrix("zeros", zeros, DType::uint8, groups, n, {n, 1});
  const auto code_in = [](const Words& words) {
    return [words](std::int64_t row, std::int64_t column) {
      return words.code(row, column / codes_per_word, interleaved_place(column));
    };
  };
  write_codes(codes, 0, code_in(Words(weight.qweight)));
  write_zeros(zeros, code_in(Words(weight.qzeros)));
}

// --- Marlin -------------------------------------------------------------------------------------

namespace {

// Where Marlin puts the code of (k, n): a row of words for 16 k; in it 128 words for 64 columns,
// four of each lane of a warp, one for each tile of 16 columns. A lane's codes are those that an
// mma of 16x8x16 takes from it: rows 2t, 2t + 1, 2t + 8, 2t + 9 of column g, then of column g + 8.
struct MarlinPlace {
  std::int64_t row, word, place;
};
MarlinPlace marlin_place(std::int64_t k, std::int64_t n) {
  const std::int64_t tile = n % 64 / 16, column = n % 16, row = k % 16;
  const std::int64_t lane = column % 8 * 4 + row % 8 / 2;
  const std::int64_t of_lane = column / 8 * 4 + row / 8 * 2 + row % 2;
  return {k / 16, n / 64 * 128 + lane * 4 + tile, interleaved_place(of_lane)};
}

// Where Marlin puts the scale of column n: 64 columns are transposed as 8x8; with one group, 32
// columns are in the order of a lane's accumulators.
std::int64_t marlin_scale_place(std::int64_t n, bool has_groups) {
  if (has_groups) return n / 64 * 64 + n % 8 * 8 + n % 64 / 8;
  const std::int64_t pair = n % 32 % 8 / 2;
  return n / 32 * 32 + pair * 8 + n % 32 / 8 * 2 + n % 2;
}

}  // namespace

void import_marlin(const MarlinWeight& weight, const Tensor& codes, const Tensor& scales) {
  const auto [k, n] = check_codes(codes, DType::int4);
  const std::int64_t groups = count_checkpoint_groups(k, weight.group);
  check_multiple("K", k, 16);
  check_multiple("N", n, 64);
  const DType dtype = weight.scales.dtype();
  if (is_packed(dtype))
    refuse_checkpoint("scales", "elements of whole bytes", std::string(name(dtype)));
  check_stored_matrix("qweight", weight.qweight, DType::int32, k / 16, 2 * n);
  check_stored_matrix("scales", weight.scales, dtype, groups, n);
  check_written_matrix("scales", scales, dtype, groups, n, {n, 1});
  const Words words(weight.qweight);
  write_codes(codes, middle_code, [&](std::int64_t row, std::int64_t column) {
    const MarlinPlace at = marlin_place(row, column);
    return words.code(at.row, at.word, at.place);
  });
  const auto width = static_cast<std::int64_t>(byte_width(dtype));
  const auto* const from = static_cast<const std::byte*>(weight.scales.data());
  auto* to = static_cast<std::byte*>(scales.data());
  for (std::int64_t group = 0; group < groups; ++group)
    for (std::int64_t column = 0; column < n; ++column, to += width)
      std::memcpy(to,
                  from + width * (group * weight.scales.stride(0) +
                                  marlin_scale_place(column, groups > 1) * weight.scales.stride(1)),
                  static_cast<std::size_t>(width));
}

// --- bitsandbytes -------------------------------------------------------------------------------

std::int64_t scale_group(std::int64_t k, std::int64_t block) noexcept {
  return k == 0 ? block : std::gcd(k, block);
}

namespace {

const Tensor& nested(const std::optional<Tensor>& tensor, std::string_view name) {
  if (!tensor) refuse_checkpoint(name, "a tensor beside an absmax of uint8", "none");
  return *tensor;
}

void check_blockwise(const BlockwiseWeight& weight, std::int64_t elements, std::int64_t blocks) {
  if (weight.codes.dtype() != DType::uint8 || weight.codes.element_count() * 2 != elements)
    refuse_checkpoint("codes", fmt::format("{} bytes, two codes in each", elements / 2),
                      to_string(weight.codes));
  const bool is_nested = weight.absmax.dtype() == DType::uint8;
  check_stored_vector("absmax", weight.absmax, is_nested ? DType::uint8 : DType::float32, blocks);
  if (!is_nested) return;
  if (weight.nested_block < 1)
    refuse_checkpoint("nested_block", "at least 1", std::to_string(weight.nested_block));
  check_stored_vector("nested_code", nested(weight.nested_code, "nested_code"), DType::float32,
                      256);
  check_stored_vector("nested_absmax", nested(weight.nested_absmax, "nested_absmax"),
                      DType::float32, (blocks + weight.nested_block - 1) / weight.nested_block);
}

float element(const Tensor& vector, std::int64_t index) {
  return static_cast<const float*>(vector.data())[index * vector.stride(0)];
}

// The maximum of a block, rounded to float32 after each step, as it was when it was quantised.
float absmax_of(const BlockwiseWeight& weight, std::int64_t block) {
  if (weight.absmax.dtype() == DType::float32) return element(weight.absmax, block);
  const auto code =
      static_cast<const std::uint8_t*>(weight.absmax.data())[block * weight.absmax.stride(0)];
  const float part = element(*weight.nested_code, code) *
                     element(*weight.nested_absmax, block / weight.nested_block);
  return part + static_cast<float>(weight.offset);
}

}  // namespace

void import_blockwise(const BlockwiseWeight& weight, const Tensor& codes, const Tensor& scales) {
  const auto [k, n] = check_codes(codes, DType::uint4);
  check_multiple("K", k, 2);
  if (weight.block < 2 || weight.block % 2 != 0)
    refuse_checkpoint("block", "an even number of codes", std::to_string(weight.block));
  const std::int64_t group = scale_group(k, weight.block);
  const std::int64_t groups = k / group;
  check_blockwise(weight, k * n, (k * n + weight.block - 1) / weight.block);
  check_written_matrix("scales", scales, DType::float32, groups, n, {1, groups});
  const auto* const from = static_cast<const std::uint8_t*>(weight.codes.data());
  auto* const to = static_cast<std::uint8_t*>(codes.data());
  for (std::int64_t at = 0; at < k * n / 2; ++at)
    to[at] = static_cast<std::uint8_t>(from[at] >> 4 | from[at] << 4);
  auto* const written = static_cast<float*>(scales.data());
  for (std::int64_t at = 0; at < groups * n; ++at)
    written[at] = absmax_of(weight, at * group / weight.block);
}

}  // namespace gemmery
