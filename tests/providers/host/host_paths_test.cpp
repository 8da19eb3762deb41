// SPDX-License-Identifier: Apache-2.0
// All code paths of the host's GEMM, compared with the oracle and with plain loops in wide
// arithmetic.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <sys/resource.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <gtest/gtest.h>

#include <gemmery/gemmery.hpp>

#include "providers/host/onednn.hpp"
#include "providers/host/onednn_gemm.hpp"
#include "providers/host/oracle.hpp"
#include "providers/host/plain.hpp"
#include "providers/host/reference.hpp"
#include "providers/host/scratch.hpp"
#include "tests/providers/host/random_gemm.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::host {
namespace {

struct Path {
  std::string name;
  std::function<bool(const GemmArguments&)> serves;
  std::function<void(const GemmArguments&)> run;
};

std::vector<Path> all_paths() {
  const auto anything = [](const GemmArguments&) { return true; };
  std::vector<Path> paths{{"reference", anything, run_reference}};
  for (const TileKernels* kernels : usable_tile_kernels())
    paths.push_back(
        {std::string("plain ") + kernels->instruction_set, anything,
         [kernels](const GemmArguments& arguments) { run_plain(arguments, *kernels); }});
  paths.push_back({"onednn",
                   [](const GemmArguments& arguments) {
                     return onednn_serves(arguments.problem()).is_success();
                   },
                   run_onednn});
  return paths;
}

DeclaredMath math_of(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  return {.a = problem.a.dtype,
          .b = problem.b.dtype,
          .accumulator = problem.accumulator,
          .math = problem.math};
}

int case_count(int usual) { return std::getenv("GEMMERY_SOAK") != nullptr ? 50 * usual : usual; }

std::string describe(const Comparison& comparison) {
  if (!comparison.first) return "no mismatch";
  const Mismatch& m = *comparison.first;
  return std::to_string(comparison.mismatches) + " of " + std::to_string(comparison.elements) +
         " wrong, first at [" + std::to_string(m.batch) + "," + std::to_string(m.row) + "," +
         std::to_string(m.column) + "]: got " + std::to_string(m.got) + ", exact " +
         std::to_string(m.exact) + ", allowed " + std::to_string(m.allowed) + ", ratio " +
         std::to_string(comparison.worst_ratio);
}

void check_path(const Path& path, RandomGemm& gemm, Criterion criterion) {
  const GemmArguments arguments = gemm.arguments();
  if (!path.serves(arguments)) return;
  path.run(arguments);
  const Comparison comparison = compare_with_oracle(arguments, math_of(arguments), criterion);
  EXPECT_EQ(comparison.mismatches, 0) << path.name << ": " << gemm.text() << "\n"
                                      << describe(comparison);
  EXPECT_EQ(gemm.out.touched_gaps(), 0) << path.name << ": " << gemm.text();
}

TEST(HostPaths, reals_are_within_their_bounds) {
  Random random(tests::random_seed());
  const auto paths = all_paths();
  for (int i = 0; i < case_count(400); ++i) {
    RandomGemm gemm(random, random_types(random), random_shape(random), Fill::normal);
    for (const Path& path : paths) check_path(path, gemm, Criterion::bound);
    if (HasFailure()) return;
  }
}

TEST(HostPaths, small_integers_are_exact) {
  Random random(tests::random_seed() + 1);
  const auto paths = all_paths();
  for (int i = 0; i < case_count(400); ++i) {
    RandomGemm gemm(random, random_types(random), random_shape(random), Fill::integers);
    for (const Path& path : paths) check_path(path, gemm, Criterion::exact);
    if (HasFailure()) return;
  }
}

// Partial tiles along every extent and in every layout. oneDNN 2.6.3 with AMX computes some of them
// wrongly: 49 to 63 columns or rows that it converts to bfloat16, and k just below full tiles.
TEST(HostPaths, tails_of_every_extent_are_exact_in_every_layout) {
  using enum DType;
  using Form = OwnedTensor::Form;
  Random random(tests::random_seed() + 8);
  const auto paths = all_paths();
  constexpr Form forms[] = {Form::row, Form::column};
  for (const GemmTypes types :
       {GemmTypes{float32, float32, float32, float32},
        GemmTypes{float16, float16, float32, float32},
        GemmTypes{bfloat16, bfloat16, float32, float32},
        GemmTypes{bfloat16, bfloat16, bfloat16, float32},
        GemmTypes{float8_e4m3fn, float8_e4m3fn, float32, float32},
        GemmTypes{float8_e5m2, float8_e5m2, float32, float32},
        GemmTypes{float8_e5m2, bfloat16, bfloat16, float32}, GemmTypes{int8, int8, int32, int32},
        GemmTypes{uint8, int8, int32, int32}})
    for (const GemmShape shape :
         {GemmShape{1, 30, 53, 67}, GemmShape{1, 53, 30, 15}, GemmShape{1, 1, 58, 447},
          GemmShape{1, 59, 3, 113}, GemmShape{1, 67, 54, 126}, GemmShape{1, 70, 42, 125},
          GemmShape{1, 77, 33, 63}, GemmShape{1, 81, 67, 93}, GemmShape{3, 10, 50, 33}})
      for (const Form a : forms)
        for (const Form b : forms)
          for (const Form out : forms) {
            RandomGemm gemm(random, types, shape, Fill::integers);
            gemm.a = OwnedTensor(random, types.a, {shape.l, shape.m, shape.k}, a);
            gemm.b = OwnedTensor(random, types.b, {shape.l, shape.k, shape.n}, b);
            gemm.out = OwnedTensor(random, types.out, {shape.l, shape.m, shape.n}, out);
            gemm.a.fill(random, Fill::integers);
            gemm.b.fill(random, Fill::integers);
            gemm.c.reset();
            gemm.options = {};
            for (const Path& path : paths) check_path(path, gemm, Criterion::exact);
            if (HasFailure()) return;
          }
}

TEST(HostPaths, with_alpha_zero_nan_in_a_and_b_is_not_read) {
  Random random(tests::random_seed() + 2);
  for (const Path& path : all_paths())
    for (int i = 0; i < 30; ++i) {
      RandomGemm gemm(random, random_types(random), random_shape(random), Fill::nan);
      gemm.options.alpha = 0;
      if (gemm.c) gemm.c->fill(random, Fill::integers);
      check_path(path, gemm, Criterion::exact);
    }
}

TEST(HostPaths, c_may_be_out) {
  Random random(tests::random_seed() + 3);
  for (const Path& path : all_paths())
    for (int i = 0; i < 30; ++i) {
      const GemmShape shape = random_shape(random);
      RandomGemm gemm(random, random_types(random), shape, Fill::integers);
      gemm.c.reset();
      gemm.options = {.c = gemm.out.view(), .alpha = 1, .beta = 2};
      gemm.out.fill(random, Fill::integers);
      const GemmArguments in_place = gemm.arguments();
      if (!path.serves(in_place)) continue;
      OwnedTensor before = gemm.out;
      path.run(in_place);
      gemm.options.c = before.view();
      const GemmArguments arguments = gemm.arguments();
      const Comparison comparison =
          compare_with_oracle(arguments, math_of(arguments), Criterion::exact);
      EXPECT_EQ(comparison.mismatches, 0) << path.name << ": " << gemm.text() << "\n"
                                          << describe(comparison);
    }
}

TEST(HostPaths, infinities_and_nan_arrive_where_they_must) {
  Random random(tests::random_seed() + 4);
  for (const Path& path : all_paths())
    for (int i = 0; i < 60; ++i) {
      GemmShape shape = random_shape(random);
      shape.m = std::max<std::int64_t>(shape.m, 1);
      shape.k = std::max<std::int64_t>(shape.k, 1);
      shape.l = std::max<std::int64_t>(shape.l, 1);
      const DType dtype = pick_from(random, {DType::float64, DType::float32, DType::float16,
                                             DType::bfloat16, DType::float8_e5m2});
      const DType accumulator = dtype == DType::float64 ? dtype : DType::float32;
      RandomGemm gemm(random,
                      {dtype, dtype, pick_from(random, {DType::float32, dtype}), accumulator},
                      shape, Fill::integers);
      const double special =
          pick_from(random, {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(), std::nan("")});
      gemm.a.set(0, pick(random, 0, shape.m - 1), pick(random, 0, shape.k - 1), special);
      check_path(path, gemm, Criterion::exact);
    }
}

// A subnormal times a large number is an ordinary one.
TEST(HostPaths, subnormals_are_not_taken_for_zero) {
  Random random(tests::random_seed() + 11);
  using enum DType;
  struct Row {
    DType dtype;
    double least, most;  // the factors in A, which is subnormal, and in B
  };
  for (const Row row : {Row{bfloat16, 0x1p-133, 0x1p100}, Row{float32, 0x1p-149, 0x1p100},
                        Row{float16, 0x1p-24, 0x1p14}, Row{float8_e5m2, 0x1p-16, 0x1p14},
                        Row{float8_e4m3fn, 0x1p-9, 0x1p7}, Row{float64, 0x1p-1074, 0x1p1000}})
    for (const bool is_a : {true, false})
      for (const Path& path : all_paths()) {
        GemmShape shape = random_shape(random);
        shape = {1 + shape.l, 1 + shape.m, 1 + shape.n, 1 + shape.k};
        const DType sums = row.dtype == float64 ? float64 : float32;
        RandomGemm gemm(random, {row.dtype, row.dtype, sums, sums}, shape, Fill::normal);
        gemm.c.reset();
        gemm.options = {};
        const auto small = [&] { return static_cast<double>(pick(random, -1, 1)) * row.least; };
        const auto large = [&] { return static_cast<double>(pick(random, 1, 3)) * row.most; };
        is_a ? gemm.a.fill(small) : gemm.a.fill(large);
        is_a ? gemm.b.fill(large) : gemm.b.fill(small);
        check_path(path, gemm, Criterion::bound);
      }
}

#if defined(__x86_64__)
// The bits that flush subnormal results and operands, as set by torch.set_flush_denormal(True).
constexpr unsigned flushing_bits = 0x8040;

template <class T>
void expect_kept_subnormals(DType dtype, T small, T large) {
  const std::vector<T> a(16 * 8, small), b(8 * 16, large);
  std::vector<T> out(16 * 16);
  const GemmArguments arguments(Tensor(const_cast<T*>(a.data()), dtype, {16, 8}),
                                Tensor(const_cast<T*>(b.data()), dtype, {8, 16}),
                                Tensor(out.data(), dtype, {16, 16}));
  const double expected = 8 * static_cast<double>(small) * static_cast<double>(large);
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | flushing_bits);
    kernel.run(arguments, {.stream = Stream::cpu()});
    const bool passes = check_result(arguments, kernel).passed;
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & flushing_bits, flushing_bits) << "the caller's mode comes back";
    EXPECT_NEAR(static_cast<double>(out[0]), expected, expected * 1e-6) << kernel.name();
    EXPECT_TRUE(passes) << kernel.name();
    out[0] = 0;
    _mm_setcsr(before | flushing_bits);
    const bool passes_zero = check_result(arguments, kernel).passed;
    _mm_setcsr(before);
    EXPECT_FALSE(passes_zero) << "the oracle keeps them too: " << kernel.name();
  }
}

