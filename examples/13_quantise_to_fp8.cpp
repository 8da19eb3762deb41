// SPDX-License-Identifier: Apache-2.0
// Quantisation to 8-bit floats with the scale of the previous run. One pass stores the codes and
// the largest magnitude of this run, from which the next scale follows.
#include "gallery.hpp"

#include <algorithm>

namespace {

constexpr std::int64_t m = 64, n = 48, k = 32;
constexpr double largest_code = 448;  // of float8_e4m3fn

using gallery::from_bfloat16;
using gallery::to_bfloat16;

float small(std::size_t index) { return static_cast<float>(index % 5) - 2; }

double decode_e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code < 0x80 ? size : -size;
}

}  // namespace

int main(int count, char** words) {
  using gemmery::DType;
  const gemmery::OwnedStream stream(gallery::choose_device(count, words));
  gallery::Memory<std::uint16_t> a(DType::bfloat16, {m, k}, stream);
  gallery::Memory<std::uint16_t> b(DType::bfloat16, {k, n}, stream);
  gallery::Memory<std::uint16_t> out(DType::bfloat16, {m, n}, stream);
  gallery::Memory<std::uint8_t> codes(DType::float8_e4m3fn, {m, n}, stream);
  gallery::Memory<float> peak(DType::float32, {1}, stream);
  a.fill([](std::size_t index) { return to_bfloat16(small(index)); });
  b.fill([](std::size_t index) { return to_bfloat16(small(index * 3 + index / 7)); });

  // A scale that is too large for this run: values beyond 448 become 448, not NaN.
  const double scale = 64;
  const gemmery::EpilogueArguments epilogue(
      "D = accum; codes = cast(D * scale, e4m3, saturate); peak = amax(D)",
      {{"scale", scale}, {"codes", codes.view()}, {"peak", peak.view()}});
  gallery::run({a.view(), b.view(), out.view(), {.epilogue = epilogue}}, stream);
  codes.read();

  int differences = 0;
  double largest = 0;
  for (std::size_t row = 0; row < m; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::size_t index = 0; index < k; ++index)
        sum += from_bfloat16(a[row * k + index]) * from_bfloat16(b[index * n + column]);
      largest = std::max(largest, std::fabs(sum));
      const double want = std::clamp(sum * scale, -largest_code, largest_code);
      // A mantissa of three bits: half a unit in the last place is at most 2^-4 of the number.
      const double got = decode_e4m3(codes[row * n + column]);
      differences += gallery::differs(got, want, 0x1p-4) ? 1 : 0;
    }
  differences += peak.read()[0] == static_cast<float>(largest) ? 0 : 1;
  std::printf("the largest size is %g: the next scale is %g\n", largest, largest_code / largest);
  return gallery::report(differences);
}
