// SPDX-License-Identifier: Apache-2.0
// Inputs are small whole numbers wherever the kernel only adds and multiplies, so that its results
// are exact in any order.
#include "tests/emulator/samples/sample_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

namespace gemmery::tests {
namespace {

using Random = std::mt19937_64;
using Ints = std::vector<int>;
using Floats = std::vector<float>;

// --- inputs and outputs -------------------------------------------------------------------------

int between(Random& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

template <class T = float>
std::vector<T> numbers(Random& random, std::size_t count, int least = -4, int most = 4) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(between(random, least, most));
  return values;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(sizeof(T) * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
EmulationArgument in(const std::vector<T>& values) {
  return EmulationArgument::buffer(bytes_of(values));
}

EmulationArgument out(std::size_t elements) { return EmulationArgument::unwritten(4 * elements); }

EmulationArgument number(std::size_t value) {
  return EmulationArgument::number(std::to_string(value));
}

template <class T>
ExpectedOutput expect(std::size_t argument, const std::vector<T>& values) {
  return {.argument = argument, .bytes = bytes_of(values)};
}

// The bits of a whole number of at most 8 bits as f16 or bf16.
std::uint16_t to_f16(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);
  const auto mantissa = static_cast<std::uint16_t>((fraction * 2 - 1) * 1024);
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | mantissa);
}
std::uint16_t to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}
std::vector<std::uint16_t> halves(const Floats& values, std::uint16_t (*convert)(float)) {
  std::vector<std::uint16_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), convert);
  return bits;
}

Floats product(const Floats& a, const Floats& b, std::size_t rows, std::size_t columns,
               std::size_t depth) {
  Floats c(rows * columns);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      for (std::size_t k = 0; k < depth; ++k)
        c[row * columns + column] += a[row * depth + k] * b[k * columns + column];
  return c;
}

template <class T>
std::vector<T> sums_of_blocks(const std::vector<T>& values, std::size_t block) {
  std::vector<T> sums(values.size() / block);
  for (std::size_t at = 0; at < values.size(); ++at) sums[at / block] += values[at];
  return sums;
}

// --- the cases ----------------------------------------------------------------------------------

SampleCase vector_add(Random& random) {
  const auto count = static_cast<std::size_t>(between(random, 900, 1020));
  const Floats a = numbers(random, count), b = numbers(random, count);
  Floats sum(count);
  std::ranges::transform(a, b, sum.begin(), std::plus<>());
  return {{in(a), in(b), out(count), number(count)}, {expect(2, sum)}};
}

SampleCase transpose(Random& random) {
  constexpr std::size_t rows = 45, columns = 70;
  const Floats values = numbers(random, rows * columns);
  Floats turned(values.size());
  for (std::size_t at = 0; at < values.size(); ++at)
    turned[at % columns * rows + at / columns] = values[at];
  return {{in(values), out(values.size()), number(rows), number(columns)}, {expect(1, turned)}};
}

SampleCase block_sums(Random& random) {
  const Floats values = numbers(random, 4 * 256);
  return {{in(values), out(4)}, {expect(1, sums_of_blocks(values, 256))}};
}

SampleCase reduce_shuffle(Random& random) {
  const auto count = static_cast<std::size_t>(between(random, 1100, 1500));
  const Floats values = numbers(random, count);
  Floats sums(2);
  for (std::size_t at = 0; at < count; ++at) sums[at / 256 % 2] += values[at];
  return {{in(values), out(2), number(count)}, {expect(1, sums)}};
}

SampleCase reduce_last_block(Random& random) {
  const Floats values = numbers(random, 6 * 128);
  return {{in(values), out(6), out(1)}, {expect(2, sums_of_blocks(values, values.size()))}};
}

SampleCase scan_blocks(Random& random) {
  const Ints values = numbers<int>(random, 2 * 256);
  Ints sums(values.size());
  for (std::size_t at = 0; at < values.size(); ++at)
    sums[at] = at % 256 == 0 ? 0 : sums[at - 1] + values[at - 1];
  return {{in(values), out(sums.size())}, {expect(1, sums)}};
}