TEST(HostPaths, the_callers_float_mode_is_left_aside) {
  expect_kept_subnormals<float>(DType::float32, 0x1p-140F, 0x1p100F);
  expect_kept_subnormals<double>(DType::float64, 0x1p-1070, 0x1p1000);
}
#endif

enum class Ends { low, high, alternating };
constexpr Ends all_ends[] = {Ends::low, Ends::high, Ends::alternating};

double end_of(DType dtype, bool is_low) {
  if (dtype == DType::uint8) return is_low ? 0 : 255;
  if (dtype == DType::int8) return is_low ? -128 : 127;
  return is_low ? -2 : 2;
}

void fill_with_ends(OwnedTensor& operand, DType dtype, Ends ends) {
  std::int64_t index = 0;
  operand.fill([&] {
    return end_of(dtype, ends == Ends::alternating ? index++ % 2 == 0 : ends == Ends::low);
  });
}

// Values that need all bits of accumulators: the ends of each type's range, alternating signs, one
// huge element among small ones, in all combinations, with K near the lengths at which sums leave a
// type's exact range.
TEST(HostPaths, worst_cases_of_every_type_are_right) {
  Random random(tests::random_seed() + 12);
  using enum DType;
  for (const auto& [a, b] : {std::pair{int8, int8}, std::pair{int8, uint8}, std::pair{uint8, int8},
                             std::pair{uint8, uint8}, std::pair{float8_e4m3fn, float8_e4m3fn},
                             std::pair{float16, float16}, std::pair{bfloat16, bfloat16},
                             std::pair{float32, float32}, std::pair{float64, float64}}) {
    const DType sums = is_integer(a) ? int32 : a == float64 ? float64 : float32;
    for (const std::int64_t k : {256, 257, 258, 320, 1025, 1300})
      for (const Ends ends_a : all_ends)
        for (const Ends ends_b : all_ends)
          for (const Path& path : all_paths()) {
            RandomGemm gemm(random, {a, b, sums, sums},
                            {1, pick(random, 1, 20), pick(random, 1, 40), k}, Fill::normal);
            gemm.c.reset();
            gemm.options = {};
            fill_with_ends(gemm.a, a, ends_a);
            fill_with_ends(gemm.b, b, ends_b);
            check_path(path, gemm, Criterion::exact);
            if (is_integer(a)) continue;
            gemm.a.set(0, 0, pick(random, 0, k - 1), 0x1p7);  // one huge among small ones
            check_path(path, gemm, Criterion::bound);
          }
  }
}

