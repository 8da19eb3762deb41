// SPDX-License-Identifier: Apache-2.0
// Launches, what is known of kernels, occupancy, libraries.
#include <limits>
#include <vector>

#include "core/thread_value.hpp"
#include "drop_in/runtime/registry.hpp"

namespace gemmery::drop_in::runtime {
namespace {

// --- launches -----------------------------------------------------------------------------------

struct CallConfiguration {
  Extents grid, block;
  std::size_t shared_bytes;
  cuda::Stream stream;
};
// Between <<<>>> and the launch.
std::vector<CallConfiguration>& configurations() {
  return thread_value<std::vector<CallConfiguration>>();
}

bool is_valid(const Extents& grid, const Extents& block) noexcept {
  constexpr std::uint64_t most_threads = 1024;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  const bool has_blocks = grid.x != 0 && grid.y != 0 && grid.z != 0;
  return has_blocks && threads != 0 && threads <= most_threads && grid.x <= 0x7fff'ffff &&
         grid.y <= 65535 && grid.z <= 65535 && block.z <= 64;
}

cuda::LaunchConfig driver_config(const LaunchConfig& config) noexcept {
  return {config.grid.x,
          config.grid.y,
          config.grid.z,
          config.block.x,
          config.block.y,
          config.block.z,
          static_cast<unsigned>(config.shared_bytes),
          config.stream,
          config.attributes,
          config.attribute_count};
}

Error launch(const void* function, const LaunchConfig& config, void** parameters) {
  if (!is_valid(config.grid, config.block)) return note(Error::invalid_configuration);
  if (config.shared_bytes > std::numeric_limits<unsigned>::max()) return note(Error::invalid_value);
  return call([&] {
    cuda::Function found = nullptr;
    const cuda::Result result = find_function(function, found);
    if (result != cuda::Result::success) return result;
    const cuda::LaunchConfig translated = driver_config(config);
    return driver::cuLaunchKernelEx(&translated, found, parameters, nullptr);
  });
}

// --- facts --------------------------------------------------------------------------------------

// Runs a call with the function on the current device.
template <class Call>
Error call_with(const void* function, Call&& driver_call) noexcept {
  return call([&] {
    cuda::Function found = nullptr;
    const cuda::Result result = find_function(function, found);
    return result != cuda::Result::success ? result : driver_call(found);
  });
}

int attribute(cuda::Function function, int number) noexcept {
  int value = 0;
  driver::cuFuncGetAttribute(&value, static_cast<cuda::FunctionAttribute>(number), function);
  return value;
}

FunctionAttributes attributes_of(cuda::Function function) noexcept {
  const auto value = [function](int number) { return attribute(function, number); };
  return {.shared_bytes = static_cast<std::size_t>(value(1)),
          .constant_bytes = static_cast<std::size_t>(value(2)),
          .local_bytes = static_cast<std::size_t>(value(3)),
          .max_threads = value(0),
          .registers = value(4),
          .ptx_version = value(5),
          .binary_version = value(6),
          .cache_mode = value(7),
          .max_dynamic_shared_bytes = value(8),
          .carveout = value(9),
          .cluster_must_be_set = value(10),
          .cluster_width = value(11),
          .cluster_height = value(12),
          .cluster_depth = value(13),
          .cluster_policy = value(15),
          .allows_any_cluster = value(14)};
}

Error give_kernel(cuda::Kernel* kernel, cuda::Result result) noexcept {
  if (result == cuda::Result::success) note_given(*kernel);
  return note(result);
}

}  // namespace

extern "C" {

// --- what nvcc writes for <<<>>> ----------------------------------------------------------------

#define GEMMERY_CALLED_BY_NVCC __attribute__((visibility("default")))

GEMMERY_CALLED_BY_NVCC unsigned __cudaPushCallConfiguration(Extents grid, Extents block,
                                                            std::size_t shared_bytes,
                                                            cuda::Stream stream);
unsigned __cudaPushCallConfiguration(Extents grid, Extents block, std::size_t shared_bytes,
                                     cuda::Stream stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

GEMMERY_CALLED_BY_NVCC Error __cudaPopCallConfiguration(Extents* grid, Extents* block,
                                                        std::size_t* shared_bytes,
                                                        cuda::Stream* stream);
Error __cudaPopCallConfiguration(Extents* grid, Extents* block, std::size_t* shared_bytes,
                                 cuda::Stream* stream) {
  if (configurations().empty()) return note(Error::invalid_configuration);
  const CallConfiguration& last = configurations().back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *stream = last.stream;
  configurations().pop_back();
  return Error::success;
}

// The stand-in itself serves as handle: the kernel is found, or refused, at each launch.
GEMMERY_CALLED_BY_NVCC Error __cudaGetKernel(cuda::Kernel* kernel, const void* function);
Error __cudaGetKernel(cuda::Kernel* kernel, const void* function) {
  *kernel = static_cast<cuda::Kernel>(const_cast<void*>(function));
  return Error::success;
}

GEMMERY_CALLED_BY_NVCC Error __cudaLaunchKernel(cuda::Kernel kernel, Extents grid, Extents block,
                                                void** parameters, std::size_t shared_bytes,
                                                cuda::Stream stream);
Error __cudaLaunchKernel(cuda::Kernel kernel, Extents grid, Extents block, void** parameters,
                         std::size_t shared_bytes, cuda::Stream stream) {
  return cudaLaunchKernel(kernel, grid, block, parameters, shared_bytes, stream);
}

// --- launches -----------------------------------------------------------------------------------

Error cudaLaunchKernel(const void* function, Extents grid, Extents block, void** parameters,
                       std::size_t shared_bytes, cuda::Stream stream) {
  return launch(function, {grid, block, shared_bytes, stream, nullptr, 0}, parameters);
}

Error cudaLaunchKernelExC(const LaunchConfig* config, const void* function, void** parameters) {
  return launch(function, *config, parameters);
}

Error cudaLaunchCooperativeKernel(const void* function, Extents grid, Extents block,
                                  void** parameters, std::size_t shared_bytes,
                                  cuda::Stream stream) {
  cuda::LaunchAttribute attribute{
      .id = cuda::LaunchAttributeId::cooperative, .pad = {}, .value = {}};
  attribute.value.cooperative = 1;
  return launch(function, {grid, block, shared_bytes, stream, &attribute, 1}, parameters);
}

Error cudaLaunchHostFunc(cuda::Stream stream, cuda::HostFunction function, void* data) {
  return call([&] { return driver::cuLaunchHostFunc(stream, function, data); });
}

// --- facts --------------------------------------------------------------------------------------

Error cudaFuncSetCacheConfig(const void* function, int) {
  return call_with(function, [](cuda::Function) { return cuda::Result::success; });
}

Error cudaFuncGetAttributes(FunctionAttributes* attributes, const void* function) {
  return call_with(function, [&](cuda::Function found) {
    *attributes = attributes_of(found);
    return cuda::Result::success;
  });
}

Error cudaFuncSetAttribute(const void* function, cuda::FunctionAttribute which, int value) {
  return call_with(function, [&](cuda::Function found) {
    return driver::cuFuncSetAttribute(found, which, value);
  });
}

Error cudaFuncGetName(const char** name, const void* function) {
  return call_with(function,
                   [&](cuda::Function found) { return driver::cuFuncGetName(name, found); });
}

Error cudaFuncGetParamInfo(const void* function, std::size_t index, std::size_t* offset,
                           std::size_t* bytes) {
  return call_with(function, [&](cuda::Function found) {
    return driver::cuFuncGetParamInfo(found, index, offset, bytes);
  });
}

Error cudaGetFuncBySymbol(cuda::Function* found, const void* function) {
  return call([&] { return find_function(function, *found); });
}

Error cudaGetKernel(cuda::Kernel* kernel, const void* function) {
  const cuda::Result entered = enter();
  return give_kernel(kernel,
                     entered != cuda::Result::success ? entered : find_kernel(function, *kernel));
}

Error cudaKernelSetAttributeForDevice(cuda::Kernel kernel, cuda::FunctionAttribute which, int value,
                                      int device) {
  return call([&] { return driver::cuKernelSetAttribute(which, value, kernel, device); });
}

// --- occupancy ----------------------------------------------------------------------------------

Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                    int block_size, std::size_t shared_bytes) {
  return call_with(function, [&](cuda::Function found) {
    return driver::cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, found, block_size,
                                                               shared_bytes);
  });
}

Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                             int block_size,
                                                             std::size_t shared_bytes, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared_bytes);
}