SampleCase scan_warps(Random& random) {
  const auto count = static_cast<std::size_t>(between(random, 100, 127));
  const Ints values = numbers<int>(random, count);
  Ints sums(values);
  for (std::size_t at = 0; at < count; ++at)
    if (at % 32 != 0) sums[at] += sums[at - 1];
  const Ints totals{sums[31], sums[63], sums[95], sums.back()};
  return {{in(values), out(count), out(4), number(count)}, {expect(1, sums), expect(2, totals)}};
}

SampleCase histogram(Random& random) {
  const auto values = numbers<std::uint8_t>(random, 2000, 0, 255);
  std::vector<unsigned> bins(64);
  for (const std::uint8_t value : values) ++bins[value % 64];
  return {{in(values), in(std::vector<unsigned>(64)), number(values.size())}, {expect(1, bins)}};
}

SampleCase matmul_of_floats(Random& random, std::size_t size) {
  const Floats a = numbers(random, size * size), b = numbers(random, size * size);
  return {{in(a), in(b), out(size * size), number(size)},
          {expect(2, product(a, b, size, size, size))}};
}
SampleCase matmul_tiled(Random& random) { return matmul_of_floats(random, 37); }
SampleCase matmul_cp_async(Random& random) { return matmul_of_floats(random, 96); }

SampleCase matmul_of_halves(Random& random) {
  constexpr std::size_t size = 48;
  const Floats a = numbers(random, size * size), b = numbers(random, size * size);
  return {{in(halves(a, to_f16)), in(halves(b, to_f16)), out(size * size), number(size)},
          {expect(2, product(a, b, size, size, size))}};
}

SampleCase matmul_wgmma(Random& random) {
  constexpr std::size_t depth = 48;
  const Floats a = numbers(random, 64 * depth), b = numbers(random, depth * 8);
  return {{in(halves(a, to_bf16)), in(halves(b, to_bf16)), out(64 * 8), number(depth)},
          {expect(2, product(a, b, 64, 8, depth))}};
}

SampleCase compact(Random& random) {
  const auto count = static_cast<std::size_t>(between(random, 300, 380));
  const Ints values = numbers<int>(random, count, -99, 99);
  Ints kept;
  std::ranges::copy_if(values, std::back_inserter(kept), [](int value) { return value > 0; });
  const auto found = static_cast<int>(kept.size());
  kept.resize(count);
  ExpectedOutput places = expect(1, kept);
  places.is_unordered = true;
  return {{in(values), in(Ints(count)), in(Ints{0}), number(count)},
          {places, expect(2, Ints{found})}};
}

// Each result is a quotient of sums of at most 200 terms below 1 in float32, each of them within 2
// ulp of exp: its relative error is below 2 * (200 + 4) * 2^-24.
SampleCase softmax(Random& random) {
  constexpr std::size_t rows = 3, columns = 200;
  const Floats values = numbers(random, rows * columns);
  std::vector<double> expected(values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::size_t column = 0; column < columns; ++column)
      sum += std::exp(double{values[row * columns + column]});
    for (std::size_t at = row * columns; at < (row + 1) * columns; ++at)
      expected[at] = std::exp(double{values[at]}) / sum;
  }
  return {{in(values), out(values.size()), number(columns)},
          {{.argument = 1, .bytes = {}, .values = expected, .tolerance = 408 * 0x1p-24}}};
}