TEST(HostPaths, int8_sums_wrap_at_32_bits) {
  constexpr std::int64_t k = 140'000;  // 140000 · 127² > 2^31
  std::vector<std::int8_t> a(2 * k, 127);
  std::vector<std::int8_t> b(2 * k, 127);
  std::vector<std::int32_t> out(4);
  const GemmArguments arguments(Tensor(a.data(), DType::int8, {2, k}),
                                Tensor(b.data(), DType::int8, {k, 2}),
                                Tensor(out.data(), DType::int32, {2, 2}));
  const auto expected = static_cast<std::int32_t>(static_cast<std::uint32_t>(k * 127 * 127));
  for (const Path& path : all_paths()) {
    if (!path.serves(arguments)) continue;
    std::ranges::fill(out, 0);
    path.run(arguments);
    for (const std::int32_t sum : out) EXPECT_EQ(sum, expected) << path.name;
  }
}

TEST(HostPaths, larger_problems_cross_every_blocking) {
  Random random(tests::random_seed() + 5);
  for (const Path& path : all_paths())
    for (const GemmShape shape : {GemmShape{1, 413, 1031, 517}, GemmShape{1, 3, 2000, 300},
                                  GemmShape{1, 1500, 2, 300}, GemmShape{40, 33, 17, 65}}) {
      RandomGemm gemm(random, random_types(random), shape, Fill::normal);
      check_path(path, gemm, Criterion::bound);
    }
}

