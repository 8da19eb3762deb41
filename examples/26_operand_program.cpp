// SPDX-License-Identifier: Apache-2.0
// Programs of operands: the product of a gated activation and a weight in a code of one's own,
// without a kernel ahead that would write either of them to memory.
#include "gallery.hpp"

namespace {

constexpr std::int64_t m = 48, n = 64, k = 96;

double silu(double x) { return x / (1 + std::exp(-x)); }

}  // namespace

int main(int count, char** words) {
  using gemmery::DType;
  using gemmery::OperandProgram;
  using gemmery::ScaledOperand;
  const gemmery::OwnedStream stream(gallery::choose_device(count, words));
  gallery::Memory<float> x(DType::float32, {m, k}, stream);
  gallery::Memory<float> gate(DType::float32, {m, k}, stream);
  gallery::Memory<std::uint8_t> codes(DType::uint8, {k, n}, stream);
  gallery::Memory<float> scale(DType::float32, {n}, stream);  // one for each column
  gallery::Memory<float> out(DType::float32, {m, n}, stream);
  x.fill([](std::size_t index) { return static_cast<float>(index * 37 % 17) * 0.25F - 2; });
  gate.fill([](std::size_t index) { return static_cast<float>(index * 29 % 23) * 0.25F - 3; });
  codes.fill([](std::size_t index) { return static_cast<std::uint8_t>(index * index % 251); });
  scale.fill([](std::size_t index) { return 0.001F * static_cast<float>(index + 1); });

  // `a` and `b` are elements, A and B what is multiplied.
  const ScaledOperand A(x.view(), OperandProgram("A = silu(gate) * a", {{"gate", gate.view()}}));
  const ScaledOperand B(codes.view(), OperandProgram("q = b - zero; B = q * abs(q) * scale",
                                                     {{"scale", scale.view()}, {"zero", 128.0}}));
  gallery::run({A, B, out.view()}, stream);
  out.read();

  int differences = 0;
  for (std::size_t row = 0; row < m; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      double sum = 0, size = 0;
      for (std::size_t index = 0; index < k; ++index) {
        const double q = codes[index * n + column] - 128.0;
        const double product =
            silu(gate[row * k + index]) * x[row * k + index] * q * std::fabs(q) * scale[column];
        sum += product;
        size += std::fabs(product);
      }
      differences += gallery::differs(out[row * n + column], sum, 0, 1e-5 * size) ? 1 : 0;
    }
  return gallery::report(differences);
}
