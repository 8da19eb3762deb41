// SPDX-License-Identifier: Apache-2.0
// Creates and configures the pool at the first use, and counts allocations against its limit.
#include "driver/pool.hpp"

#include <algorithm>

#include "driver/driver.hpp"
#include "driver/stream.hpp"

namespace gemmery::driver {
namespace {

void set(const DriverApi& api, cuda::MemoryPool pool, cuda::MemPoolAttribute attribute,
         std::uint64_t value) {
  check(api, api.cuMemPoolSetAttribute(pool, attribute, &value), "cuMemPoolSetAttribute");
}

void refuse_capture(const GpuDevice& device, Stream stream) {
  if (!is_capturing(device, stream)) return;
  throw Error(
      {.kind = ErrorKind::unsupported,
       .operand = "stream",
       .expected = "a stream that is not being captured while memory is taken from the pool",
       .got = "one that is",
       .hint = "allocate before the capture begins; `bind` reserves what a kernel needs"});
}

// Drivers report various errors for sizes beyond the device's memory.
void refuse_more_than_memory(const GpuDevice& device, std::size_t bytes) {
  const auto memory_bytes = static_cast<std::size_t>(device.info().memory_bytes);
  if (bytes <= memory_bytes) return;
  throw Error({.kind = ErrorKind::out_of_memory,
               .operand = "memory of " + to_string(device.device()),
               .expected = "at most its " + std::to_string(memory_bytes) + " bytes",
               .got = std::to_string(bytes)});
}

}  // namespace

void* MemoryPool::allocate(std::size_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  refuse_more_than_memory(device_, bytes);
  refuse_capture(device_, stream);
  const cuda::MemoryPool pool = handle();
  count_or_throw(bytes);
  const ScopedContext current(device_);
  const ScopedRelaxedCapture relaxed(device_.api());
  cuda::DevicePointer pointer = 0;
  const cuda::Result result =
      device_.api().cuMemAllocFromPoolAsync(&pointer, bytes, pool, stream_handle(stream));
  if (result != cuda::Result::success) {
    given_out_.fetch_sub(bytes, std::memory_order_relaxed);
    throw_driver_error(device_.api(), result,
                       "cuMemAllocFromPoolAsync of " + std::to_string(bytes) + " bytes");
  }
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}

void MemoryPool::free(void* pointer, std::size_t bytes, Stream stream) noexcept {
  if (pointer == nullptr || is_forked_after_use()) return;
  // Errors are ignored, since a destructor cannot report them; most likely the process is ending.
  cuda::Context before = nullptr;
  const DriverApi& api = device_.api();
  if (api.cuCtxGetCurrent(&before) != cuda::Result::success) return;
  const bool must_push = before != device_.context();
  if (must_push && api.cuCtxPushCurrent(device_.context()) != cuda::Result::success) return;
  {
    const ScopedRelaxedCapture relaxed(api);
    api.cuMemFreeAsync(device_pointer(pointer), stream_handle(stream));
  }
  if (must_push) api.cuCtxPopCurrent(&before);
  given_out_.fetch_sub(bytes, std::memory_order_relaxed);
}

void MemoryPool::configure(const PoolOptions& options) {
  if (options.limit_bytes != 0 && options.initial_bytes > options.limit_bytes) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "initial_bytes",
                 .expected = "at most limit_bytes = " + std::to_string(options.limit_bytes),
                 .got = std::to_string(options.initial_bytes)});
  }
  const cuda::MemoryPool pool = handle();
  const std::lock_guard lock(configuring_);
  limit_.store(options.limit_bytes, std::memory_order_relaxed);
  std::uint64_t keep = std::max(options.keep_bytes, options.initial_bytes);
  if (options.limit_bytes != 0) keep = std::min(keep, options.limit_bytes);
  set(device_.api(), pool, cuda::MemPoolAttribute::release_threshold, keep);
  reserve(options.initial_bytes);
}

// Allocates and frees one block, after which the pool holds that much memory.
void MemoryPool::reserve(std::uint64_t bytes) {
  if (bytes == 0) return;
  const Stream stream = device_.housekeeping_stream();
  const ScopedContext current(device_);
  const ScopedRelaxedCapture relaxed(device_.api());
  const DriverApi& api = device_.api();
  cuda::DevicePointer block = 0;
  check(api, api.cuMemAllocFromPoolAsync(&block, bytes, handle(), stream_handle(stream)),
        "cuMemAllocFromPoolAsync");
  check(api, api.cuMemFreeAsync(block, stream_handle(stream)), "cuMemFreeAsync");
  check(api, api.cuStreamSynchronize(stream_handle(stream)), "cuStreamSynchronize");
}

PoolStatistics MemoryPool::statistics() {
  return {.reserved_bytes = read(cuda::MemPoolAttribute::reserved_bytes),
          .reserved_peak_bytes = read(cuda::MemPoolAttribute::reserved_peak_bytes),
          .used_bytes = read(cuda::MemPoolAttribute::used_bytes),
          .used_peak_bytes = read(cuda::MemPoolAttribute::used_peak_bytes),
          .limit_bytes = limit_.load(std::memory_order_relaxed)};
}

std::uint64_t MemoryPool::read(cuda::MemPoolAttribute attribute) {
  std::uint64_t value = 0;
  check(device_.api(), device_.api().cuMemPoolGetAttribute(handle(), attribute, &value),
        "cuMemPoolGetAttribute");
  return value;
}

cuda::MemoryPool MemoryPool::handle() {
  if (const cuda::MemoryPool pool = handle_.load(std::memory_order_acquire)) return pool;
  const std::lock_guard lock(configuring_);
  if (const cuda::MemoryPool pool = handle_.load(std::memory_order_acquire)) return pool;
  const ScopedContext current(device_);
  const ScopedRelaxedCapture relaxed(device_.api());
  cuda::MemPoolProps properties;
  properties.location.id = device_.ordinal();
  cuda::MemoryPool pool = nullptr;
  check(device_.api(), device_.api().cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
  set(device_.api(), pool, cuda::MemPoolAttribute::release_threshold, PoolOptions{}.keep_bytes);
  handle_.store(pool, std::memory_order_release);
  return pool;
}

// The limit is on allocated memory. The driver may hold more while freed memory waits for its
// stream.
void MemoryPool::count_or_throw(std::size_t bytes) {
  const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
  const std::uint64_t before = given_out_.fetch_add(bytes, std::memory_order_relaxed);
  if (limit == 0 || (bytes <= limit && before <= limit - bytes)) return;
  given_out_.fetch_sub(bytes, std::memory_order_relaxed);
  throw Error({.kind = ErrorKind::out_of_memory,
               .operand = "memory pool of " + to_string(device_.device()),
               .expected = "at most " + std::to_string(limit) + " bytes allocated, its limit",
               .got = std::to_string(before) + " allocated and " + std::to_string(bytes) +
                      " more requested",
               .hint = "raise limit_bytes by configure_pool"});
}

}  // namespace gemmery::driver