// Sums are exact (small whole numbers). The quotients, their difference and rsqrt have relative
// errors of a few ulp; a normalised value of at most 8 is scaled by at most 4: 1e-4 is ample.
SampleCase layer_norm(Random& random) {
  constexpr std::size_t rows = 3, columns = 150;
  const Floats values = numbers(random, rows * columns);
  const Floats scale = numbers(random, columns), shift = numbers(random, columns);
  std::vector<double> expected(values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t column = 0; column < columns; ++column) {
      const double value = values[row * columns + column];
      sum += value, squares += value * value;
    }
    const double mean = sum / columns;
    const double deviation = std::sqrt(squares / columns - mean * mean + 1e-5);
    for (std::size_t column = 0; column < columns; ++column)
      expected[row * columns + column] =
          (values[row * columns + column] - mean) / deviation * scale[column] + shift[column];
  }
  return {{in(values), in(scale), in(shift), out(values.size()), number(columns)},
          {{.argument = 3, .bytes = {}, .values = expected, .tolerance = 1e-4}}};
}

SampleCase stencil_1d(Random& random) {
  constexpr std::size_t count = 300;
  const Floats values = numbers(random, count);
  Floats sums(count);
  for (std::size_t at = 0; at < count; ++at)
    for (std::size_t from = at < 3 ? 0 : at - 3; from <= std::min(at + 3, count - 1); ++from)
      sums[at] += values[from];
  return {{in(values), out(count), number(count)}, {expect(1, sums)}};
}

SampleCase stencil_2d(Random& random) {
  constexpr std::size_t steps = 4;
  const Ints values = numbers<int>(random, 2 * 256);
  Ints tiles = values;
  for (std::size_t step = 0; step < steps; ++step) {
    const Ints before = tiles;
    for (std::size_t at = 0; at < tiles.size(); ++at) {
      const std::size_t base = at / 256 * 256, y = at % 256 / 16, x = at % 16;
      const auto cell = [&](std::size_t row, std::size_t column) {
        return before[base + row % 16 * 16 + column % 16];
      };
      tiles[at] =
          cell(y, x + 1) + cell(y, x + 15) + cell(y + 1, x) + cell(y + 15, x) - 3 * cell(y, x);
    }
  }
  return {{in(values), out(values.size()), number(steps)}, {expect(1, tiles)}};
}

SampleCase convolution_rows(Random& random) {
  constexpr std::size_t rows = 3, columns = 150;
  constexpr std::array taps = {1, 2, 3, 4, 5, 4, 3, 2, 1};
  const Floats values = numbers(random, rows * columns);
  Floats sums(values.size());
  for (std::size_t at = 0; at < values.size(); ++at) {
    for (std::size_t tap = 0; tap < taps.size(); ++tap) {
      const std::size_t column = at % columns + tap;  // 4 more than that of the pixel
      if (column < 4 || column >= columns + 4) continue;
      sums[at] += values[at + tap - 4] * static_cast<float>(taps[tap]);
    }
  }
  return {{in(values), out(values.size()), number(columns)}, {expect(1, sums)}};
}

SampleCase bitonic_sort(Random& random) {
  const Ints keys = numbers<int>(random, 2 * 256, -1000, 1000);
  Ints sorted = keys;
  std::sort(sorted.begin(), sorted.begin() + 256);
  std::sort(sorted.begin() + 256, sorted.end());
  return {{in(keys)}, {expect(0, sorted)}};
}

SampleCase spmv_csr(Random& random) {
  constexpr std::size_t rows = 21, columns = 60;
  Ints starts{0}, places;
  Floats values, y(rows);
  const Floats x = numbers(random, columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (int at = between(random, 0, 50); at > 0; --at) {
      places.push_back(between(random, 0, columns - 1));
      values.push_back(static_cast<float>(between(random, -4, 4)));
      y[row] += values.back() * x[static_cast<std::size_t>(places.back())];
    }
    starts.push_back(static_cast<int>(values.size()));
  }
  return {{in(starts), in(places), in(values), in(x), out(rows), number(rows)}, {expect(4, y)}};
}

SampleCase dot_product(Random& random) {
  constexpr std::size_t count = 1000;
  const Ints a = numbers<int>(random, count), b = numbers<int>(random, count);
  return {{in(a), in(b), in(Ints{0}), number(count)},
          {expect(2, Ints{std::inner_product(a.begin(), a.end(), b.begin(), 0)})}};
}