// --- long products, made in several passes over k ---

// An input whose elements are all the same element in memory, so that a large k needs no memory.
class RepeatedElement {
 public:
  RepeatedElement(DType dtype, double value) : dtype_(dtype) {
    store(dtype, &memory_, 0, {value, 0});
  }
  Tensor matrix(std::int64_t rows, std::int64_t columns) {
    return Tensor(&memory_, dtype_, {rows, columns}, {0, 0});
  }

 private:
  DType dtype_;
  std::uint64_t memory_ = 0;
};

TEST(HostPaths, products_longer_than_a_pass_are_exact) {
  Random random(tests::random_seed() + 9);
  const auto paths = all_paths();
  for (const GemmTypes types :
       {GemmTypes{DType::float32, DType::float16, DType::float32, DType::float32},
        GemmTypes{DType::float64, DType::float64, DType::float64, DType::float64},
        GemmTypes{DType::uint8, DType::int8, DType::int32, DType::int32}})
    for (const std::int64_t k : {8191, 8192, 8193, 16384, 20011}) {
      RandomGemm gemm(random, types,
                      {pick(random, 1, 2), pick(random, 1, 40), pick(random, 1, 70), k},
                      Fill::integers);
      for (const Path& path : paths) check_path(path, gemm, Criterion::exact);
    }
}

// oneDNN distributes a long k over threads; some versions then lose batches of a transposed A.
TEST(HostPaths, long_products_of_every_orientation_and_batch_are_exact) {
  Random random(tests::random_seed() + 13);
  using Form = OwnedTensor::Form;
  constexpr Form forms[] = {Form::row, Form::column};
  const GemmTypes types{DType::float32, DType::float32, DType::float32, DType::float32};
  for (const std::int64_t k : {1024, 1025, 2048, 3001})
    for (const std::int64_t batches : {1, 2, 3})
      for (const Form a : forms)
        for (const Form b : forms)
          for (const Form out : forms) {
            const GemmShape shape{batches, pick(random, 2, 60), pick(random, 2, 60), k};
            RandomGemm gemm(random, types, shape, Fill::integers);
            gemm.a = OwnedTensor(random, types.a, {batches, shape.m, k}, a);
            gemm.b = OwnedTensor(random, types.b, {batches, k, shape.n}, b);
            gemm.out = OwnedTensor(random, types.out, {batches, shape.m, shape.n}, out);
            gemm.a.fill(random, Fill::integers);
            gemm.b.fill(random, Fill::integers);
            gemm.c.reset();
            gemm.options = {};
            for (const Path& path : all_paths()) check_path(path, gemm, Criterion::exact);
            if (HasFailure()) return;
          }
}

