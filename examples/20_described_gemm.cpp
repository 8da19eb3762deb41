// SPDX-License-Identifier: Apache-2.0
// Specifies one kernel exactly: math instruction, tile, operands, functor. It runs on GPU 0 if
// there is one, else on an emulated A100. Exits with 77 without NVRTC.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <gemmery/describe.hpp>
#include <gemmery/gemmery.hpp>

namespace {

using gemmery::Buffer;
using gemmery::Device;
using gemmery::Stream;

constexpr int skipped = 77;
constexpr std::uint16_t one = 0x3c00;  // float16
constexpr std::uint16_t two = 0x4000;

Device choose_device() {
  const auto devices = gemmery::devices();
  return devices.empty() ? *gemmery::parse_device("emulated:a100") : devices.front();
}

template <class T>
Buffer on_device(const std::vector<T>& values, Stream stream) {
  Buffer buffer(values.size() * sizeof(T), stream);
  copy(buffer.data(), buffer.device(), values.data(), Device::cpu(), buffer.bytes(), stream);
  synchronize(stream);
  return buffer;
}

using namespace gemmery::describe;

GemmOperationUniversal describe_gemm() {
  const MathInstruction math{
      {16, 8, 16}, Element::float16, Element::float16, Element::float32, OpcodeClass::TensorOp};
  const TileDescription tile{{128, 128, 32}, 4, {2, 2, 1}, math};
  const TensorDescription A{Element::float16, Layout::RowMajor, 8};
  const TensorDescription B{Element::float16, Layout::ColumnMajor, 8};
  const TensorDescription C{Element::float32, Layout::RowMajor, 4};
  return GemmOperationUniversal(80, tile, A, B, C, LinearCombination(C.element, C.alignment));
}

void run_gemm(const GemmPointers& memory, Stream stream) {
  const GemmOperationUniversal operation = describe_gemm();
  const GemmArguments arguments(operation, {512, 256, 128}, memory, stream.device(),
                                {.output_op = {.alpha = 1, .beta = 2}});
  operation.run(arguments, stream);
}

bool run(Device device) {
  const gemmery::OwnedStream stream(device);
  const Buffer a = on_device(std::vector<std::uint16_t>(512 * 128, one), stream);
  const Buffer b = on_device(std::vector<std::uint16_t>(128 * 256, two), stream);
  std::vector<float> result(512 * 256, 3.0F);
  const Buffer d = on_device(result, stream);
  run_gemm({{a.data()}, {b.data()}, {d.data()}, {d.data()}}, stream);  // C may be exactly D
  copy(result.data(), Device::cpu(), d.data(), device, d.bytes(), stream);
  synchronize(stream);
  const float expected = 128 * 2 + 2 * 3;
  const GemmOperationUniversal operation = describe_gemm();
  std::printf("%s\n%s\nD[0] = %g, expected %g\n", operation.name().c_str(),
              to_string(operation.description()).c_str(), static_cast<double>(result[0]),
              static_cast<double>(expected));
  return result.front() == expected && result.back() == expected;
}

}  // namespace

int main() {
  try {
    return run(choose_device()) ? 0 : 1;
  } catch (const gemmery::Error& error) {
    std::printf("%s\n", error.what());
    return error.kind() == gemmery::ErrorKind::unavailable ? skipped : 1;
  }
}
