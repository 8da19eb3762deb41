// SPDX-License-Identifier: Apache-2.0
// Memory and streams for programs without a framework that provides them: buffers from a pool,
// copies, streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <gemmery/device.hpp>
#include <gemmery/export.hpp>
#include <gemmery/stream.hpp>

namespace gemmery {

namespace driver {
class ScopedRelaxedCapture;
}

// Owns bytes on a device (from our stream-ordered pool there) or on the CPU (aligned to 256 bytes).
// Move only. The contents are not initialised.
class GEMMERY_API Buffer {
 public:
  Buffer() noexcept = default;
  // Throws Error: out_of_memory, unavailable if the device is missing. Allocated in the order of
  // `stream`, whose device is the buffer's.
  Buffer(std::size_t bytes, Stream stream);
  ~Buffer();  // freed in the order of the stream it was allocated on
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  void* stream_ = nullptr;
};

// Copies between any two devices, in the order of the stream (of the GPU involved); host memory
// must stay unchanged until the stream has been synchronised. `fill` sets every byte to one value,
// in the same order.
GEMMERY_API void copy(void* destination, Device to, const void* source, Device from,
                      std::size_t bytes, Stream stream);
GEMMERY_API void fill(void* destination, std::uint8_t value, std::size_t bytes, Stream stream);

// Waits until everything on the stream is done; throws Error (launch) with the driver's message if
// any of it failed.
GEMMERY_API void synchronize(Stream stream);

// True if the stream is being captured: work on it is recorded into a graph instead of run. False
// on the CPU. The legacy default stream also counts as captured while another stream's capture
// forbids its use. The query does not invalidate a capture.
GEMMERY_API bool is_capturing(Stream stream);

// While an object of this class exists, its thread may allocate memory and load code on a GPU
// although other streams of the process are being captured; those captures stay valid. Work on a
// captured stream, and waits for one, remain subject to the rules of capture. No effect on the CPU.
class GEMMERY_API BesideCaptures {
 public:
  explicit BesideCaptures(Device device);
  ~BesideCaptures();
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  std::unique_ptr<driver::ScopedRelaxedCapture> relaxed_;
};

// A stream that the object owns and destroys.
class GEMMERY_API OwnedStream {
 public:
  explicit OwnedStream(Device device);
  ~OwnedStream();
  OwnedStream(OwnedStream&& other) noexcept;
  OwnedStream& operator=(OwnedStream&& other) noexcept;

  Stream get() const noexcept { return stream_; }
  operator Stream() const noexcept { return stream_; }

 private:
  Stream stream_;
};

// The memory that the pool of a device has reserved, and the memory that is allocated from it.
struct PoolStatistics {
  std::uint64_t reserved_bytes = 0;  // reserved from the driver now
  std::uint64_t reserved_peak_bytes = 0;
  std::uint64_t used_bytes = 0;  // allocated from the pool now
  std::uint64_t used_peak_bytes = 0;
  std::uint64_t limit_bytes = 0;  // 0 = none
};

struct PoolOptions {
  std::uint64_t initial_bytes = 0;        // reserved at once
  std::uint64_t limit_bytes = 0;          // an allocation beyond it throws out_of_memory; 0 = none
  std::uint64_t keep_bytes = UINT64_MAX;  // not returned to the driver at synchronisation
};

// Configures the pool of a GPU, before its first use, or later to change limit and keep. Throws
// Error (invalid_argument) if initial_bytes exceeds the limit.
GEMMERY_API void configure_pool(Device device, const PoolOptions& options);
GEMMERY_API PoolStatistics pool_statistics(Device device);

}  // namespace gemmery
