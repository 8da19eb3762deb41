// SPDX-License-Identifier: Apache-2.0
// Batches, strides and C: out[l] = 2 * A[l] * B + 0.5 * C, where A has padded rows, B is column
// major and the same for every batch, and C is one row that is repeated.
#include <cstdio>
#include <vector>

#include <gemmery/gemmery.hpp>

namespace {

constexpr std::int64_t l = 3, m = 5, n = 7, k = 11;
constexpr std::int64_t padded_k = 16;  // elements from one row of A to the next

struct Memory {
  std::vector<float> a = std::vector<float>(l * m * padded_k);
  std::vector<float> b = std::vector<float>(k * n);
  std::vector<float> c = std::vector<float>(n);
  std::vector<float> out = std::vector<float>(l * m * n);
};

void fill(std::vector<float>& values) {
  for (std::size_t index = 0; index < values.size(); ++index)
    values[index] = static_cast<float>(index % 13) - 6;
}

// The reference, in three loops. The values are small integers, so every sum is exact.
float expected(const Memory& memory, std::int64_t batch, std::int64_t row, std::int64_t column) {
  float sum = 0;
  for (std::int64_t index = 0; index < k; ++index) {
    sum += memory.a[static_cast<std::size_t>((batch * m + row) * padded_k + index)] *
           memory.b[static_cast<std::size_t>(column * k + index)];
  }
  return 2 * sum + 0.5F * memory.c[static_cast<std::size_t>(column)];
}

int count_differences(const Memory& memory) {
  int differences = 0;
  for (std::int64_t batch = 0; batch < l; ++batch) {
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        const float got = memory.out[static_cast<std::size_t>((batch * m + row) * n + column)];
        differences += got == expected(memory, batch, row, column) ? 0 : 1;
      }
    }
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
  fill(memory.c);

  const Tensor a(memory.a.data(), DType::float32, {l, m, k}, {m * padded_k, padded_k, 1});
  const Tensor b(memory.b.data(), DType::float32, {k, n},
                 {1, k});  // column major; no batch dimension: the same for all
  const Tensor c(memory.c.data(), DType::float32, {n});  // broadcast to out's shape by NumPy's rule
  const Tensor out(memory.out.data(), DType::float32, {l, m, n});

  const gemmery::GemmArguments arguments(a, b, out, {.c = c, .alpha = 2, .beta = 0.5});
  const auto kernel = gemmery::get_kernels(arguments).front();
  kernel.run(arguments, {.stream = gemmery::Stream::cpu()});

  const int differences = count_differences(memory);
  std::printf("%s\n%s: %d of %zu elements differ\n", to_string(arguments.problem()).c_str(),
              kernel.name().c_str(), differences, memory.out.size());
  return differences == 0 ? 0 : 1;
}
