// SPDX-License-Identifier: Apache-2.0
// A described kernel with split k: float32 by three products of TF32 leaves partial sums in memory,
// and a reduction adds them and applies an activation. It runs on GPU 0 if there is one, else on an
// emulated A100. Exits with 77 without NVRTC.
#include <cstdio>
#include <vector>

#include <gemmery/describe.hpp>
#include <gemmery/gemmery.hpp>

namespace {

using gemmery::Buffer;
using gemmery::Device;
using gemmery::Stream;
using namespace gemmery::describe;

constexpr int skipped = 77;
constexpr GemmCoord size{64, 64, 1024};

Device choose_device() {
  const auto devices = gemmery::devices();
  return devices.empty() ? *gemmery::parse_device("emulated:a100") : devices.front();
}

Buffer filled(std::int64_t count, float value, Stream stream) {
  const std::vector<float> values(static_cast<std::size_t>(count), value);
  Buffer buffer(values.size() * sizeof(float), stream);
  copy(buffer.data(), buffer.device(), values.data(), Device::cpu(), buffer.bytes(), stream);
  synchronize(stream);
  return buffer;
}

GemmOperationUniversal describe_product() {
  const MathInstruction math{
      {16, 8, 8},       Element::float32,      Element::float32,
      Element::float32, OpcodeClass::TensorOp, MathOperation::multiply_add_fast_f32};
  const TensorDescription row_major{Element::float32, Layout::RowMajor, 4};
  return GemmOperationUniversal(80, {{64, 64, 32}, 3, {2, 2, 1}, math}, row_major, row_major,
                                row_major, LinearCombination(Element::float32, 4));
}

ReductionOperation describe_reduction() {
  using gemmery::epilogue::Activation;
  return ReductionOperation(
      {.C = {Element::float32, Layout::RowMajor, 4},
       .element_accumulator = Element::float32,
       .element_compute = Element::float32,
       .epilogue_functor = LinearCombinationGeneric(Activation::relu, Element::float32, 4),
       .count = 4});
}

bool run(Device device) {
  const gemmery::OwnedStream stream(device);
  const Buffer a = filled(size.m * size.k, 0.5F, stream);
  const Buffer b = filled(size.k * size.n, -2, stream);
  const Buffer c = filled(size.m * size.n, 1025, stream);
  const Buffer d = filled(size.m * size.n, -1, stream);

  const GemmOperationUniversal operation = describe_product();
  const GemmArguments arguments(operation, size, {{a.data()}, {b.data()}, {}, {d.data()}}, device,
                                {.gemm_mode = Mode::GemmSplitKParallel, .split_k_slices = 4});
  const Partials partials = arguments.partials();  // from now on the caller adds them
  operation.run(arguments, stream);

  const ReductionOperation reduction = describe_reduction();
  reduction.run(
      ReductionArguments(reduction, partials, d.data(), c.data(), reduction.epilogue_type(1, 1)),
      stream);

  std::vector<float> result(static_cast<std::size_t>(size.m * size.n));
  copy(result.data(), Device::cpu(), d.data(), device, d.bytes(), stream);
  synchronize(stream);
  std::printf("%lld slices of k, D[0] = %g, expected 1\n", static_cast<long long>(partials.slices),
              static_cast<double>(result[0]));
  return result.front() == 1 && result.back() == 1;
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
