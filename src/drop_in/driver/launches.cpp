// SPDX-License-Identifier: Apache-2.0
// Launches of kernels and of host functions, and occupancy.
#include <algorithm>

#include <fmt/format.h>

#include "drop_in/driver/code.hpp"
#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/limits.hpp"
#include "drop_in/driver/state.hpp"
#include "drop_in/driver/tasks.hpp"

namespace gemmery::drop_in {
namespace {

// --- launches -----------------------------------------------------------------------------------

// The values of parameters that were given in one buffer (`extra`): where each one lies.
class ParameterList {
 public:
  ParameterList(const emulator::KernelImage& image, void** parameters, void** extra)
      : parameters_(parameters) {
    if (parameters != nullptr || extra == nullptr) return;
    auto* const buffer = static_cast<std::byte*>(find(extra));
    for (const std::uint32_t offset : image.parameter_offset) places_.push_back(buffer + offset);
    parameters_ = places_.data();
  }
  void** get() const noexcept { return parameters_; }

 private:
  static void* find(void** extra) {
    const auto end = [](const void* word) { return word == nullptr; };
    constexpr std::uintptr_t buffer_pointer = 1;  // CU_LAUNCH_PARAM_BUFFER_POINTER
    for (; !end(*extra); extra += 2) {
      if (reinterpret_cast<std::uintptr_t>(*extra) == buffer_pointer) return extra[1];
    }
    throw Refusal{cuda::Result::invalid_value, "`extra` has no buffer"};
  }

  std::vector<void*> places_;
  void** parameters_;
};

bool is_cooperative(const cuda::LaunchConfig& config) {
  return std::any_of(config.attributes, config.attributes + config.attribute_count,
                     [](const cuda::LaunchAttribute& attribute) {
                       return attribute.id == cuda::LaunchAttributeId::cooperative &&
                              attribute.value.cooperative != 0;
                     });
}

void check_cooperative(const cuda::LaunchConfig& config, const cuda::FunctionHandle& function) {
  const DeviceInfo& device = function.device->info;
  const std::int64_t held =
      std::int64_t{device.multiprocessors} *
      active_blocks(device, *function.image,
                    static_cast<int>(config.block_x * config.block_y * config.block_z),
                    config.shared_bytes);
  const std::int64_t blocks = std::int64_t{config.grid_x} * config.grid_y * config.grid_z;
  if (blocks <= held) return;
  throw Refusal{cuda::Result::cooperative_launch_too_large,
                fmt::format("a cooperative launch of {} blocks: the device holds {} at a time",
                            blocks, held)};
}

void launch(const cuda::LaunchConfig& config, cuda::Function handle, void** parameters,
            void** extra) {
  cuda::FunctionHandle& function = function_of(handle);
  if (is_cooperative(config)) check_cooperative(config, function);
  const ParameterList list(*function.image, parameters, extra);
  emulator::put(config.stream, emulator::kernel_task(config, function, list.get()));
}

// --- occupancy ----------------------------------------------------------------------------------

int blocks_of(cuda::Function handle, int block_size, std::size_t shared_bytes) {
  const cuda::FunctionHandle& function = function_of(handle);
  return active_blocks(function.device->info, *function.image, block_size, shared_bytes);
}

// The largest block with which the multiprocessor holds most threads.
int best_block_size(cuda::Function handle, std::size_t (*shared_bytes_of)(int),
                    std::size_t shared_bytes, int limit) {
  const int most = most_threads_of(*function_of(handle).image);
  int best = 0;
  int best_threads = 0;
  for (int size = limit > 0 ? std::min(limit, most) : most; size > 0; size = (size - 1) / 32 * 32) {
    const std::size_t bytes = shared_bytes_of == nullptr ? shared_bytes : shared_bytes_of(size);
    const int threads = size * blocks_of(handle, size, bytes);
    if (threads <= best_threads) continue;
    best = size;
    best_threads = threads;
  }
  return best;
}

std::size_t available_shared_bytes(cuda::Function handle, int blocks, int block_size) {
  const cuda::FunctionHandle& function = function_of(handle);
  const DeviceInfo& device = function.device->info;
  if (blocks < 1 || blocks_of(handle, block_size, 0) < blocks) return 0;
  const std::int64_t share = device.shared_bytes_per_multiprocessor / blocks / 128 * 128;
  const std::int64_t room =
      std::min<std::int64_t>(share - reserved_shared_bytes, device.shared_bytes_per_block) -
      function.image->static_shared_bytes;
  return static_cast<std::size_t>(std::max<std::int64_t>(room, 0));
}

int cluster_blocks(const cuda::LaunchConfig& config) {
  for (unsigned index = 0; index < config.attribute_count; ++index) {
    const cuda::LaunchAttribute& attribute = config.attributes[index];
    if (attribute.id != cuda::LaunchAttributeId::cluster_dimension) continue;
    const auto& size = attribute.value.cluster_dimension;
    return static_cast<int>(size.x * size.y * size.z);
  }
  return 1;
}

int held_blocks(cuda::Function function, const cuda::LaunchConfig& config) {
  return blocks_of(function, static_cast<int>(config.block_x * config.block_y * config.block_z),
                   config.shared_bytes) *
         emulator::current_device().info.multiprocessors;
}

}  // namespace

emulator::Task host_task(const cuda::HostNodeParams& parameters) {
  if (parameters.function == nullptr) throw Refusal{cuda::Result::invalid_value, {}};
  emulator::Task task{emulator::NodeKind::host_call,
                      [parameters] { parameters.function(parameters.data); }, parameters};
  task.holds_device = false;
  return task;
}

emulator::Task kernel_task(const cuda::KernelNodeParams& node) {
  const cuda::Function handle =
      node.function != nullptr ? node.function : reinterpret_cast<cuda::Function>(node.kernel);
  cuda::FunctionHandle& function = function_of(handle);
  const ParameterList list(*function.image, node.parameters, node.extra);
  const cuda::LaunchConfig config{
      node.grid_x,  node.grid_y,       node.grid_z, node.block_x, node.block_y,
      node.block_z, node.shared_bytes, nullptr,     nullptr,      0};
  return emulator::kernel_task(config, function, list.get());
}

}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer;
using drop_in::answer_on_device;
using drop_in::require;

