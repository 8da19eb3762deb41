// SPDX-License-Identifier: Apache-2.0
#include "describe/argument_checks.hpp"

#include <fmt/format.h>
#include <gemmery/discovery.hpp>

#include <cstddef>
#include <string>

#include "describe/refusal.hpp"

namespace gemmery::describe {

void check_multiple(std::string_view operand, const TensorDescription& tensor,
                    const Adjacent& adjacent) {
  if (adjacent.extent % tensor.alignment == 0) return;
  refuse(operand,
         fmt::format("{} a multiple of {}, the alignment of {} ({})", adjacent.extent_name,
                     tensor.alignment, operand, name(tensor.layout)),
         std::to_string(adjacent.extent), "describe the kernel with a smaller alignment");
}

void check_pointer(std::string_view operand, const TensorDescription& tensor, const void* data,
                   bool has_elements) {
  const auto bytes =
      byte_width(storage_type(tensor.element)) * static_cast<std::size_t>(tensor.alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (data == nullptr && has_elements) refuse(operand, "memory", "a null pointer");
  if (address % bytes != 0)
    refuse(operand, fmt::format("an address that is a multiple of {} bytes", bytes),
           fmt::format("{:#x}", address), "describe the kernel with a smaller alignment");
}

TensorDescription without_alignment(TensorDescription tensor) {
  tensor.alignment = 1;
  return tensor;
}

void check_device(int compute_capability, Device device) {
  if (device.is_cpu())
    refuse("device", "a GPU, or an emulated device such as emulated:a100", "cpu",
           "gemmery::get_kernels finds kernels of the CPU");
  const DeviceInfo& info = device_info(device);
  if (info.target.architecture >= compute_capability) return;
  refuse_unsupported(
      "compute_capability",
      fmt::format("at most {}, that of {}", info.target.architecture, to_string(device)),
      std::to_string(compute_capability));
}

void check_slices(int split_k_slices) {
  if (split_k_slices < 1 || split_k_slices > 65535)
    refuse("split_k_slices", "from 1 to 65535", std::to_string(split_k_slices));
}

}  // namespace gemmery::describe
