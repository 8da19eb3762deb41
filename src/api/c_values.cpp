// SPDX-License-Identifier: Apache-2.0
// Reads the structs of the C API.
#include "api/c_values.hpp"

#include <gemmery/dlpack.hpp>

#include <cstddef>
#include <optional>
#include <utility>

#include <gemmery/dlpack_abi.hpp>

namespace gemmery::c_api {
namespace {

// The same memory as an array of pointers.
Tensor by_pointers_of(const Tensor& view, int alignment, Device device, const char* name) {
  if (view.rank() != 3)
    refuse_argument(name, "rank 3, (L, rows, columns), for pointers",
                    "rank " + std::to_string(view.rank()));
  const PointerArray pointers{static_cast<const void* const*>(view.data()), alignment};
  return Tensor(pointers, view.dtype(), {view.extent(0), view.extent(1), view.extent(2)},
                {view.stride(1), view.stride(2)}, device);
}

// `pointers`: what divides the addresses of a batch by pointers, 0 for other operands.
Tensor to_tensor(const gemmery_tensor* tensor, const char* name, int pointers) {
  required(tensor, name);
  // The library's DLPack reader checks everything but the device; we support one type more.
  const dlpack::TensorLayout layout{
      .data = tensor->data,
      .device = {dlpack::device_cpu, 0},
      .rank = tensor->ndim,
      .dtype = {tensor->dtype_code, tensor->dtype_bits, tensor->dtype_lanes},
      .shape = const_cast<std::int64_t*>(tensor->shape),
      .strides = const_cast<std::int64_t*>(tensor->strides),
      .byte_offset = tensor->byte_offset};
  try {
    const Tensor view = from_dlpack(reinterpret_cast<const DLTensor&>(layout));
    const Device device = to_device(tensor->device);
    if (pointers != 0) return by_pointers_of(view, pointers, device, name);
    return Tensor(view.data(), view.dtype(), view.shape(), view.strides(), device);
  } catch (const Error& error) {
    throw Error({.kind = error.kind(),
                 .operand = std::string(name) + ", " + error.operand(),
                 .expected = error.expected(),
                 .got = error.got(),
                 .hint = error.hint(),
                 .cause = error.cause()});
  }
}

Companion to_companion(const gemmery_companion& companion, const std::string& name) {
  return {to_tensor(&companion.values, name.c_str(), 0),
          {companion.block_rows, companion.block_k},
          companion.is_swizzled != 0 ? ScaleLayout::swizzled_128x4 : ScaleLayout::strided};
}

// An operand with what belongs to it; `operand` is "A" or "B".
ScaledOperand to_operand(const Tensor& elements, const gemmery_scaling* given,
                         const std::string& operand) {
  ScaledOperand scaled(elements);
  if (given == nullptr) return scaled;
  const std::string name = operand + "_scaling";
  const gemmery_scaling scaling = read_struct(given, sizeof(gemmery_scaling), name.c_str());
  if (scaling.scale_count < 0 || scaling.scale_count > 2)
    refuse_argument(name + "->scale_count", "0, 1 or 2", std::to_string(scaling.scale_count));
  if (scaling.scale_count > 0) required(scaling.scales, (name + "->scales").c_str());
  for (int at = 0; at < scaling.scale_count; ++at)
    scaled.scales.push_back(to_companion(scaling.scales[at], "scale of " + operand));
  if (scaling.zero_point != nullptr)
    scaled.zero_point = to_companion(*scaling.zero_point, "zero point of " + operand);
  if (scaling.table != nullptr) {
    CodeTable& table = scaled.table.emplace();
    std::copy_n(scaling.table, table.values.size(), table.values.begin());
  }
  if (scaling.is_prepared != 0) scaled.order = ElementOrder::fragments;
  return scaled;
}

DType to_accumulator(const char* word) {
  if (const std::optional<DType> dtype = parse_dtype(word)) return *dtype;
  refuse_argument("accumulator", "the name of a dtype", "\"" + std::string(word) + "\"");
}

Math to_math(const char* word) {
  if (word == nullptr) return Math::native;
  if (const std::optional<Math> math = parse_math(word)) return *math;
  refuse_argument("math", "native, tf32, ...", "\"" + std::string(word) + "\"");
}

}  // namespace

void refuse_argument(std::string operand, std::string expected, std::string got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got)});
}

void check_struct_size(std::size_t given, std::size_t least, const char* name) {
  if (given >= least) return;
  refuse_argument(std::string(name) + "->struct_size",
                  "the size of the struct, " + std::to_string(least) + " bytes at least",
                  std::to_string(given));
}

void refuse_unknown_members(const void* given, std::size_t given_bytes, std::size_t known_bytes,
                            const char* name) {
  const auto* const bytes = static_cast<const unsigned char*>(given);
  for (std::size_t place = known_bytes; place < given_bytes; ++place) {
    if (bytes[place] == 0) continue;
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = name,
                 .expected = "zeros in members that this version does not know",
                 .got = "a value at byte " + std::to_string(place),
                 .hint = "the program was compiled for a later version of the library"});
  }
}

Device to_device(gemmery_device device) {
  switch (device.type) {
    case GEMMERY_CPU:
      return Device::cpu();
    case GEMMERY_CUDA:
      return Device::cuda(device.index);
    case GEMMERY_EMULATED:
      return Device::emulated(device.index);
    default:
      refuse_argument("device", "type GEMMERY_CPU, GEMMERY_CUDA or GEMMERY_EMULATED",
                      std::to_string(device.type));
  }
}

gemmery_device from_device(Device device) noexcept {
  switch (device.type) {
    case DeviceType::cpu:
      return {GEMMERY_CPU, 0};
    case DeviceType::cuda:
      return {GEMMERY_CUDA, device.index};
    case DeviceType::emulated:
      return {GEMMERY_EMULATED, device.index};
  }
  return {GEMMERY_CPU, 0};
}

GemmArguments to_arguments(const gemmery_gemm* gemm) {
  constexpr std::size_t first_version = offsetof(gemmery_gemm, a_pointers);
  const gemmery_gemm known = read_struct(gemm, first_version, "gemm");
  const ScaledOperand a =
      to_operand(to_tensor(known.a, "A", known.a_pointers), known.a_scaling, "A");
  const ScaledOperand b =
      to_operand(to_tensor(known.b, "B", known.b_pointers), known.b_scaling, "B");
  const Tensor out = to_tensor(known.out, "out", known.out_pointers);
  GemmOptions options;
  if (known.c != nullptr) options.c = to_tensor(known.c, "C", known.c_pointers);
  options.alpha = known.alpha;
  options.beta = known.beta;
  options.math = to_math(known.math);
  if (known.accumulator == nullptr) return GemmArguments(a, b, out, options);
  return GemmArguments(a, b, out, to_accumulator(known.accumulator), options);
}

}  // namespace gemmery::c_api