SampleCase matrix_vector(Random& random) {
  constexpr std::size_t rows = 8, columns = 204;
  const Floats a = numbers(random, rows * columns), x = numbers(random, columns);
  return {{in(a), in(x), out(rows), number(columns)}, {expect(2, product(a, x, rows, 1, columns))}};
}

SampleCase spin_lock(Random& random) {
  const int value = between(random, 1, 9);
  return {{in(Ints{0, 0}), number(static_cast<std::size_t>(value))},
          {expect(0, Ints{8 * value, 36 * value})}};  // 1 + 2 + … + 8 = 36
}

SampleCase grid_barrier(Random& random) {
  constexpr std::size_t count = 6 * 64;
  const Ints values = numbers<int>(random, count);
  Ints differences(count);
  for (std::size_t at = 0; at < count; ++at) {
    const int next = values[(at + 64) % count];
    differences[at] = next * next - values[at] * values[at];
  }
  return {{in(values), out(count), out(count), number(count)}, {expect(2, differences)}};
}

SampleCase lookup(Random& random) {
  constexpr std::size_t count = 2 * 128;
  const Ints order = numbers<int>(random, count, 0, count - 1);
  const Floats values = numbers(random, count);
  Floats found(count);
  for (std::size_t at = 0; at < count; ++at)
    found[at] = values[static_cast<std::size_t>(order[at / 128 * 128 + 127 - at % 128])];
  return {{in(order), in(values), out(count)}, {expect(2, found)}};
}

SampleCase work_queue(Random& random) {
  constexpr std::size_t rows = 11;
  const Ints values = numbers<int>(random, rows * 64);
  Ints sums(values);
  for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += static_cast<int>(at / 64);
  return {{in(values), out(sums.size()), number(rows)}, {expect(1, sums)}};
}

SampleCase pipeline_mbarrier(Random& random) {
  constexpr std::size_t tiles = 7;
  const Ints values = numbers<int>(random, tiles * 128);
  Ints sums(128);
  for (std::size_t at = 0; at < values.size(); ++at) sums[127 - at % 128] += values[at];
  return {{in(values), out(128), number(tiles)}, {expect(1, sums)}};
}

SampleCase bulk_copy(Random& random) {
  const Ints values = numbers<int>(random, 2 * 256);
  Ints changed(values);
  for (int& value : changed) value = 3 * value + 1;
  return {{in(values), out(values.size())}, {expect(1, changed)}};
}

SampleCase bulk_bytes(Random& random) {
  const Ints a = numbers<int>(random, 2 * 128), b = numbers<int>(random, 2 * 128);
  Ints products(a.size());
  std::ranges::transform(a, b, products.begin(), std::multiplies<>());
  return {{in(a), in(b), out(a.size())}, {expect(2, products)}};
}

SampleCase cluster_reduce(Random& random) {
  const Ints values = numbers<int>(random, 8 * 64);
  return {{in(values), out(2)}, {expect(1, sums_of_blocks(values, 4 * 64))}};
}

SampleCase quicksort_step(Random& random) {
  constexpr std::size_t count = 200;
  const Ints values = numbers<int>(random, count);
  ExpectedOutput parts = expect(1, values);
  parts.is_unordered = true;
  return {{in(values), out(count), number(1), number(count)}, {parts}};
}

EmulatedLaunch blocks(std::uint32_t grid, std::uint32_t block) {
  return {.grid = {grid, 1, 1}, .block = {block, 1, 1}};
}

EmulatedLaunch planes(std::array<std::uint32_t, 2> grid, std::array<std::uint32_t, 2> block) {
  return {.grid = {grid[0], grid[1], 1}, .block = {block[0], block[1], 1}};
}

EmulatedLaunch clusters_of(std::uint32_t cluster, const EmulatedLaunch& of) {
  EmulatedLaunch launch = of;
  launch.cluster = {cluster, 1, 1};
  return launch;
}

}  // namespace

