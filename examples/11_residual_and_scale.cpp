// SPDX-License-Identifier: Apache-2.0
// The end of a network's residual block in one pass: a bias and a scale for each column, then the
// block's input is added.
#include "gallery.hpp"

namespace {

constexpr std::int64_t m = 72, n = 48, k = 16;

using gallery::from_bfloat16;
using gallery::to_bfloat16;

float small(std::size_t index) { return static_cast<float>(index % 3) - 1; }

}  // namespace

int main(int count, char** words) {
  using gemmery::DType;
  const gemmery::OwnedStream stream(gallery::choose_device(count, words));
  gallery::Memory<std::uint16_t> a(DType::bfloat16, {m, k}, stream);
  gallery::Memory<std::uint16_t> b(DType::bfloat16, {k, n}, stream);
  gallery::Memory<std::uint16_t> residual(DType::bfloat16, {m, n}, stream);
  gallery::Memory<std::uint16_t> out(DType::bfloat16, {m, n}, stream);
  gallery::Memory<float> bias(DType::float32, {n}, stream);
  gallery::Memory<float> gamma(DType::float32, {n}, stream);
  a.fill([](std::size_t index) { return to_bfloat16(small(index)); });
  b.fill([](std::size_t index) { return to_bfloat16(small(index * 7)); });
  residual.fill([](std::size_t index) { return to_bfloat16(small(index * 5)); });
  bias.fill(small);
  gamma.fill([](std::size_t index) { return index % 2 == 0 ? 0.5F : 2.0F; });

  const gemmery::EpilogueArguments epilogue(
      "D = residual + gamma * (accum + bias)",
      {{"residual", residual.view()}, {"gamma", gamma.view()}, {"bias", bias.view()}});
  gallery::run({a.view(), b.view(), out.view(), {.epilogue = epilogue}}, stream);
  out.read();

  // Every step gives a multiple of 1/2 below 64, which bfloat16 holds: results are bit-identical.
  int differences = 0;
  for (std::size_t row = 0; row < m; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      float sum = bias[column];
      for (std::size_t index = 0; index < k; ++index)
        sum += from_bfloat16(a[row * k + index]) * from_bfloat16(b[index * n + column]);
      const float want = from_bfloat16(residual[row * n + column]) + gamma[column] * sum;
      differences += from_bfloat16(out[row * n + column]) == want ? 0 : 1;
    }
  return gallery::report(differences);
}
