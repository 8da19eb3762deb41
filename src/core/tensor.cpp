// SPDX-License-Identifier: Apache-2.0
// Tensor views: construction with its checks, the addresses they touch, printing.
#include <gemmery/error.hpp>
#include <gemmery/tensor.hpp>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/arithmetic.hpp"

namespace gemmery {
namespace {

// Larger offsets are refused, so that later sums of a few of them cannot overflow.
constexpr std::int64_t largest_offset_bytes = std::int64_t{1} << 60;

[[noreturn]] void refuse_tensor(std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "tensor",
               .expected = std::move(expected),
               .got = std::move(got)});
}

std::string list_text(std::span<const std::int64_t> values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(values[i]);
  }
  return text + ")";
}

Tensor::Extents packed_strides(std::span<const std::int64_t> shape) {
  Tensor::Extents strides{};
  std::int64_t stride = 1;
  for (std::size_t d = std::min<std::size_t>(shape.size(), Tensor::max_rank); d-- > 0;) {
    strides[d] = stride;
    stride = checked_multiply(stride, std::max<std::int64_t>(shape[d], 1)).value_or(INT64_MAX);
  }
  return strides;
}

bool has_elements(std::span<const std::int64_t> shape) {
  return std::ranges::none_of(shape, [](std::int64_t extent) { return extent == 0; });
}

void check_shape(std::span<const std::int64_t> shape) {
  if (shape.size() > Tensor::max_rank) {
    refuse_tensor("a rank of at most 5", "rank " + std::to_string(shape.size()));
  }
  for (const std::int64_t extent : shape) {
    if (extent < 0) refuse_tensor("extents of 0 or more", "shape " + list_text(shape));
  }
}

// Packed elements have addresses of whole bytes in every direction but one, in which they are
// adjacent.
void check_packed(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                  DType dtype) {
  if (!is_packed(dtype)) return;
  const std::int64_t whole = whole_elements(dtype);
  int adjacent = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] <= 1 || strides[d] % whole == 0) continue;
    if (strides[d] == 1 && ++adjacent == 1) continue;
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "tensor",
                 .expected = "strides of whole bytes, multiples of " + std::to_string(whole) +
                             " elements of " + std::string(name(dtype)) +
                             ", and one stride of 1 at most",
                 .got = "shape " + list_text(shape) + " with strides " + list_text(strides),
                 .hint = "pad rows to whole bytes"});
  }
}

// Every element's offset in bytes must stay within largest_offset_bytes, in either direction.
void check_reach(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                 DType dtype) {
  if (!has_elements(shape)) return;
  std::int64_t reach = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto step = checked_multiply(shape[d] - 1, magnitude(strides[d]));
    const auto sum = step ? checked_add(reach, *step) : std::nullopt;
    const auto bytes =
        sum ? checked_multiply(*sum, static_cast<std::int64_t>(byte_width(dtype))) : std::nullopt;
    if (!bytes || *bytes > largest_offset_bytes) {
      refuse_tensor("elements within 2^60 bytes of the first",
                    "shape " + list_text(shape) + " with strides " + list_text(strides));
    }
    reach = *sum;
  }
}

void check_promise(int alignment, DType dtype) {
  const auto width = static_cast<int>(byte_width(dtype));
  if (alignment >= width && std::has_single_bit(static_cast<unsigned>(alignment))) return;
  refuse_tensor("pointers aligned to a power of two of " + std::to_string(width) +
                    " bytes, an element, or more",
                std::to_string(alignment));
}

}  // namespace

Tensor::Tensor(const PointerArray& matrices, DType dtype, std::array<std::int64_t, 3> shape,
               Device device)
    : Tensor(matrices, dtype, shape, {shape[2], 1}, device) {}

Tensor::Tensor(const PointerArray& matrices, DType dtype, std::array<std::int64_t, 3> shape,
               std::array<std::int64_t, 2> strides, Device device)
    : Tensor(matrices.pointers, dtype, shape, std::array{std::int64_t{0}, strides[0], strides[1]},
             device) {
  check_promise(matrices.alignment, dtype);
  strides_[0] = by_pointers;
  pointer_alignment_ = static_cast<std::uint8_t>(std::min(matrices.alignment, 16));
}

Tensor::Tensor(const void* data, DType dtype, std::span<const std::int64_t> shape, Device device)
    : Tensor(data, dtype, shape,
             std::span<const std::int64_t>(packed_strides(shape).data(),
                                           std::min<std::size_t>(shape.size(), max_rank)),
             device) {}

Tensor::Tensor(const void* data, DType dtype, std::span<const std::int64_t> shape,
               std::span<const std::int64_t> strides, Device device)
    : data_(const_cast<void*>(data)), device_(device), dtype_(dtype) {
  check_shape(shape);
  if (strides.size() != shape.size()) {
    refuse_tensor("as many strides as extents",
                  std::to_string(strides.size()) + " strides for shape " + list_text(shape));
  }
  check_reach(shape, strides, dtype);
  check_packed(shape, strides, dtype);
  rank_ = static_cast<std::int8_t>(shape.size());
  std::ranges::copy(shape, shape_.begin());
  std::ranges::copy(strides, strides_.begin());
}

std::int64_t Tensor::element_count() const noexcept {
  if (!has_elements(shape())) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape()) {
    count = checked_multiply(count, extent).value_or(INT64_MAX);
  }
  return count;
}

Tensor Tensor::with_data(const void* data) const noexcept {
  Tensor view = *this;
  view.data_ = const_cast<void*>(data);
  return view;
}

ByteRange byte_range(const Tensor& tensor) noexcept {
  if (!has_elements(tensor.shape())) return {};
  if (tensor.has_pointers()) {
    const auto array = reinterpret_cast<std::uintptr_t>(tensor.data());
    return {array, array + static_cast<std::uintptr_t>(tensor.extent(0)) * sizeof(void*)};
  }
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  for (int d = 0; d < tensor.rank(); ++d) {
    const std::int64_t step = (tensor.extent(d) - 1) * tensor.stride(d);
    (step < 0 ? lowest : highest) += step;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.data());
  const DType dtype = tensor.dtype();
  return {base + static_cast<std::uintptr_t>(storage_bytes(dtype, lowest)),
          base + static_cast<std::uintptr_t>(storage_bytes(dtype, highest + 1))};
}

std::string to_string(const Tensor& tensor) {
  if (tensor.has_pointers()) {
    return std::string(name(tensor.dtype())) + " " + list_text(tensor.shape()) + " strides " +
           list_text(tensor.strides().subspan(1)) + " by pointers aligned to " +
           std::to_string(tensor.pointer_alignment()) + " on " + to_string(tensor.device());
  }
  return std::string(name(tensor.dtype())) + " " + list_text(tensor.shape()) + " strides " +
         list_text(tensor.strides()) + " on " + to_string(tensor.device());
}

}  // namespace gemmery