Error cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, const void* function,
                                                int blocks, int block_size) {
  return call_with(function, [&](cuda::Function found) {
    return driver::cuOccupancyAvailableDynamicSMemPerBlock(bytes, found, blocks, block_size);
  });
}

Error cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                           const LaunchConfig* config) {
  return call_with(function, [&](cuda::Function found) {
    const cuda::LaunchConfig translated = driver_config(*config);
    return driver::cuOccupancyMaxPotentialClusterSize(size, found, &translated);
  });
}

Error cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                     const LaunchConfig* config) {
  return call_with(function, [&](cuda::Function found) {
    const cuda::LaunchConfig translated = driver_config(*config);
    return driver::cuOccupancyMaxActiveClusters(clusters, found, &translated);
  });
}

// --- libraries ----------------------------------------------------------------------------------

Error cudaLibraryLoadData(cuda::Library* library, const void* code, int*, void**, unsigned, int*,
                          void**, unsigned) {
  return call([&] {
    return driver::cuLibraryLoadData(library, code, nullptr, nullptr, 0, nullptr, nullptr, 0);
  });
}

Error cudaLibraryLoadFromFile(cuda::Library* library, const char* file, int*, void**, unsigned,
                              int*, void**, unsigned) {
  return call([&] {
    return driver::cuLibraryLoadFromFile(library, file, nullptr, nullptr, 0, nullptr, nullptr, 0);
  });
}

Error cudaLibraryUnload(cuda::Library library) {
  return call([&] { return driver::cuLibraryUnload(library); });
}

Error cudaLibraryGetKernel(cuda::Kernel* kernel, cuda::Library library, const char* name) {
  return give_kernel(kernel, driver::cuLibraryGetKernel(kernel, library, name));
}

Error cudaLibraryGetGlobal(void** pointer, std::size_t* bytes, cuda::Library library,
                           const char* name) {
  return call([&] {
    cuda::DevicePointer address = 0;
    const cuda::Result result = driver::cuLibraryGetGlobal(&address, bytes, library, name);
    *pointer = host_pointer(address);
    return result;
  });
}

Error cudaLibraryGetManaged(void** pointer, std::size_t* bytes, cuda::Library library,
                            const char* name) {
  return call([&] {
    cuda::DevicePointer address = 0;
    const cuda::Result result = driver::cuLibraryGetManaged(&address, bytes, library, name);
    *pointer = host_pointer(address);
    return result;
  });
}

Error cudaLibraryGetKernelCount(unsigned* count, cuda::Library library) {
  return call([&] { return driver::cuLibraryGetKernelCount(count, library); });
}

Error cudaLibraryEnumerateKernels(cuda::Kernel* kernels, unsigned count, cuda::Library library) {
  const Error error =
      call([&] { return driver::cuLibraryEnumerateKernels(kernels, count, library); });
  for (unsigned index = 0; error == Error::success && index < count; ++index)
    note_given(kernels[index]);
  return error;
}

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