TEST(HostPaths, the_reference_of_long_products_is_right) {
  Random random(tests::random_seed() + 10);
  RandomGemm gemm(random, {DType::float64, DType::float64, DType::float64, DType::float64},
                  {1, 5, 7, 20011}, Fill::integers);
  gemm.c.reset();
  gemm.options = {};
  const ExactSums sums = exact_sums(gemm.arguments(), 0, PackedValue::magnitude);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 7; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < 20011; ++k) {
        const double product = gemm.a.get(0, i, k) * gemm.b.get(0, k, j);
        sum += product;
        magnitude += std::fabs(product);
      }
      EXPECT_EQ(sums.at(i * 7 + j).high, sum);
      EXPECT_EQ(sums.magnitude[static_cast<std::size_t>(i * 7 + j)], magnitude);
    }
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} << 10;
}

// The memory must not contain a term per element of k.
TEST(HostPaths, memory_does_not_grow_with_k) {
  constexpr std::int64_t most_growth = std::int64_t{32} << 20;
  struct Row {
    DType dtype, accumulator;
    std::int64_t k;
    double expected;
  };
  const auto paths = all_paths();
  for (const Row row : {Row{DType::float32, DType::float32, std::int64_t{1} << 26, 0x1p26},
                        Row{DType::float64, DType::float64, std::int64_t{1} << 24, 0x1p24},
                        Row{DType::int8, DType::int32, std::int64_t{1} << 24, 0x1p24}})
    for (const Path& path : paths) {
      RepeatedElement one(row.dtype, 1);
      double out = -1;
      std::int32_t integer_out = -1;
      const bool is_integer = row.accumulator == DType::int32;
      const GemmArguments arguments(one.matrix(1, row.k), one.matrix(row.k, 1),
                                    is_integer ? Tensor(&integer_out, DType::int32, {1, 1})
                                               : Tensor(&out, DType::float64, {1, 1}),
                                    row.accumulator);
      if (!path.serves(arguments)) continue;
      const std::int64_t before = peak_resident_bytes();
      path.run(arguments);
      EXPECT_LT(peak_resident_bytes() - before, most_growth) << path.name << ", k " << row.k;
      EXPECT_EQ(is_integer ? integer_out : out, row.expected) << path.name;
    }
}

TEST(Scratch, memory_that_cannot_be_had_is_an_error_with_operand_and_bytes) {
  Scratch scratch;
  try {
    scratch.reserve<double>(std::int64_t{1} << 58, "A", "packed panels of A");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_EQ(error.operand(), "A");
    EXPECT_EQ(error.expected(), "2305843009213693952 bytes of host memory for packed panels of A");
  }
}

// --- the reference and the oracle against wide arithmetic ---

// Computes in long double (64 bits of significand) for narrow floats, in __float128 for float64
// operands.
template <class Wide>
Wide wide_sum(const RandomGemm& gemm, std::int64_t l, std::int64_t i, std::int64_t j) {
  Wide sum = 0;
  for (std::int64_t k = 0; k < gemm.shape.k; ++k)
    sum += static_cast<Wide>(gemm.a.get(l, i, k)) * static_cast<Wide>(gemm.b.get(l, k, j));
  return sum;
}

TEST(Reference, sums_agree_with_plain_loops_in_quadruple_precision) {
  Random random(tests::random_seed() + 6);
  for (int repeat = 0; repeat < 30; ++repeat) {
    GemmShape shape = random_shape(random);
    shape.l = 1;
    const DType dtype = pick_from(random, {DType::float64, DType::float32, DType::float16});
    RandomGemm gemm(random, {dtype, dtype, DType::float64, DType::float64}, shape, Fill::normal);
    gemm.options = {};
    const GemmArguments arguments = gemm.arguments();
    const ExactSums sums = exact_sums(arguments, 0, PackedValue::magnitude);
    for (std::int64_t i = 0; i < shape.m; ++i)
      for (std::int64_t j = 0; j < shape.n; ++j) {
        const auto exact = wide_sum<__float128>(gemm, 0, i, j);
        const DoubleDouble got = sums.at(i * shape.n + j);
        const auto error = static_cast<double>(static_cast<__float128>(got.high) - exact +
                                               static_cast<__float128>(got.low));
        const double magnitude = sums.magnitude[static_cast<std::size_t>(i * shape.n + j)];
        const double unit =
            dtype == DType::float64 ? 0x1p-90 : static_cast<double>(shape.k) * 0x1p-53;
        ASSERT_LE(std::fabs(error), unit * magnitude) << gemm.text();
      }
  }
}

