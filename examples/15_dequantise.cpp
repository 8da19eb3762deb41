// SPDX-License-Identifier: Apache-2.0
// 8-bit integers with a scale for every row of A and every column of B: the accumulators are exact,
// and the epilogue applies the scales.
#include "gallery.hpp"

namespace {

constexpr std::int64_t m = 48, n = 64, k = 128;

}  // namespace

int main(int count, char** words) {
  using gemmery::DType;
  const gemmery::OwnedStream stream(gallery::choose_device(count, words));
  gallery::Memory<std::int8_t> a(DType::int8, {m, k}, stream);
  gallery::Memory<std::int8_t> b(DType::int8, {k, n}, stream);
  gallery::Memory<float> of_row(DType::float32, {m, 1}, stream);
  gallery::Memory<float> of_column(DType::float32, {n}, stream);
  gallery::Memory<float> out(DType::float32, {m, n}, stream);
  a.fill([](std::size_t index) { return static_cast<std::int8_t>(index * 37 % 255); });
  b.fill([](std::size_t index) { return static_cast<std::int8_t>(index * index % 251); });
  of_row.fill([](std::size_t index) { return 0.001F * static_cast<float>(index + 1); });
  of_column.fill([](std::size_t index) { return 0.003F / static_cast<float>(index + 1); });

  const gemmery::EpilogueArguments epilogue(
      "D = accum * of_row * of_column",
      {{"of_row", of_row.view()}, {"of_column", of_column.view()}});
  gallery::run({a.view(), b.view(), out.view(), {.epilogue = epilogue}}, stream);
  out.read();

  // Programs over integers compute in double, which is rounded once where it is stored.
  int differences = 0;
  for (std::size_t row = 0; row < m; ++row)
    for (std::size_t column = 0; column < n; ++column) {
      int sum = 0;
      for (std::size_t index = 0; index < k; ++index)
        sum += a[row * k + index] * b[index * n + column];
      const double want = static_cast<double>(sum) * of_row[row] * of_column[column];
      differences += out[row * n + column] == static_cast<float>(want) ? 0 : 1;
    }
  return gallery::report(differences);
}
