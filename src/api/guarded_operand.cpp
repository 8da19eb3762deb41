// SPDX-License-Identifier: Apache-2.0
// Places, fills and checks guarded operands.
#include "api/guarded_operand.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "operation/matrix.hpp"
#include "platform/parallel.hpp"
#include "providers/host/number.hpp"

namespace gemmery::api {
namespace {

constexpr std::size_t image_alignment = 256;
constexpr std::size_t smallest_guard_bytes = 1024;
constexpr std::size_t largest_guard_bytes = std::size_t{1} << 20;

// All ones is NaN in every floating type of whole bytes; integers have no such value.
constexpr std::byte float_poison{0xff};
constexpr std::byte integer_poison{0x55};

std::byte poison_of(DType dtype) { return is_floating(dtype) ? float_poison : integer_poison; }

// Sets an element that shares bytes to its type's lowest number, any other one to poison.
void poison_at(std::byte* origin, DType dtype, std::int64_t index) {
  if (is_packed(dtype))
    return host::store(dtype, origin, index, {host::rounding_of(dtype).lowest, 0});
  std::memset(origin + storage_bytes(dtype, index), std::to_integer<int>(poison_of(dtype)),
              byte_width(dtype));
}

// The bytes from an array's beginning that have bits of element `index`.
struct ElementBytes {
  std::int64_t first;
  std::size_t count;
};
ElementBytes bytes_of(DType dtype, std::int64_t index) {
  if (!is_packed(dtype)) return {storage_bytes(dtype, index), byte_width(dtype)};
  const std::int64_t first = index * bit_width(dtype) >> 3;
  return {first, static_cast<std::size_t>(storage_bytes(dtype, index + 1) - first)};
}

// Differs from byte to byte, so that a copied neighbour is noticed as well.
std::byte canary_at(std::size_t position) {
  return static_cast<std::byte>(0xc1 ^ (position * 37 + (position >> 8)));
}

// Room for a few rows or columns too many, which is what a wrong edge writes.
std::size_t guard_bytes_of(const MatrixType& type) {
  const auto stride = std::max(std::abs(type.row_stride), std::abs(type.column_stride));
  const std::size_t wanted = 4 * static_cast<std::size_t>(stride) * byte_width(type.dtype);
  const std::size_t bounded = std::clamp(wanted, smallest_guard_bytes, largest_guard_bytes);
  return (bounded + image_alignment - 1) / image_alignment * image_alignment;
}

// The first position from `least` on that is a multiple of `alignment` and of no larger power of
// two.
std::size_t place_exactly(std::size_t least, std::size_t alignment) {
  const std::size_t period = 2 * alignment;
  return (least + alignment - 1) / period * period + alignment;
}

std::byte* allocate(std::size_t bytes) {
  return static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{image_alignment}));
}

}  // namespace

void GuardedOperand::Free::operator()(std::byte* bytes) const noexcept {
  ::operator delete[](bytes, std::align_val_t{image_alignment});
}

GuardedOperand::GuardedOperand(const GuardedOperand& other)
    : type_(other.type_),
      extents_(other.extents_),
      starts_(other.starts_),
      size_(other.size_),
      origin_(other.origin_),
      bytes_(allocate(other.size_)) {
  std::memcpy(bytes_.get(), other.bytes_.get(), size_);
  pointers_ = pointers_at(bytes_.get());
}

GuardedOperand::GuardedOperand(const Place& place)
    : type_(place.type), extents_(place.extents), starts_(place.type, place.extents) {
  const std::size_t guard = place.guard_bands ? guard_bytes_of(type_) : 0;
  const auto below = static_cast<std::size_t>(storage_bytes(type_.dtype, starts_.below()));
  const auto above = static_cast<std::size_t>(storage_bytes(type_.dtype, starts_.above() + 1));
  origin_ = place_exactly(guard + below, std::max<std::size_t>(type_.alignment, 1));
  size_ = origin_ + above + guard;
  bytes_.reset(allocate(size_));
  pointers_ = pointers_at(bytes_.get());
  if (place.surroundings == Surroundings::poison) {
    std::memset(bytes_.get(), std::to_integer<int>(poison_of(type_.dtype)), size_);
  } else {
    for (std::size_t position = 0; position < size_; ++position)
      bytes_[position] = canary_at(position);
  }
}

Tensor GuardedOperand::here() const { return at(bytes_.get(), pointers_.data(), Device::cpu()); }

