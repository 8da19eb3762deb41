// SPDX-License-Identifier: Apache-2.0
// Reads DLPack tensors: views, and ownership, which ends with exactly one call of the producer's
// deleter.
#include <gemmery/dlpack.hpp>
#include <gemmery/error.hpp>

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

DType read_dtype(const dlpack::TypeCode& type) {
  if (type.lanes != 1) {
    refuse(ErrorKind::unsupported, "one lane per element", std::to_string(type.lanes) + " lanes");
  }
  for (const DTypeFacts& row : dtype_table) {
    if (row.dlpack_code == type.code && row.bits == type.bits) return row.dtype;
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
  const std::span<const std::int64_t> shape(layout.shape, rank);
  const void* const data = apply_offset(layout);
  const Tensor view =
      layout.strides == nullptr
          ? Tensor(data, dtype, shape, device)
          : Tensor(data, dtype, shape, std::span<const std::int64_t>(layout.strides, rank), device);
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
  return view;
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
  tensor_ = read_view(layout.tensor);
}

DlpackTensor::DlpackTensor(DLManagedTensor* managed)
    : owner_(take_ownership(reinterpret_cast<dlpack::ManagedLayout*>(managed))) {
  tensor_ = read_view(static_cast<const dlpack::ManagedLayout*>(owner_.get())->tensor);
}

}  // namespace gemmery