TEST(Reference, compensation_survives_cancellation) {
  // 1e16 + 1 - 1e16 summed a thousand times: plain float64 loses every 1.
  for (const TileKernels* kernels : usable_tile_kernels()) {
    const TileKernel<double>& kernel = kernels->compensated;
    constexpr std::int64_t depth = 3000;
    const auto aligned = [](std::size_t count) {
      return static_cast<double*>(std::aligned_alloc(64, (count * 8 + 63) / 64 * 64));
    };
    double* a = aligned(static_cast<std::size_t>(depth * kernel.rows));
    double* b = aligned(static_cast<std::size_t>(depth * kernel.columns));
    double* tile = aligned(static_cast<std::size_t>(2 * kernel.rows * kernel.columns));
    const double terms[3] = {1e16, 1, -1e16};
    for (std::int64_t k = 0; k < depth; ++k) {
      std::fill_n(a + k * kernel.rows, kernel.rows, terms[k % 3]);
      std::fill_n(b + k * kernel.columns, kernel.columns, 1.0);
    }
    std::fill_n(tile, 2 * kernel.rows * kernel.columns, 0.0);
    kernel.accumulate(depth, a, b, tile);
    const int plane = kernel.rows * kernel.columns;
    for (int s = 0; s < plane; ++s)
      ASSERT_EQ(tile[s] + tile[plane + s], 1000) << kernels->instruction_set;
    std::free(a);
    std::free(b);
    std::free(tile);
  }
}

TEST(Oracle, catches_an_element_that_is_off_by_more_than_its_bound) {
  Random random(tests::random_seed() + 7);
  int caught = 0;
  constexpr int planted = 60;
  for (int i = 0; i < planted; ++i) {
    const GemmShape shape{1, pick(random, 1, 40), pick(random, 1, 40), pick(random, 1, 40)};
    RandomGemm gemm(random, {DType::float32, DType::float32, DType::float32, DType::float32}, shape,
                    Fill::normal);
    if (gemm.options.alpha == 0) gemm.options.alpha = 1;
    const GemmArguments arguments = gemm.arguments();
    run_plain(arguments);
    const std::int64_t row = pick(random, 0, shape.m - 1);
    const std::int64_t column = pick(random, 0, shape.n - 1);
    const OracleResult oracle = compute_oracle(arguments, math_of(arguments));
    const auto at = static_cast<std::size_t>(row * shape.n + column);
    const double unit = std::fabs(oracle.value[at]) * 0x1p-24;
    gemm.out.set(0, row, column, oracle.value[at] + 1.5 * oracle.bound[at] + 3 * unit + 1e-30);
    const Comparison comparison = compare_with_oracle(arguments, math_of(arguments));
    caught += comparison.mismatches == 1 && comparison.first->row == row &&
              comparison.first->column == column;
  }
  EXPECT_EQ(caught, planted);
}

TEST(Oracle, a_missing_product_is_caught) {
  Random random(tests::random_seed() + 8);
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    RandomGemm gemm(random, {dtype, dtype, DType::float32, DType::float32}, {1, 30, 30, 300},
                    Fill::normal);
    gemm.options = {};
    const GemmArguments arguments = gemm.arguments();
    run_plain(arguments);
    gemm.a.set(0, 0, 299, gemm.a.get(0, 0, 299) + 1);
    EXPECT_GT(compare_with_oracle(arguments, math_of(arguments)).mismatches, 0) << name(dtype);
  }
}

TEST(Oracle, judges_infinities_at_the_edge_of_the_output_type) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(judge_element(DType::float16, {70000, 0}, 1, inf).is_right);
  EXPECT_FALSE(judge_element(DType::float16, {70000, 0}, 1, -inf).is_right);
  EXPECT_FALSE(judge_element(DType::float16, {70000, 0}, 1, 65504).is_right);
  EXPECT_FALSE(judge_element(DType::float16, {1000, 0}, 1, inf).is_right);
  EXPECT_TRUE(judge_element(DType::float16, {65519, 0}, 2, inf).is_right);
  EXPECT_TRUE(judge_element(DType::float16, {65519, 0}, 2, 65504).is_right);
  EXPECT_TRUE(judge_element(DType::float8_e4m3fn, {500, 0}, 1, std::nan("")).is_right);
  EXPECT_FALSE(judge_element(DType::float8_e4m3fn, {500, 0}, 1, 448).is_right);
  EXPECT_FALSE(judge_element(DType::float32, {1, 0}, 1e-6, std::nan("")).is_right);
  EXPECT_TRUE(judge_element(DType::int8, {1000, 0}, 0.1, 127).is_right);
  EXPECT_FALSE(judge_element(DType::int8, {1000, 0}, 0.1, 126).is_right);
  EXPECT_TRUE(
      judge_element(DType::float32, {std::nan(""), 0}, std::nan(""), std::nan("")).is_right);
  EXPECT_FALSE(judge_element(DType::float32, {std::nan(""), 0}, std::nan(""), 0).is_right);
  EXPECT_TRUE(judge_element(DType::int32, {3, 0}, 0, 3).is_right);
  EXPECT_FALSE(judge_element(DType::int32, {3, 0}, 0, 4).is_right);
}

