// SPDX-License-Identifier: Apache-2.0
// An epilogue program instead of alpha * accum + beta * C: a bias for each column, an activation,
// and as a second result the largest value of every row, all in one pass over the accumulators. The
// same program is written as text and as C++ expressions.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

constexpr std::int64_t m = 33, n = 20, k = 17;

struct Memory {
  std::vector<float> a = std::vector<float>(m * k);
  std::vector<float> b = std::vector<float>(k * n);
  std::vector<float> bias = std::vector<float>(n);
  std::vector<float> out = std::vector<float>(m * n);
  std::vector<float> peak = std::vector<float>(m);
};

void fill(std::vector<float>& values) {
  for (std::size_t index = 0; index < values.size(); ++index)
    values[index] = static_cast<float>(index % 11) - 5;
}

gemmery::epilogue::Program as_text() {
  return gemmery::epilogue::Program("D = relu(accum + bias) * slope; peak = max(D)");
}

gemmery::epilogue::Program as_expressions() {
  using namespace gemmery::epilogue;
  const Expression d = relu(accum() + operand("bias")) * operand("slope");
  return Program{{"D", d}, {"peak", d, Reduction::max}};
}

// The reference, in loops. The values are small integers and the slope is 1/4, so every step is
// exact.
int count_differences(const Memory& memory, double slope) {
  int differences = 0;
  for (std::size_t row = 0; row < m; ++row) {
    float largest = 0;  // no value is smaller
    for (std::size_t column = 0; column < n; ++column) {
      float sum = memory.bias[column];
      for (std::size_t index = 0; index < k; ++index)
        sum += memory.a[row * k + index] * memory.b[index * n + column];
      const float expected = std::max(sum, 0.0F) * static_cast<float>(slope);
      differences += memory.out[row * n + column] == expected ? 0 : 1;
      largest = std::max(largest, expected);
    }
    differences += memory.peak[row] == largest ? 0 : 1;
  }
  return differences;
}

}  // namespace

int main() {
  using gemmery::DType;
  using gemmery::Tensor;
  Memory memory;
  fill(memory.a);
  fill(memory.b);
  fill(memory.bias);
  if (as_text() != as_expressions()) return 1;

  // The operands and results that the program names: a tensor that broadcasts to out, a number of
  // this run, and a tensor for the second result. (m, 1) holds one value for every row.
  const gemmery::EpilogueArguments epilogue(
      as_text(), {{"bias", Tensor(memory.bias.data(), DType::float32, {n})},
                  {"slope", 0.25},
                  {"peak", Tensor(memory.peak.data(), DType::float32, {m, 1})}});
  const gemmery::GemmArguments arguments(
      {memory.a.data(), DType::float32, {m, k}}, {memory.b.data(), DType::float32, {k, n}},
      {memory.out.data(), DType::float32, {m, n}}, {.epilogue = epilogue});
  const auto kernel = gemmery::get_kernels(arguments).front();
  kernel.run(arguments, {.stream = gemmery::Stream::cpu()});

  const int differences = count_differences(memory, 0.25);
  std::printf("%s\n%s: %d values differ\n", to_string(arguments.problem()).c_str(),
              kernel.name().c_str(), differences);
  return differences == 0 ? 0 : 1;
}
