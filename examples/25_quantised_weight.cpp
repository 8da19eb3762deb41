// SPDX-License-Identifier: Apache-2.0
// A weight of 4 bits as a GPTQ checkpoint stores it: imported, multiplied, and prepared once for
// the kernels that multiply it many times. This runs on the CPU; on a GPU the calls are the same,
// with the imported tensors copied to its memory and a stream.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

int main() {
  using namespace gemmery;
  constexpr std::int64_t M = 4, N = 32, K = 64, group = 32, groups = K / group;
  // What the checkpoint has: eight inputs in a word, zero points (of eight outputs) minus one.
  const std::vector<std::uint32_t> qweight(K / 8 * N, 0x76543210),
      qzeros(groups * N / 8, 0x33333333);
  const std::vector<float> scales(groups * N, 0.5F);
  const auto words = [](const auto& values, std::int64_t rows, std::int64_t columns) {
    return Tensor(values.data(), DType::int32, {rows, columns});
  };

  alignas(16) std::uint8_t codes[K * N / 2], prepared_codes[K * N / 2];
  std::vector<std::uint8_t> zeros(groups * N);
  const Tensor of_codes(codes, DType::uint4, {K, N}, {1, K});
  const Tensor of_zeros(zeros.data(), DType::uint8, {groups, N});
  import_gptq(
      {.qweight = words(qweight, K / 8, N), .qzeros = words(qzeros, groups, N / 8), .group = group},
      of_codes, of_zeros, std::nullopt);

  const ScaleBlock block = scale_block::groups_of(group);
  const ScaledOperand weight(
      of_codes, {{Tensor(scales.data(), DType::float32, {groups, N}), block, ScaleLayout::strided}},
      Companion(of_zeros, block, ScaleLayout::strided));
  const ScaledOperand prepared =
      prepare_operand(weight, Tensor(prepared_codes, DType::uint4, {K, N}, {1, K}));

  const std::vector<float> x(M * K, 1);
  std::vector<float> out(M * N), again(M * N);
  const auto run = [&](const ScaledOperand& operand, std::vector<float>& result) {
    const GemmArguments arguments(Tensor(x.data(), DType::float32, {M, K}), operand,
                                  Tensor(result.data(), DType::float32, {M, N}));
    const Kernel kernel = get_kernels(arguments).at(0);
    kernel.run(arguments, {.stream = Stream::cpu()});
    std::printf("%s\n  %g by %s\n", to_string(arguments.problem()).c_str(),
                static_cast<double>(result[0]), kernel.name().c_str());
    return check_result(arguments, kernel).passed;
  };
  const bool passed = run(weight, out) && run(prepared, again);
  // Codes 0 to 7, zero points of 4: (0 + ... + 7 - 8 * 4) * 0.5 for each eight of 64 inputs.
  return passed && out == again && out[0] == -16.0F ? 0 : 1;
}
