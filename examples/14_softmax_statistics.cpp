// SPDX-License-Identifier: Apache-2.0
// The statistics of a softmax along rows of a product, without a separate pass over it. The first
// run gives the largest score of every row; the second stores exp(score - largest) and its sum
// along every row. A reduction is complete only when its kernel is, so a program cannot read its
// own reduction: the product is run twice.
#include "gallery.hpp"

#include <algorithm>

namespace {

constexpr std::int64_t m = 48, n = 72, k = 32;
constexpr double scale = 0.125;  // a power of two: scores are exact

using gallery::from_bfloat16;
using gallery::to_bfloat16;

float small(std::size_t index) { return static_cast<float>(index % 5) - 2; }

}  // namespace

int main(int count, char** words) {
  using gemmery::DType;
  const gemmery::OwnedStream stream(gallery::choose_device(count, words));
  gallery::Memory<std::uint16_t> queries(DType::bfloat16, {m, k}, stream);
  gallery::Memory<std::uint16_t> keys(DType::bfloat16, {k, n}, stream);
  gallery::Memory<float> out(DType::float32, {m, n}, stream);
  gallery::Memory<float> top(DType::float32, {m, 1}, stream);
  gallery::Memory<float> total(DType::float32, {m, 1}, stream);
  queries.fill([](std::size_t index) { return to_bfloat16(small(index + index / 11)); });
  keys.fill([](std::size_t index) { return to_bfloat16(small(index * 3 + index / 7)); });

  const gemmery::EpilogueArguments largest("D = accum * scale; top = max(D)",
                                           {{"scale", scale}, {"top", top.view()}});
  gallery::run({queries.view(), keys.view(), out.view(), {.epilogue = largest}}, stream);
  const gemmery::EpilogueArguments weights(
      "D = exp(accum * scale - top); total = sum(D)",
      {{"scale", scale}, {"top", top.view()}, {"total", total.view()}});
  gallery::run({queries.view(), keys.view(), out.view(), {.epilogue = weights}}, stream);
  out.read();
  top.read();
  total.read();

  // exp is within 4 units of float32, so the sum is within 4 units plus one for each addition.
  constexpr double unit = 0x1p-24;
  int differences = 0;
  for (std::size_t row = 0; row < m; ++row) {
    std::vector<double> scores(n);
    for (std::size_t column = 0; column < n; ++column)
      for (std::size_t index = 0; index < k; ++index)
        scores[column] += scale * from_bfloat16(queries[row * k + index]) *
                          from_bfloat16(keys[index * n + column]);
    const double highest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (std::size_t column = 0; column < n; ++column) {
      const double want = std::exp(scores[column] - highest);
      sum += want;
      differences += gallery::differs(out[row * n + column], want, 4 * unit) ? 1 : 0;
    }
    differences += top[row] == static_cast<float>(highest) ? 0 : 1;
    differences += gallery::differs(total[row], sum, (4 + n) * unit) ? 1 : 0;
  }
  return gallery::report(differences);
}