Tensor GuardedOperand::at(const void* base, const void* pointers, Device device) const {
  const void* const data =
      has_pointers() ? pointers : static_cast<const std::byte*>(base) + origin_;
  return operation::make_view(data, type_, {extents_.batch, extents_.rows, extents_.columns},
                              device);
}

std::vector<const void*> GuardedOperand::pointers_at(const void* base) const {
  return starts_.pointers(static_cast<const std::byte*>(base) + origin_);
}

std::int64_t GuardedOperand::offset_of(std::int64_t batch, std::int64_t row) const noexcept {
  return starts_[batch] + row * type_.row_stride;
}

// True if no address belongs to two rows, by the sufficient condition that one stride spans the
// other directions.
bool GuardedOperand::has_separate_rows() const noexcept {
  if (type_.row_stride % whole_elements(type_.dtype) != 0) return false;
  const std::int64_t row = std::abs(type_.row_stride);
  const std::int64_t column = std::abs(type_.column_stride);
  const std::int64_t row_reach = (extents_.rows - 1) * row;
  const std::int64_t column_reach = (extents_.columns - 1) * column;
  const bool in_matrix =
      row > column_reach || (column > row_reach && row > 0) || extents_.rows == 1;
  const bool across = extents_.batch == 1 || has_pointers() ||
                      std::abs(type_.batch_stride) > row_reach + column_reach;
  return in_matrix && across;
}

// Calls visit(batch, row) for all rows; on several threads if there is much work and rows share no
// address.
template <class Visit>
void GuardedOperand::for_each_row(const Visit& visit) const {
  if (extents_.is_empty()) return;
  const auto visit_range = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index)
      visit(index / extents_.rows, index % extents_.rows);
  };
  constexpr std::int64_t chunk_elements = 1 << 15;
  const std::int64_t rows = extents_.batch * extents_.rows;
  if (extents_.count() <= chunk_elements || !has_separate_rows()) return visit_range(0, rows);
  platform::parallel_for(rows, std::max<std::int64_t>(chunk_elements / extents_.columns, 1),
                         visit_range);
}

void GuardedOperand::fill(const Numbers& numbers) {
  std::byte* const origin = bytes_.get() + origin_;
  for_each_row([&](std::int64_t batch, std::int64_t row) {
    const auto first = static_cast<std::uint64_t>((batch * extents_.rows + row) * extents_.columns);
    for (std::int64_t column = 0; column < extents_.columns; ++column) {
      const double value = numbers(first + static_cast<std::uint64_t>(column));
      host::store(type_.dtype, origin, offset_of(batch, row) + column * type_.column_stride,
                  {value, 0});
    }
  });
}

void GuardedOperand::poison_elements() {
  for_each_row([&](std::int64_t batch, std::int64_t row) {
    for (std::int64_t column = 0; column < extents_.columns; ++column)
      poison_element(batch, row, column);
  });
}

std::span<const std::byte> GuardedOperand::element(std::int64_t batch, std::int64_t row,
                                                   std::int64_t column) const noexcept {
  const ElementBytes bytes =
      bytes_of(type_.dtype, offset_of(batch, row) + column * type_.column_stride);
  return {bytes_.get() + origin_ + bytes.first, bytes.count};
}

void GuardedOperand::poison_element(std::int64_t batch, std::int64_t row, std::int64_t column) {
  poison_at(bytes_.get() + origin_, type_.dtype,
            offset_of(batch, row) + column * type_.column_stride);
}

std::int64_t GuardedOperand::count_changes(std::span<const std::byte> before) const {
  if (std::memcmp(before.data(), bytes_.get(), size_) == 0) return 0;
  std::int64_t changes = 0;
  for (std::size_t position = 0; position < size_; ++position)
    changes += before[position] != bytes_[position] ? 1 : 0;
  return changes;
}

std::int64_t GuardedOperand::count_changes_outside(std::span<const std::byte> before) const {
  std::vector<std::byte> expected(before.begin(), before.end());
  for_each_row([&](std::int64_t batch, std::int64_t row) {
    for (std::int64_t column = 0; column < extents_.columns; ++column) {
      const std::span<const std::byte> bytes = element(batch, row, column);
      std::memcpy(&expected[static_cast<std::size_t>(bytes.data() - bytes_.get())], bytes.data(),
                  bytes.size());
    }
  });
  return count_changes(expected);
}

}  // namespace gemmery::api
