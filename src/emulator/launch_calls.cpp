// SPDX-License-Identifier: Apache-2.0
// Launches and tensor maps.
#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "emulator/handles.hpp"
#include "emulator/memory/tensor_map.hpp"
#include "emulator/table.hpp"

namespace gemmery::emulator {
namespace {

// --- launches -----------------------------------------------------------------------------------

constexpr std::uint32_t portable_cluster_size = 8;

std::array<std::uint32_t, 3> cluster_of(const cuda::LaunchConfig& config) {
  for (unsigned index = 0; index < config.attribute_count; ++index) {
    const cuda::LaunchAttribute& attribute = config.attributes[index];
    if (attribute.id != cuda::LaunchAttributeId::cluster_dimension) continue;
    const auto& size = attribute.value.cluster_dimension;
    return {size.x, size.y, size.z};
  }
  return {1, 1, 1};
}

bool is_cooperative(const cuda::LaunchConfig& config) {
  const std::span attributes(config.attributes, config.attribute_count);
  return std::ranges::any_of(attributes, [](const cuda::LaunchAttribute& attribute) {
    return attribute.id == cuda::LaunchAttributeId::cooperative && attribute.value.cooperative != 0;
  });
}

// Copies the values at launch, as the driver does, so that later changes have no effect.
std::vector<std::byte> take_parameters(const KernelImage& image, void** parameters) {
  std::vector<std::byte> bytes(image.parameter_bytes);
  for (std::size_t index = 0; index < image.parameter_offset.size(); ++index) {
    if (parameters == nullptr || parameters[index] == nullptr) {
      throw Refusal{cuda::Result::invalid_value,
                    fmt::format("parameter {} of {} is not given", index, image.name)};
    }
    std::memcpy(bytes.data() + image.parameter_offset[index], parameters[index],
                image.parameter_size[index]);
  }
  return bytes;
}

void check_shared_memory(const cuda::FunctionHandle& function, std::uint32_t bytes) {
  const int allowed = function.max_dynamic_shared_bytes;
  if (bytes <= static_cast<std::uint32_t>(allowed)) return;
  throw Refusal{
      cuda::Result::invalid_value,
      fmt::format("{} bytes of dynamic shared memory: expected at most {}, what the kernel was "
                  "allowed; set its attribute max_dynamic_shared_bytes",
                  bytes, allowed)};
}

void check_cluster(const cuda::FunctionHandle& function,
                   const std::array<std::uint32_t, 3>& cluster) {
  const std::uint64_t count = std::uint64_t{cluster[0]} * cluster[1] * cluster[2];
  if (count <= portable_cluster_size || function.allows_any_cluster) return;
  throw Refusal{
      cuda::Result::invalid_cluster_size,
      fmt::format("a cluster of {} blocks: expected at most {}, or the kernel's attribute "
                  "non_portable_cluster_size_allowed",
                  count, portable_cluster_size)};
}

KernelLaunch describe_launch(const cuda::LaunchConfig& config, const cuda::FunctionHandle& function,
                             void** parameters) {
  return {.device = function.device,
          .image = function.image,
          .grid = {config.grid_x, config.grid_y, config.grid_z},
          .block = {config.block_x, config.block_y, config.block_z},
          .cluster = cluster_of(config),
          .dynamic_shared_bytes = config.shared_bytes,
          .is_cooperative = is_cooperative(config),
          .parameters = take_parameters(*function.image, parameters)};
}

void check_shape(const cuda::FunctionHandle& function, const KernelLaunch& launch) {
  const std::lock_guard lock(handles().mutex);
  check_shared_memory(function, launch.dynamic_shared_bytes);
  check_cluster(function, launch.cluster);
}

FaultSink* fault_sink = nullptr;

// Runs it to its end and gives its faults to the sink. Throws the fault that ended a block.
void execute_collecting(const KernelLaunch& launch, FaultSink& sink) {
  FaultCollector collector;
  LaunchStatistics statistics;
  const std::uint64_t seed = schedule_seed();
  sink.begin(launch);
  try {
    statistics = run(launch, seed, step_limit(), {.collector = &collector});
  } catch (const Fault& fault) {
    collector.note({.fault = fault, .ended_cluster = true});
  }
  const std::vector<CollectedFault> faults = collector.take_all();
  sink.take(faults, statistics, seed);
  const auto last = std::ranges::find_if(faults, &CollectedFault::ended_cluster);
  if (last != faults.end()) throw last->fault;
}

void execute(const KernelLaunch& launch) {
  if (fault_sink != nullptr) return execute_collecting(launch, *fault_sink);
  run(launch, schedule_seed(), step_limit());
}

void launch(const cuda::LaunchConfig& config, cuda::FunctionHandle& function, void** parameters) {
  if (&current_device() != function.device) throw Refusal{cuda::Result::invalid_context, {}};
  Task task = kernel_task(config, function, parameters);
  {
    const std::lock_guard lock(handles().mutex);
    if (resolve(config.stream).device != function.device)
      throw Refusal{cuda::Result::invalid_value, "the stream is another device's"};
  }
  put(config.stream, std::move(task));
}

// --- tensor maps --------------------------------------------------------------------------------

// The fields that both kinds of map have.
struct MappedTensor {
  cuda::TensorMapDataType type;
  std::uint32_t rank;
  const void* address;
  const std::uint64_t* extents;
  const std::uint64_t* byte_strides;
  const std::uint32_t* element_strides;
  cuda::TensorMapInterleave interleave;
  cuda::TensorMapSwizzle swizzle;
  cuda::TensorMapOutOfBounds out_of_bounds;
};

std::uint32_t known_rank(std::uint32_t rank) { return std::min(rank, max_map_rank); }

TensorMapFields fields_of(const MappedTensor& tensor) {
  TensorMapFields fields{
      .address = reinterpret_cast<std::uintptr_t>(tensor.address),
      .element = static_cast<MapElement>(tensor.type),
      .rank = tensor.rank,
      .interleave = static_cast<std::uint8_t>(tensor.interleave),
      .swizzle = static_cast<std::uint8_t>(tensor.swizzle),
      .fills_nan = tensor.out_of_bounds == cuda::TensorMapOutOfBounds::nan_request_zero_fma};
  const std::uint32_t rank = known_rank(tensor.rank);
  for (std::uint32_t d = 0; d < rank; ++d) {
    fields.extents[d] = tensor.extents[d];
    fields.element_strides[d] = tensor.element_strides[d];
    if (d + 1 < rank) fields.byte_strides[d] = tensor.byte_strides[d];
  }
  return fields;
}

void write_map(cuda::TensorMap* map, const TensorMapFields& fields) {
  const std::string broken = find_broken_rule(fields);
  if (!broken.empty()) throw Refusal{cuda::Result::invalid_value, "tensor map: " + broken};
  const TensorMapBytes bytes = encode(fields);
  static_assert(sizeof bytes == sizeof *map);
  std::memcpy(map, bytes.data(), sizeof bytes);
}

// The enumerators of both are in the manual's order.
static_assert(static_cast<int>(MapElement::tf32_flush) ==
              static_cast<int>(cuda::TensorMapDataType::tfloat32_flush));
static_assert(static_cast<int>(MapElement::bf16) ==
              static_cast<int>(cuda::TensorMapDataType::bfloat16));

}  // namespace

Task kernel_task(KernelTask made) {
  check_shape(*made.function, made.launch);
  Work work = [launch = made.launch] { execute(launch); };
  return {NodeKind::kernel, std::move(work), std::move(made)};
}

Task kernel_task(const cuda::LaunchConfig& config, cuda::FunctionHandle& function,
                 void** parameters) {
  return kernel_task({&function, describe_launch(config, function, parameters)});
}

void set_fault_sink(FaultSink* sink) noexcept { fault_sink = sink; }

namespace calls {

cuda::Result cuLaunchKernelEx(const cuda::LaunchConfig* config, cuda::Function function,
                              void** parameters, void** extra) {
  return answer([&] {
    if (function == nullptr) throw Refusal{cuda::Result::invalid_handle, {}};
    if (extra != nullptr)
      throw Refusal{cuda::Result::not_supported, "parameters in one buffer (`extra`)"};
    launch(*config, *function, parameters);
  });
}

cuda::Result cuTensorMapEncodeTiled(cuda::TensorMap* map, cuda::TensorMapDataType type,
                                    std::uint32_t rank, void* address, const std::uint64_t* extents,
                                    const std::uint64_t* byte_strides, const std::uint32_t* box,
                                    const std::uint32_t* element_strides,
                                    cuda::TensorMapInterleave interleave,
                                    cuda::TensorMapSwizzle swizzle, cuda::TensorMapL2Promotion,
                                    cuda::TensorMapOutOfBounds out_of_bounds) {
  return answer([&] {
    TensorMapFields fields = fields_of({type, rank, address, extents, byte_strides, element_strides,
                                        interleave, swizzle, out_of_bounds});
    std::copy_n(box, known_rank(rank), fields.box.begin());
    write_map(map, fields);
  });
}

cuda::Result cuTensorMapEncodeIm2col(
    cuda::TensorMap* map, cuda::TensorMapDataType type, std::uint32_t rank, void* address,
    const std::uint64_t* extents, const std::uint64_t* byte_strides, const int* lower_corner,
    const int* upper_corner, std::uint32_t channels_per_pixel, std::uint32_t pixels_per_column,
    const std::uint32_t* element_strides, cuda::TensorMapInterleave interleave,
    cuda::TensorMapSwizzle swizzle, cuda::TensorMapL2Promotion,
    cuda::TensorMapOutOfBounds out_of_bounds) {
  return answer([&] {
    TensorMapFields fields = fields_of({type, rank, address, extents, byte_strides, element_strides,
                                        interleave, swizzle, out_of_bounds});
    fields.is_im2col = true;
    fields.channels_per_pixel = channels_per_pixel;
    fields.pixels_per_column = pixels_per_column;
    for (std::uint32_t spatial = 0; spatial + 2 < known_rank(rank); ++spatial) {
      fields.lower_corner[spatial] = lower_corner[spatial];
      fields.upper_corner[spatial] = upper_corner[spatial];
    }
    write_map(map, fields);
  });
}

cuda::Result cuTensorMapReplaceAddress(cuda::TensorMap* map, void* address) {
  return answer([&] {
    TensorMapBytes bytes;
    std::memcpy(bytes.data(), map, sizeof bytes);
    TensorMapFields fields = decode(bytes);
    fields.address = reinterpret_cast<std::uintptr_t>(address);
    write_map(map, fields);
  });
}

}  // namespace calls
}  // namespace gemmery::emulator
