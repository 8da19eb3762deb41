// SPDX-License-Identifier: Apache-2.0
// Implements <gemmery/buffer.hpp> by the C library for the CPU, and by the driver for GPUs. Buffers
// of the CPU do not use CUDA.
#include <gemmery/buffer.hpp>
#include <gemmery/error.hpp>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "driver/driver.hpp"
#include "driver/pool.hpp"
#include "driver/stream.hpp"

namespace gemmery {
namespace {

constexpr std::size_t cpu_alignment = 256;
constexpr std::size_t address_space_bytes =
    std::size_t{1} << 48;  // more than any process has; sanitizers abort on larger requests

void* allocate_on_cpu(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const bool is_representable = bytes < address_space_bytes;
  const std::size_t rounded = (bytes + cpu_alignment - 1) / cpu_alignment * cpu_alignment;
  void* const memory = is_representable ? std::aligned_alloc(cpu_alignment, rounded) : nullptr;
  if (memory == nullptr) {
    throw Error({.kind = ErrorKind::out_of_memory,
                 .operand = "Buffer",
                 .expected = std::to_string(bytes) + " bytes on the CPU",
                 .got = "no memory"});
  }
  return memory;
}

void check_pointer(const char* operand, const void* pointer, std::size_t bytes) {
  if (pointer != nullptr || bytes == 0) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = operand,
               .expected = "memory",
               .got = "a null pointer"});
}

[[noreturn]] void refuse_stream(std::string expected, Stream stream) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "stream",
               .expected = std::move(expected),
               .got = "a stream of " + to_string(stream.device())});
}

// The GPU side of a copy that is not within the CPU.
struct GpuCopy {
  void* destination;
  Device to;
  const void* source;
  Device from;
  std::size_t bytes;
  Stream stream;
};

driver::cuda::Result put_copy(const driver::GpuDevice& device, const GpuCopy& copy) {
  const driver::DriverApi& api = device.api();
  const driver::cuda::Stream stream = driver::stream_handle(copy.stream);
  const driver::cuda::DevicePointer to = driver::device_pointer(copy.destination);
  const driver::cuda::DevicePointer from = driver::device_pointer(copy.source);
  if (copy.from.is_cpu()) return api.cuMemcpyHtoDAsync(to, copy.source, copy.bytes, stream);
  if (copy.to.is_cpu()) return api.cuMemcpyDtoHAsync(copy.destination, from, copy.bytes, stream);
  if (copy.from == copy.to) return api.cuMemcpyDtoDAsync(to, from, copy.bytes, stream);
  return api.cuMemcpyPeerAsync(to, driver::open_device(copy.to).context(), from,
                               driver::open_device(copy.from).context(), copy.bytes, stream);
}

}  // namespace

// --- Buffer -------------------------------------------------------------------------------------

Buffer::Buffer(std::size_t bytes, Stream stream)
    : bytes_(bytes), device_(stream.device()), stream_(stream.handle()) {
  data_ = device_.is_cpu() ? allocate_on_cpu(bytes)
                           : driver::open_device(device_).pool().allocate(bytes, stream);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  if (device_.is_cpu()) {
    std::free(data_);
  } else if (!driver::is_forked_after_use()) {
    driver::open_device(device_).pool().free(data_, bytes_, Stream::of(stream_, device_));
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      device_(other.device_),
      stream_(other.stream_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  std::swap(stream_, other.stream_);
  return *this;
}

// --- copies -------------------------------------------------------------------------------------

void copy(void* destination, Device to, const void* source, Device from, std::size_t bytes,
          Stream stream) {
  const bool takes_part = stream.device() == to || stream.device() == from;
  if (to.is_cpu() && from.is_cpu()) {
    if (!stream.device().is_cpu()) refuse_stream("the CPU's, for a copy within its memory", stream);
  } else if (stream.device().is_cpu() || !takes_part) {
    refuse_stream("one of a GPU that takes part (" + to_string(from) + " to " + to_string(to) + ")",
                  stream);
  }
  check_pointer("destination", destination, bytes);
  check_pointer("source", source, bytes);
  if (bytes == 0) return;
  if (stream.device().is_cpu()) {
    std::memcpy(destination, source, bytes);
    return;
  }
  const driver::GpuDevice& device = driver::open_device(stream.device());
  const driver::ScopedContext current(device);
  driver::check_on_stream(device.api(),
                          put_copy(device, {destination, to, source, from, bytes, stream}), "copy",
                          stream);
}

void fill(void* destination, std::uint8_t value, std::size_t bytes, Stream stream) {
  check_pointer("destination", destination, bytes);
  if (bytes == 0) return;
  if (stream.device().is_cpu()) {
    std::memset(destination, value, bytes);
    return;
  }
  const driver::GpuDevice& device = driver::open_device(stream.device());
  const driver::ScopedContext current(device);
  driver::check_on_stream(device.api(),
                          device.api().cuMemsetD8Async(driver::device_pointer(destination), value,
                                                       bytes, driver::stream_handle(stream)),
                          "cuMemsetD8Async", stream);
}

void synchronize(Stream stream) {
  if (stream.device().is_cpu()) return;
  const driver::GpuDevice& device = driver::open_device(stream.device());
  const driver::ScopedContext current(device);
  driver::check_on_stream(device.api(),
                          device.api().cuStreamSynchronize(driver::stream_handle(stream)),
                          "cuStreamSynchronize", stream);
}

// --- captures -----------------------------------------------------------------------------------

bool is_capturing(Stream stream) {
  return !stream.device().is_cpu() &&
         driver::is_capturing(driver::open_device(stream.device()), stream);
}

BesideCaptures::BesideCaptures(Device device) {
  if (device.is_cpu()) return;
  const driver::DriverApi& api = driver::open_device(device).api();
  relaxed_ = std::make_unique<driver::ScopedRelaxedCapture>(api);
}

BesideCaptures::~BesideCaptures() = default;

// --- streams ------------------------------------------------------------------------------------

OwnedStream::OwnedStream(Device device) : stream_(Stream::of(nullptr, device)) {
  if (device.is_cpu()) return;
  const driver::GpuDevice& gpu = driver::open_device(device);
  const driver::ScopedContext current(gpu);
  driver::cuda::Stream handle = nullptr;
  driver::check(gpu.api(), gpu.api().cuStreamCreate(&handle, driver::cuda::stream_non_blocking),
                "cuStreamCreate");
  stream_ = Stream::of(handle, device);
}

OwnedStream::~OwnedStream() {
  if (stream_.handle() == nullptr || driver::is_forked_after_use()) return;
  driver::open_device(stream_.device()).api().cuStreamDestroy(driver::stream_handle(stream_));
}

OwnedStream::OwnedStream(OwnedStream&& other) noexcept : stream_(other.stream_) {
  other.stream_ = Stream::of(nullptr, other.stream_.device());
}

OwnedStream& OwnedStream::operator=(OwnedStream&& other) noexcept {
  std::swap(stream_, other.stream_);
  return *this;
}

// --- the pool -----------------------------------------------------------------------------------

void configure_pool(Device device, const PoolOptions& options) {
  driver::open_device(device).pool().configure(options);
}

PoolStatistics pool_statistics(Device device) {
  return driver::open_device(device).pool().statistics();
}

}  // namespace gemmery
