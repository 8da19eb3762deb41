// SPDX-License-Identifier: Apache-2.0
// SwiGLU, silu(x * gate) * (x * up), with one weight matrix that holds both halves side by side. A
// program sees one element of its product, but SwiGLU combines elements of different columns.
// Therefore there are two products, on two views of the weights, and the epilogue of the second
// reads the result of the first. No separate elementwise pass over memory is needed.
#include "gallery.hpp"

namespace {

constexpr std::int64_t tokens = 64, width = 16, hidden = 40;

using gallery::from_bfloat16;
using gallery::to_bfloat16;

float small(std::size_t index) { return static_cast<float>(index % 3) - 1; }

// Columns [first, first + hidden) of weights that have 2 * hidden: the same memory, other strides.
gemmery::Tensor half_of(const gemmery::Tensor& weights, std::int64_t first) {
  return {static_cast<std::uint16_t*>(weights.data()) + first,
          weights.dtype(),
          {width, hidden},
          {2 * hidden, 1},
          weights.device()};
}

// An epilogue of one product over all columns cannot be expressed; the error names the position.
bool halves_of_accum_are_refused() {
  try {
    (void)gemmery::epilogue::Program("D = silu(accum[:40]) * accum[40:]");
    return false;
  } catch (const gemmery::Error& error) {
    std::printf("in one product: %s\n", error.what());
    return true;
  }
}

}  // namespace

int main(int count, char** words) {
  using gemmery::DType;
  const gemmery::OwnedStream stream(gallery::choose_device(count, words));
  gallery::Memory<std::uint16_t> x(DType::bfloat16, {tokens, width}, stream);
  gallery::Memory<std::uint16_t> weights(DType::bfloat16, {width, 2 * hidden}, stream);
  gallery::Memory<std::uint16_t> gate(DType::bfloat16, {tokens, hidden}, stream);
  gallery::Memory<std::uint16_t> out(DType::bfloat16, {tokens, hidden}, stream);
  x.fill([](std::size_t index) { return to_bfloat16(small(index)); });
  weights.fill([](std::size_t index) { return to_bfloat16(small(index * index)); });

  gallery::run({x.view(), half_of(weights.view(), 0), gate.view()}, stream);
  const gemmery::EpilogueArguments epilogue("D = silu(gate) * accum", {{"gate", gate.view()}});
  gallery::run({x.view(), half_of(weights.view(), hidden), out.view(), {.epilogue = epilogue}},
               stream);
  out.read();

  int differences = halves_of_accum_are_refused() ? 0 : 1;
  for (std::size_t row = 0; row < tokens; ++row)
    for (std::size_t column = 0; column < hidden; ++column) {
      double left = 0, right = 0;  // integers below 17: also exact in bfloat16
      for (std::size_t index = 0; index < width; ++index) {
        const std::size_t weight = index * 2 * hidden + column;
        const float value = from_bfloat16(x[row * width + index]);
        left += value * from_bfloat16(weights[weight]);
        right += value * from_bfloat16(weights[weight + hidden]);
      }
      const double want = left / (1 + std::exp(-left)) * right;
      // Half a unit of bfloat16 for the result, and silu's declared error for gates below 17.
      const float got = from_bfloat16(out[row * hidden + column]);
      differences += gallery::differs(got, want, 0x1p-8 + 0x1p-20, 0x1p-14) ? 1 : 0;
    }
  return gallery::report(differences);
}