TEST(Oracle, the_units_of_rounding_are_those_of_the_design) {
  using enum DType;
  const auto unit = [](DeclaredMath declared) { return error_model(declared).accumulator_unit; };
  EXPECT_EQ(unit({float32, float32, float32}), 0x1p-24);
  EXPECT_EQ(unit({float64, float64, float64}), 0x1p-53);
  EXPECT_EQ(unit({float16, float16, float16}), 0x1p-11);
  EXPECT_EQ(unit({float16, float16, float32, Math::native, Arithmetic::tensor_core}), 0x1p-23);
  EXPECT_EQ(unit({int8, int8, int32}), 0);
  EXPECT_EQ(unit({float8_e4m3fn, float8_e4m3fn, float32, Math::fp8_fast}), 0x1p-13);
  EXPECT_EQ(error_model({float32, float32, float32, Math::tf32}).input_unit, 0x1p-10);
  EXPECT_EQ(error_model({float32, float32, float32, Math::tf32x3}).input_unit, 0x1p-21);
  // At least half a unit of subnormal float16, 2^-25, for any element.
  for (const Math math : {Math::f16, Math::f16x3}) {
    const DeclaredMath declared{float32, float32, float32, math};
    const MagnitudeRange range = magnitude_range(float32, magnitude_of(declared));
    EXPECT_GE(error_model(declared).input_unit * range.clamp(-1e-20), 0x1p-25);
    EXPECT_EQ(range.clamp(0), 0);
    EXPECT_EQ(range.clamp(-65519), 65519);
    EXPECT_EQ(range.clamp(65520), std::numeric_limits<double>::infinity());
  }
  EXPECT_EQ(error_model({float32, float32, float32}).product_factor(62), 0x1p-18);
}

// --- operands that are rounded or split ---

// Rounds to TF32 as hardware does: to nearest, ties away from zero.
float to_tf32(float value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & 0xffffe000U);
}

float rounded_part(float value, Math math) {
  if (math == Math::tf32x3) return to_tf32(value);
  return math == Math::f16 || math == Math::f16x3 ? from_float16(to_float16(value))
                                                  : from_bfloat16(to_bfloat16(value));
}

float largest_part(Math math) {
  const bool is_tf32 = math == Math::tf32x3;
  return std::bit_cast<float>(is_tf32 ? 0x7f7fe000U : 0x7f7f0000U);
}

using Parts = std::array<double, 3>;

// Splits as device code does: a part that would be infinite is the largest number of its type.
Parts split(float value, Math math) {
  const int count = math == Math::f16 || math == Math::bf16        ? 1
                    : math == Math::bf16x6 || math == Math::bf16x9 ? 3
                                                                   : 2;
  Parts parts{};
  for (int index = 0; index < count; ++index) {
    float part = rounded_part(value, math);
    if (count > 1 && std::isinf(part) && math != Math::f16x3)
      part = std::copysign(largest_part(math), value);
    parts[static_cast<std::size_t>(index)] = part;
    value -= part;
  }
  return parts;
}

// The sum of the products of parts that tensor cores compute, with a rounding error of 2^-52.
double split_product(float a, float b, Math math) {
  const Parts x = split(a, math), y = split(b, math);
  const std::size_t last = math == Math::bf16x9 ? 4 : math == Math::bf16x6 ? 2 : 1;
  double sum = 0;
  for (std::size_t i = 3; i-- > 0;)
    for (std::size_t j = 3; j-- > 0;)
      if (i + j <= last) sum += x[i] * y[j];
  return sum;
}