const std::vector<Sample>& all_samples() {
  static const std::vector<Sample> rows = {
      {"vector_add", blocks(4, 256), "out of bounds", vector_add},
      {"transpose", planes({3, 2}, {32, 8}), "race", transpose},
      {"reduce_tree", blocks(4, 256), "race", block_sums},
      {"reduce_unrolled_warp", blocks(4, 128), "race", block_sums},
      {"reduce_shuffle", blocks(2, 256), "race", reduce_shuffle},
      {"reduce_last_block", blocks(6, 128), "race", reduce_last_block},
      {"scan_blocks", blocks(2, 128), "race", scan_blocks},
      {"scan_warps", blocks(1, 128), "deadlock", scan_warps},
      {"histogram", blocks(3, 128), "race", histogram},
      {"matmul_tiled", planes({3, 3}, {16, 16}), "race", matmul_tiled},
      {"matmul_cp_async", planes({3, 3}, {256, 1}), "race", matmul_cp_async},
      {"matmul_wmma", planes({3, 3}, {32, 1}), "race", matmul_of_halves},
      {"matmul_mma", planes({6, 3}, {32, 1}), "race", matmul_of_halves},
      {"matmul_wgmma", blocks(1, 128), "wgmma in flight", matmul_wgmma},
      {"compact", blocks(3, 128), "race", compact},
      {"softmax", blocks(3, 128), "race", softmax},
      {"layer_norm", blocks(3, 128), "race", layer_norm},
      {"stencil_1d", blocks(3, 128), "out of bounds", stencil_1d},
      {"stencil_2d", planes({2, 1}, {16, 16}), "divergent barrier", stencil_2d},
      {"convolution_rows", planes({3, 3}, {64, 1}), "out of bounds", convolution_rows},
      {"bitonic_sort", blocks(2, 128), "race", bitonic_sort},
      {"spmv_csr", blocks(6, 128), "out of bounds", spmv_csr},
      {"dot_product", blocks(3, 128), "race", dot_product},
      {"matrix_vector", blocks(2, 128), "misaligned address", matrix_vector},
      {"spin_lock", blocks(8, 32), "race", spin_lock},
      {"grid_barrier", blocks(6, 64), "race", grid_barrier},
      {"lookup", blocks(2, 128), "unwritten register", lookup},
      {"work_queue", blocks(3, 64), "race", work_queue},
      {"pipeline_mbarrier", blocks(1, 160), "mbarrier misuse", pipeline_mbarrier},
      {"bulk_copy", blocks(2, 256), "missing proxy fence", bulk_copy},
      {"bulk_bytes", blocks(2, 128), "deadlock", bulk_bytes},
      {"cluster_reduce", clusters_of(4, blocks(8, 64)), "early exit", cluster_reduce},
      {"quicksort_step", blocks(1, 96), "race", quicksort_step},
  };
  return rows;
}

std::string difference(const ExpectedOutput& expected, const std::vector<std::byte>& bytes) {
  if (expected.values.empty()) {
    Ints found(bytes.size() / 4), wanted(expected.bytes.size() / 4);
    std::memcpy(found.data(), bytes.data(), 4 * found.size());
    std::memcpy(wanted.data(), expected.bytes.data(), 4 * wanted.size());
    if (expected.is_unordered) std::ranges::sort(found), std::ranges::sort(wanted);
    const auto at = std::ranges::mismatch(found, wanted).in1 - found.begin();
    return found == wanted ? "" : "element " + std::to_string(at);
  }
  Floats found(bytes.size() / 4);
  std::memcpy(found.data(), bytes.data(), bytes.size());
  for (std::size_t at = 0; at < found.size(); ++at)
    if (!(std::fabs(found[at] - expected.values[at]) <= expected.tolerance))
      return "element " + std::to_string(at) + " is " + std::to_string(found[at]) + ", expected " +
             std::to_string(expected.values[at]);
  return "";
}

}  // namespace gemmery::tests
