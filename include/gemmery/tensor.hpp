// SPDX-License-Identifier: Apache-2.0
// A non-owning view of memory: pointer, element type, shape, strides in elements, device. It may
// also be a batch of matrices whose addresses are in an array (PointerArray).
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <gemmery/device.hpp>
#include <gemmery/dtype.hpp>
#include <gemmery/export.hpp>

namespace gemmery {

// The part of std::mdspan's interface that `Tensor::from_mdspan` uses.
template <class T>
concept MdspanLike = requires(const T& view) {
  { view.data_handle() } -> std::convertible_to<const void*>;
  { view.extent(0) } -> std::convertible_to<std::int64_t>;
  { view.stride(0) } -> std::convertible_to<std::int64_t>;
  { T::rank() } -> std::convertible_to<std::size_t>;
  typename T::element_type;
};

// The batch stride of a batch by pointers (Tensor, MatrixType).
inline constexpr std::int64_t by_pointers = std::numeric_limits<std::int64_t>::min();

// A batch by pointers: every matrix has an address of its own.
struct PointerArray {
  // As many addresses as the batch has matrices, in memory of the device. They are read when work
  // runs, never before: they may change between runs.
  const void* const* pointers = nullptr;
  // The caller promises that every address is a multiple of this many bytes, a power of two not
  // below the element's width. Values above 16 count as 16.
  int alignment = 16;
};

// A view of at most five dimensions. Elements of packed types (is_packed) share bytes: `data` is
// the byte whose lowest bits are the first element, one direction may have a stride of 1, and all
// other strides are whole bytes (multiples of whole_elements). `data` points at the element of
// index 0 in every dimension, also with negative strides. The caller owns the memory, which must
// outlive every use of the view, asynchronous ones included. Its role in an operation decides if a
// view is written; inputs are never written.
class GEMMERY_API Tensor {
 public:
  static constexpr int max_rank = 5;
  using Extents = std::array<std::int64_t, max_rank>;

  // An empty view of rank 0.
  Tensor() = default;

  // Packed, row major. Throws Error (invalid_argument) for a rank over five, negative extents,
  // sizes beyond 2^62 bytes, or rows that end within a byte.
  Tensor(const void* data, DType dtype, std::span<const std::int64_t> shape,
         Device device = Device::cpu());
  Tensor(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
         Device device = Device::cpu())
      : Tensor(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size()), device) {}

  // Any strides, in elements; negative and zero among them. Throws like the packed form, and when
  // the counts differ.
  Tensor(const void* data, DType dtype, std::span<const std::int64_t> shape,
         std::span<const std::int64_t> strides, Device device = Device::cpu());
  Tensor(const void* data, DType dtype, std::initializer_list<std::int64_t> shape,
         std::initializer_list<std::int64_t> strides, Device device = Device::cpu())
      : Tensor(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size()),
               std::span<const std::int64_t>(strides.begin(), strides.size()), device) {}

  // A batch of shape (L, rows, columns) by pointers. `strides` are those of rows and of columns in
  // every matrix; without them matrices are packed, row major. Throws Error (invalid_argument) for
  // another rank, for an alignment that is no power of two or less than an element, and like the
  // other forms.
  Tensor(const PointerArray& matrices, DType dtype, std::array<std::int64_t, 3> shape,
         Device device = Device::cpu());
  Tensor(const PointerArray& matrices, DType dtype, std::array<std::int64_t, 3> shape,
         std::array<std::int64_t, 2> strides, Device device = Device::cpu());

  // From std::mdspan or a type with its interface. The element type must be one for which dtype_of
  // is specialised.
  template <MdspanLike View>
  static Tensor from_mdspan(const View& view, Device device = Device::cpu()) {
    static_assert(View::rank() <= max_rank, "gemmery::Tensor has at most five dimensions");
    Extents shape{};
    Extents strides{};
    for (std::size_t d = 0; d < View::rank(); ++d) {
      shape[d] = static_cast<std::int64_t>(view.extent(d));
      strides[d] = static_cast<std::int64_t>(view.stride(d));
    }
    using Element = std::remove_cv_t<typename View::element_type>;
    return Tensor(view.data_handle(), dtype_of<Element>::value,
                  std::span<const std::int64_t>(shape.data(), View::rank()),
                  std::span<const std::int64_t>(strides.data(), View::rank()), device);
  }

  // For a batch by pointers: the array of addresses.
  void* data() const noexcept { return data_; }
  DType dtype() const noexcept { return dtype_; }
  int rank() const noexcept { return rank_; }
  Device device() const noexcept { return device_; }
  std::int64_t extent(int dimension) const noexcept {
    return shape_[static_cast<std::size_t>(dimension)];
  }
  std::int64_t stride(int dimension) const noexcept {
    return strides_[static_cast<std::size_t>(dimension)];
  }
  std::span<const std::int64_t> shape() const noexcept {
    return {shape_.data(), static_cast<std::size_t>(rank_)};
  }
  std::span<const std::int64_t> strides() const noexcept {
    return {strides_.data(), static_cast<std::size_t>(rank_)};
  }

  // A batch by pointers has a stride(0) of by_pointers.
  bool has_pointers() const noexcept { return pointer_alignment_ != 0; }
  // Bytes that divide every address of a batch by pointers, 16 at most; 0 for other views.
  int pointer_alignment() const noexcept { return pointer_alignment_; }

  // Elements; 1 for rank 0.
  std::int64_t element_count() const noexcept;

  // The same view of other memory; shape and strides stay. For a batch by pointers: another array
  // of addresses.
  Tensor with_data(const void* data) const noexcept;

 private:
  void* data_ = nullptr;
  Extents shape_{};
  Extents strides_{};
  Device device_;
  std::int8_t rank_ = 0;
  std::uint8_t pointer_alignment_ = 0;
  DType dtype_ = DType::float32;
};

// The addresses that a view covers, as [first, last) in bytes; both 0 for a view without elements.
// For a batch by pointers, the range of the array: the addresses of its matrices are known only
// when work runs.
struct ByteRange {
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;
  constexpr bool is_empty() const { return first == last; }
};
GEMMERY_API ByteRange byte_range(const Tensor& tensor) noexcept;

// "float32 (2, 3) strides (3, 1) on cpu"
GEMMERY_API std::string to_string(const Tensor& tensor);

}  // namespace gemmery
