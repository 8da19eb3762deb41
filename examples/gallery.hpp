// SPDX-License-Identifier: Apache-2.0
// Shared by the programs of the gallery (11 to 15, 23): the choice of a device, matrices in its
// memory, and a count of elements that differ from a plain loop.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace gallery {

// The device of the command line ("cpu", "cuda:1", "emulated:h200"), else the first GPU, else the
// CPU.
inline gemmery::Device choose_device(int count, char** words) {
  if (count > 1) {
    if (const auto device = gemmery::parse_device(words[1])) return *device;
    std::fprintf(stderr, "no device is called %s\n", words[1]);
    std::exit(2);
  }
  const auto devices = gemmery::devices();
  return devices.empty() ? gemmery::Device::cpu() : devices.front();
}

// bfloat16 is the upper half of a float; the lower half of the numbers used here is 0.
inline std::uint16_t to_bfloat16(float x) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}
inline float from_bfloat16(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

// A packed tensor on a stream's device, and its encoded elements on the host.
template <class Element>
class Memory {
 public:
  Memory(gemmery::DType dtype, std::vector<std::int64_t> shape, gemmery::Stream stream)
      : dtype_(dtype), shape_(std::move(shape)), stream_(stream) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape_) count *= static_cast<std::size_t>(extent);
    values_.resize(count);
    buffer_ = gemmery::Buffer(count * sizeof(Element), stream);
  }

  // Element `index` becomes make(index).
  template <class Make>
  void fill(Make make) {
    for (std::size_t index = 0; index < values_.size(); ++index) values_[index] = make(index);
    copy(buffer_.data(), buffer_.device(), values_.data(), gemmery::Device::cpu(), buffer_.bytes(),
         stream_);
    synchronize(stream_);
  }

  // Copies the device's memory to the host.
  const std::vector<Element>& read() {
    copy(values_.data(), gemmery::Device::cpu(), buffer_.data(), buffer_.device(), buffer_.bytes(),
         stream_);
    synchronize(stream_);
    return values_;
  }

  const Element& operator[](std::size_t index) const { return values_[index]; }
  gemmery::Tensor view() const { return {buffer_.data(), dtype_, shape_, buffer_.device()}; }

 private:
  gemmery::DType dtype_;
  std::vector<std::int64_t> shape_;
  gemmery::Stream stream_;
  std::vector<Element> values_;
  gemmery::Buffer buffer_;
};

// Runs the first kernel that discovery offers.
inline void run(const gemmery::GemmArguments& arguments, gemmery::Stream stream) {
  const gemmery::Kernel kernel = gemmery::get_kernels(arguments).front();
  std::printf("%s\n  by %s on %s\n", to_string(arguments.problem()).c_str(), kernel.name().c_str(),
              to_string(arguments.device()).c_str());
  kernel.run(arguments, {.stream = stream});
}

inline bool differs(double got, double want, double relative_error, double absolute_error = 0) {
  return !(std::fabs(got - want) <= relative_error * std::fabs(want) + absolute_error);
}

// Prints the count; returns the exit status of main.
inline int report(int differences) {
  std::printf("%d values differ from those of plain loops\n", differences);
  return differences == 0 ? 0 : 1;
}

}  // namespace gallery
