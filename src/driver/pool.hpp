// SPDX-License-Identifier: Apache-2.0
// The stream-ordered memory pool of one GPU, with a limit on its size.
#pragma once

#include <gemmery/buffer.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "driver/cuda_api.hpp"

namespace gemmery::driver {

class GpuDevice;

// Does not call the driver before the first use.
class MemoryPool {
 public:
  explicit MemoryPool(const GpuDevice& device) noexcept : device_(device) {}

  // Allocates in stream order; aligned to at least 256 bytes. Throws Error: out_of_memory beyond
  // the limit or if the driver has no more, unsupported while the stream is being captured.
  void* allocate(std::size_t bytes, Stream stream);

  // Frees in stream order.
  void free(void* pointer, std::size_t bytes, Stream stream) noexcept;

  void configure(const PoolOptions& options);
  PoolStatistics statistics();

 private:
  cuda::MemoryPool handle();
  void reserve(std::uint64_t bytes);
  void count_or_throw(std::size_t bytes);
  std::uint64_t read(cuda::MemPoolAttribute attribute);

  const GpuDevice& device_;
  std::mutex configuring_;
  std::atomic<cuda::MemoryPool> handle_ = nullptr;
  std::atomic<std::uint64_t> given_out_ = 0;
  std::atomic<std::uint64_t> limit_ = 0;
};

}  // namespace gemmery::driver