TEST(Oracle, a_product_of_rounded_or_split_operands_keeps_to_the_unit_of_its_math) {
  Random random(tests::random_seed());
  for (const Math math : {Math::f16, Math::bf16, Math::f16x3, Math::bf16x3, Math::tf32x3,
                          Math::bf16x6, Math::bf16x9}) {
    const DeclaredMath declared{DType::float32, DType::float32, DType::float32, math};
    const MagnitudeRange range = magnitude_range(DType::float32, magnitude_of(declared));
    const double unit = error_model(declared).input_unit;
    const auto check = [&](float a, float b) {
      const double exact = static_cast<double>(a) * b;
      const double bound = 2 * unit * range.clamp(a) * range.clamp(b);
      ASSERT_LE(std::fabs(split_product(a, b, math) - exact),
                bound * (1 + 0x1p-20) + std::fabs(exact) * 0x1p-49)
          << name(math) << ": " << a << " times " << b;
    };
    const auto draw = [&] {
      const double fraction = std::uniform_real_distribution<double>(1, 2)(random);
      return static_cast<float>(std::ldexp(fraction, static_cast<int>(pick(random, -34, 14))));
    };
    for (int turn = 0; turn < 200'000; ++turn) check(draw(), draw());
    // Trailing parts and the remaining error are as large as possible.
    for (int exponent = -34; exponent < 15; ++exponent) {
      const float step = std::ldexp(1.0F, exponent - 11);
      for (const float least : {0.0F, 0x1p-24F, 0x1.8p-24F, 0x1p-25F, 0x1p-26F})
        check(std::ldexp(1.0F, exponent) + step - least, std::ldexp(1.0F, exponent) + step - least);
    }
  }
}

// float32's whole range: subnormal numbers and parts, and numbers that would round to infinity.
TEST(Oracle, a_split_keeps_to_its_unit_at_both_ends_of_float32) {
  Random random(tests::random_seed());
  for (const Math math : {Math::bf16x3, Math::tf32x3, Math::bf16x6, Math::bf16x9}) {
    const DeclaredMath declared{DType::float32, DType::float32, DType::float32, math};
    const MagnitudeRange range = magnitude_range(DType::float32, magnitude_of(declared));
    const double unit = error_model(declared).input_unit;
    const auto check = [&](float a, float b) {
      const double exact = static_cast<double>(a) * b;
      const double bound = 2 * unit * range.clamp(a) * range.clamp(b);
      ASSERT_LE(std::fabs(split_product(a, b, math) - exact), bound + std::fabs(exact) * 0x1p-49)
          << name(math) << ": " << a << " times " << b;
    };
    const auto draw = [&](std::int64_t lowest, std::int64_t highest) {
      const double fraction = std::uniform_real_distribution<double>(1, 2)(random);
      return static_cast<float>(
          std::ldexp(fraction, static_cast<int>(pick(random, lowest, highest))));
    };
    constexpr float largest = std::numeric_limits<float>::max();
    for (int turn = 0; turn < 50'000; ++turn) {
      check(draw(-150, -90), draw(-150, 126));
      check(largest * std::uniform_real_distribution<float>(0.99F, 1)(random), draw(-60, 126));
    }
    check(largest, largest);
    check(std::numeric_limits<float>::denorm_min(), largest);
  }
}

// The bound of nine products is smaller than that of native float32, except for very small k.
TEST(Oracle, nine_products_are_held_to_a_smaller_error_than_native_float32) {
  using enum DType;
  const ErrorModel native = error_model({float32, float32, float32});
  for (const Math math : {Math::bf16x6, Math::bf16x9}) {
    const ErrorModel split =
        error_model({float32, float32, float32, math, Arithmetic::tensor_core});
    EXPECT_EQ(split.accumulator_unit, 0x1p-23);
    for (std::int64_t k = 128; k <= 1 << 20; k *= 2)
      EXPECT_LT(split.product_factor(k), native.product_factor(k)) << name(math) << ", " << k;
  }
}

// 70000 is infinite in float16, and infinity times 0 is NaN: the sum has no bound.
TEST(Oracle, a_sum_that_an_element_beyond_float16_reaches_is_open) {
  const float a[2] = {70000, 1};
  const float ones[2] = {1, 1};
  const float with_zero[2] = {0, 1};
  float out[1] = {};
  const auto passes = [&](const float* b, float got) {
    out[0] = got;
    const Tensor column(b, DType::float32, {2, 1}, {1, 1});
    const GemmArguments arguments(Tensor(a, DType::float32, {1, 2}, {2, 1}), column,
                                  Tensor(out, DType::float32, {1, 1}, {1, 1}), {.math = Math::f16});
    return compare_with_oracle(arguments, math_of(arguments)).mismatches == 0;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(passes(ones, infinity));
  EXPECT_TRUE(passes(with_zero, std::nanf("")));
  EXPECT_TRUE(passes(with_zero, 1));
}

}  // namespace
}  // namespace gemmery::host
