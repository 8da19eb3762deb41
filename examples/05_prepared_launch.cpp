// SPDX-License-Identifier: Apache-2.0
// A prepared launch: compile once, pack once, then launch again and again with other memory. On GPU
// 0 if there is one, else on the CPU.
#include <cstdio>
#include <iostream>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

using gemmery::Buffer;
using gemmery::Device;
using gemmery::DType;
using gemmery::Stream;
using gemmery::Tensor;

constexpr std::int64_t size = 64;
constexpr std::size_t bytes = size * size * sizeof(float);

Device choose_device() {
  const auto devices = gemmery::devices();
  if (!devices.empty()) return devices.front();
  std::printf("no GPU here: running on the CPU\n");
  return Device::cpu();
}

Buffer filled(float value, Stream stream) {
  const std::vector<float> values(size * size, value);
  Buffer buffer(bytes, stream);
  copy(buffer.data(), buffer.device(), values.data(), Device::cpu(), bytes, stream);
  synchronize(stream);  // `values` must live until it has been read
  return buffer;
}

float first_element(const Buffer& buffer, Stream stream) {
  float value = 0;
  copy(&value, Device::cpu(), buffer.data(), buffer.device(), sizeof value, stream);
  synchronize(stream);
  return value;
}

Tensor matrix(const Buffer& buffer) {
  return {buffer.data(), DType::float32, {size, size}, buffer.device()};
}

}  // namespace

int main() {
  const gemmery::OwnedStream stream(choose_device());
  const Buffer a = filled(1, stream);
  const Buffer b = filled(2, stream);
  const Buffer other_b = filled(3, stream);
  const Buffer out = filled(0, stream);

  const gemmery::GemmArguments arguments(matrix(a), matrix(b), matrix(out));
  const gemmery::Kernel kernel = gemmery::get_kernels(arguments).front();
  const gemmery::Artifact artifact = kernel.compile(arguments);  // also loads it on the device
  gemmery::PreparedLaunch launch = artifact.bind(arguments, stream);

  launch.launch();  // on the stream that it was bound with; launch(other) takes another
  const float first = first_element(out, stream);
  launch.set_data("B", other_b.data());
  launch.launch();
  const float second = first_element(out, stream);

  std::cout << kernel << " on " << arguments.device() << ": " << first << ", expected 128; then "
            << second << ", expected 192\n";
  return first == 128 && second == 192 ? 0 : 1;
}