extern "C" {

// --- launches -----------------------------------------------------------------------------------

cuda::Result cuLaunchKernelEx(const cuda::LaunchConfig* config, cuda::Function function,
                              void** parameters, void** extra) {
  return answer_on_device("cuLaunchKernelEx",
                          [&] { drop_in::launch(require(config), function, parameters, extra); });
}

cuda::Result cuLaunchKernel(cuda::Function function, unsigned grid_x, unsigned grid_y,
                            unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, cuda::Stream stream, void** parameters,
                            void** extra) {
  const cuda::LaunchConfig config{grid_x,  grid_y,       grid_z, block_x, block_y,
                                  block_z, shared_bytes, stream, nullptr, 0};
  return answer_on_device("cuLaunchKernel",
                          [&] { drop_in::launch(config, function, parameters, extra); });
}

cuda::Result cuLaunchCooperativeKernel(cuda::Function function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared_bytes, cuda::Stream stream,
                                       void** parameters) {
  cuda::LaunchAttribute attribute{
      .id = cuda::LaunchAttributeId::cooperative, .pad = {}, .value = {}};
  attribute.value.cooperative = 1;
  const cuda::LaunchConfig config{grid_x,  grid_y,       grid_z, block_x,    block_y,
                                  block_z, shared_bytes, stream, &attribute, 1};
  return answer_on_device("cuLaunchCooperativeKernel",
                          [&] { drop_in::launch(config, function, parameters, nullptr); });
}

cuda::Result cuLaunchHostFunc(cuda::Stream stream, cuda::HostFunction function, void* data) {
  return answer_on_device("cuLaunchHostFunc", [&] {
    emulator::put(stream, drop_in::host_task({function, data}));
  });
}

cuda::Result cuStreamAddCallback(cuda::Stream stream, cuda::StreamCallback callback, void* data,
                                 unsigned) {
  return answer_on_device("cuStreamAddCallback", [&] {
    emulator::Task task{emulator::NodeKind::host_call,
                        [=] { callback(stream, cuda::Result::success, data); }};
    task.holds_device = false;
    emulator::put(stream, std::move(task));
  });
}

// --- occupancy ----------------------------------------------------------------------------------

cuda::Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, cuda::Function function,
                                                         int block_size, std::size_t shared_bytes) {
  return answer("cuOccupancyMaxActiveBlocksPerMultiprocessor",
                [&] { require(blocks) = drop_in::blocks_of(function, block_size, shared_bytes); });
}

cuda::Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, cuda::Function function, int block_size, std::size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared_bytes);
}

cuda::Result cuOccupancyMaxPotentialBlockSize(int* least_grid, int* block_size,
                                              cuda::Function function,
                                              std::size_t (*shared_bytes_of)(int),
                                              std::size_t shared_bytes, int limit) {
  return answer("cuOccupancyMaxPotentialBlockSize", [&] {
    const int size = drop_in::best_block_size(function, shared_bytes_of, shared_bytes, limit);
    const std::size_t bytes = shared_bytes_of == nullptr ? shared_bytes : shared_bytes_of(size);
    require(block_size) = size;
    require(least_grid) =
        drop_in::blocks_of(function, size, bytes) * emulator::current_device().info.multiprocessors;
  });
}

cuda::Result cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, cuda::Function function,
                                                     int blocks, int block_size) {
  return answer("cuOccupancyAvailableDynamicSMemPerBlock", [&] {
    require(bytes) = drop_in::available_shared_bytes(function, blocks, block_size);
  });
}

cuda::Result cuOccupancyMaxActiveClusters(int* clusters, cuda::Function function,
                                          const cuda::LaunchConfig* config) {
  return answer("cuOccupancyMaxActiveClusters", [&] {
    require(clusters) =
        drop_in::held_blocks(function, require(config)) / drop_in::cluster_blocks(*config);
  });
}

cuda::Result cuOccupancyMaxPotentialClusterSize(int* size, cuda::Function function,
                                                const cuda::LaunchConfig*) {
  return answer("cuOccupancyMaxPotentialClusterSize", [&] {
    const bool allows_any = drop_in::function_of(function).allows_any_cluster;
    require(size) = allows_any ? 16 : 8;
  });
}

}  // extern "C"
}  // namespace gemmery::driver
