// SPDX-License-Identifier: Apache-2.0
// Reads DLPack tensors: views, and ownership, which ends with exactly one call of the producer's
// deleter.
#include <gemmery/dlpack.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <gemmery/dlpack_abi.hpp>
#include "core/arithmetic.hpp"

namespace gemmery {
namespace {

[[noreturn]] void refuse(ErrorKind kind, std::string expected, std::string got,
                         std::string hint = {}) {
  throw Error({.kind = kind,
               .operand = "DLPack tensor",
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

// Torch's float4_e2m1fn_x2 has elements of two lanes: a byte.
bool has_whole_bytes(const dlpack::TypeCode& type, DType dtype) {
  return is_packed(dtype) && type.lanes == whole_elements(dtype) && type.lanes * type.bits == 8;
}

DType read_dtype(const dlpack::TypeCode& type) {
  for (const DTypeFacts& row : dtype_table) {
    if (row.dlpack_code != type.code || row.bits != type.bits) continue;
    if (type.lanes == 1 || has_whole_bytes(type, row.dtype)) return row.dtype;
    refuse(ErrorKind::unsupported, "one lane per element", std::to_string(type.lanes) + " lanes");
  }
  refuse(ErrorKind::unsupported, "an element type that gemmery knows",
         "type code " + std::to_string(type.code) + " of " + std::to_string(type.bits) + " bits");
}

Device read_device(const dlpack::DeviceCode& device) {
  switch (device.type) {
    case dlpack::device_cpu:
    case dlpack::device_cuda_host:
      return Device::cpu();
    case dlpack::device_cuda:
    case dlpack::device_cuda_managed:
      return Device::cuda(device.index);
    default:
      refuse(ErrorKind::unsupported, "memory of the CPU or of a CUDA device",
             "device type " + std::to_string(device.type));
  }
}

// No process has memory in the upper half of the address space. Beyond its end the sum would wrap.
const void* apply_offset(const dlpack::TensorLayout& layout) {
  constexpr std::uint64_t end_of_memory = std::uint64_t{1} << 63;
  const auto first = reinterpret_cast<std::uintptr_t>(layout.data);
  if (first == 0) return nullptr;
  if (layout.byte_offset >= end_of_memory || first + layout.byte_offset >= end_of_memory) {
    refuse(ErrorKind::invalid_argument, "a byte offset that leads to memory of a process",
           "byte offset " + std::to_string(layout.byte_offset));
  }
  return reinterpret_cast<const void*>(first + static_cast<std::uintptr_t>(layout.byte_offset));
}

// The view of a packed type whose elements lie in the bytes of `wide`, several in each, along its
// last adjacent dimension.
Tensor split_lanes(const Tensor& wide, DType dtype, int lanes) {
  Tensor::Extents shape{};
  Tensor::Extents strides{};
  std::ranges::copy(wide.shape(), shape.begin());
  int along = wide.rank() - 1;
  while (along >= 0 && wide.stride(along) != 1) --along;
  if (along < 0)
    refuse(ErrorKind::invalid_argument, "a dimension with a stride of 1",
           "a view of elements of " + std::to_string(lanes) + " lanes that are apart");
  for (int d = 0; d < wide.rank(); ++d)
    strides[static_cast<std::size_t>(d)] = d == along ? 1 : wide.stride(d) * lanes;
  shape[static_cast<std::size_t>(along)] *= lanes;
  const auto rank = static_cast<std::size_t>(wide.rank());
  return Tensor(wide.data(), dtype, std::span<const std::int64_t>(shape.data(), rank),
                std::span<const std::int64_t>(strides.data(), rank), wide.device());
}

Tensor make_view(const dlpack::TensorLayout& layout, const void* data, DType dtype, Device device) {
  const std::span<const std::int64_t> shape(layout.shape, static_cast<std::size_t>(layout.rank));
  if (layout.strides == nullptr) return Tensor(data, dtype, shape, device);
  return Tensor(data, dtype, shape, std::span<const std::int64_t>(layout.strides, shape.size()),
                device);
}

Tensor read_view(const dlpack::TensorLayout& layout) {
  if (layout.rank < 0 || layout.rank > Tensor::max_rank) {
    refuse(ErrorKind::invalid_argument, "a rank from 0 to 5",
           "rank " + std::to_string(layout.rank));
  }
  const auto rank = static_cast<std::size_t>(layout.rank);
  if (rank != 0 && layout.shape == nullptr) {
    refuse(ErrorKind::invalid_argument, "a shape", "a null shape of rank " + std::to_string(rank));
  }
  const DType dtype = read_dtype(layout.dtype);
  const Device device = read_device(layout.device);
  const void* const data = apply_offset(layout);
  const bool has_lanes = layout.dtype.lanes != 1;
  const Tensor view = make_view(layout, data, has_lanes ? DType::uint8 : dtype, device);
  if (data == nullptr && view.element_count() != 0) {
    refuse(ErrorKind::invalid_argument, "memory for its elements", "null data with elements");
  }
  const std::size_t width = byte_width(dtype);
  if (width > 1 && view.element_count() != 0 &&
      reinterpret_cast<std::uintptr_t>(data) % width != 0) {
    refuse(ErrorKind::invalid_argument, "an address that is a multiple of " + std::to_string(width),
           "byte offset " + std::to_string(layout.byte_offset) +
               " from an address that makes it misaligned",
           "copy the tensor to aligned memory");
  }
  return has_lanes ? split_lanes(view, dtype, layout.dtype.lanes) : view;
}

void check_padding(const dlpack::ManagedVersionedLayout& layout) {
  if ((layout.flags & dlpack::flag_padded_elements) == 0) return;
  if (layout.tensor.dtype.bits * layout.tensor.dtype.lanes % 8 == 0) return;
  refuse(ErrorKind::unsupported, "elements of fewer than 8 bits that share bytes",
         "one byte for every element", "pack them");
}

template <class Managed>
std::shared_ptr<void> take_ownership(Managed* managed) {
  if (managed == nullptr) refuse(ErrorKind::invalid_argument, "a tensor", "a null pointer");
  return {managed, [](void* object) {
            auto* const self = static_cast<Managed*>(object);
            if (self->deleter != nullptr) self->deleter(self);
          }};
}

}  // namespace

Tensor from_dlpack(const DLTensor& tensor) {
  return read_view(reinterpret_cast<const dlpack::TensorLayout&>(tensor));
}

DlpackTensor::DlpackTensor(DLManagedTensorVersioned* managed)
    : owner_(take_ownership(reinterpret_cast<dlpack::ManagedVersionedLayout*>(managed))) {
  // The version comes first. Of a tensor with another major version only it and the deleter may be
  // read.
  const auto& layout = *static_cast<const dlpack::ManagedVersionedLayout*>(owner_.get());
  if (layout.version.major != dlpack::supported_major_version) {
    refuse(ErrorKind::unsupported, "DLPack of major version 1",
           "version " + std::to_string(layout.version.major) + "." +
               std::to_string(layout.version.minor),
           "ask the producer for max_version=(1, 1)");
  }
  check_padding(layout);
  tensor_ = read_view(layout.tensor);
}

DlpackTensor::DlpackTensor(DLManagedTensor* managed)
    : owner_(take_ownership(reinterpret_cast<dlpack::ManagedLayout*>(managed))) {
  tensor_ = read_view(static_cast<const dlpack::ManagedLayout*>(owner_.get())->tensor);
}

}  // namespace gemmery
