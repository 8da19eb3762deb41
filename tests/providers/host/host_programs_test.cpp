// SPDX-License-Identifier: Apache-2.0
// Epilogues on all code paths of the host: random programs compared with intervals, reductions with
// equal bits on any number of threads, empty problems, operands that must not be read; and the
// oracle, which must detect wrong results.
#include <gtest/gtest.h>
#include <gemmery/epilogue.hpp>
#include <gemmery/family.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "api/trial.hpp"
#include "platform/host_info.hpp"
#include "providers/host/host_provider.hpp"
#include "providers/host/plain.hpp"
#include "providers/host/program_oracle.hpp"
#include "providers/host/reference.hpp"
#include "tests/support/random_programs.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::host {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

const std::vector<std::unique_ptr<Family>>& families() {
  static const auto* const all = new auto(make_families());
  return *all;
}

std::vector<RankedKernel> kernels_for(const GemmProblem& problem) {
  std::vector<RankedKernel> kernels;
  for (const auto& family : families())
    if (family->availability()) family->match({problem, platform::host_device_info()}, kernels);
  return kernels;
}

std::string random_product(std::mt19937_64& random) {
  const auto extent = [&](int most) {
    return std::to_string(1 + random() % static_cast<unsigned>(most));
  };
  constexpr const char* types[] = {"f32",          "f16",          "bf16",
                                   "bf16 out=f32", "f16 out=f32",  "f64",
                                   "s8 out=s32",   "e4m3 out=f16", "f32 out=f32:c",
                                   "f16 out=e4m3", "f32 out=s8",   "f16 out=f16/ld=60"};
  std::string line = "gemm " + extent(40) + "x" + extent(50) + "x" + extent(30);
  if (random() % 3 == 0) line += "x" + extent(4);
  return line + " a=" + types[random() % std::size(types)];
}

struct Tally {
  std::int64_t programs = 0, runs = 0, elements = 0, without_bound = 0;
};

void run_everywhere(const std::string& text, std::uint64_t seed, bool with_specials, Tally& tally) {
  SCOPED_TRACE(text + (with_specials ? " with specials" : "") + ", seed " + std::to_string(seed));
  const ProblemLine line = parse_problem(text);
  ASSERT_EQ(parse_problem(to_string(line)), line) << to_string(line);
  const auto kernels = kernels_for(line.problem);
  ASSERT_FALSE(kernels.empty());
  ++tally.programs;
  for (const Kernel& kernel : kernels) {
    const VerifyReport report = api::run_trial(
        {.line = line, .options = {.seed = seed}, .with_specials = with_specials, .repeats = 2},
        kernel);
    EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
    EXPECT_EQ(report.method, "intervals");
    ++tally.runs;
    tally.elements += report.elements;
    tally.without_bound += report.without_bound;
  }
}

TEST(HostPrograms, random_ones_lie_in_their_intervals) {
  const bool is_soak = std::getenv("GEMMERY_SOAK") != nullptr;
  const int count = is_soak ? 1000 : 300;
  Tally tally;
  for (int i = 0; i < count && !HasFailure(); ++i) {
    const std::uint64_t seed = tests::random_seed() + static_cast<std::uint64_t>(i);
    std::mt19937_64 random(seed);
    const std::string product = random_product(random);
    const tests::ProgramLimits limits{.with_blocks = i % 4 == 0};
    run_everywhere(tests::add_random_program(random, product, limits), seed, i % 3 == 0, tally);
  }
  std::printf("%lld programs, %lld runs, %lld elements, %lld of them without a bound\n",
              static_cast<long long>(tally.programs), static_cast<long long>(tally.runs),
              static_cast<long long>(tally.elements), static_cast<long long>(tally.without_bound));
  EXPECT_LT(2 * tally.without_bound, tally.elements) << "most verdicts say nothing";
}

TEST(HostPrograms, every_operation_runs) {
  Tally tally;
  struct Row {
    const char* name;
    int arity;
    const char* kind;
  };
  constexpr Row rows[] = {
#define GEMMERY_OP(name, arity, kind, ...) {#name, arity, #kind},
#include <gemmery/ops.def>
  };
  for (const Row& row : rows) {
    const std::string kind = row.kind;
    const std::string x = kind == "logical" || kind == "choose" ? "(accum > t)" : "accum";
    const std::string y = kind == "logical" ? "(accum < s)" : "t";
    std::string call = std::string(row.name) + "(" + x;
    if (row.arity > 1) call += ", " + y;
    if (row.arity > 2) call += ", s";
    call += ")";
    if (kind == "compare" || kind == "logical") call = "where(" + call + ", 1, 0)";
    const std::string needed =
        std::string(call.find("t)") != std::string::npos || call.find("t,") != std::string::npos
                        ? " t=f16[n]"
                        : "") +
        (call.find(" s") != std::string::npos ? " s=0.5" : "");
    run_everywhere("gemm 33x40x9 a=f32 epilogue=\"D = " + call + "\"" + needed,
                   tests::random_seed(), true, tally);
  }
}

// --- single problems ---

// Operands of small integers, so that sums are exact.
struct SmallProblem {
  std::int64_t l, m, n, k;
  std::vector<float> a, b, out;

  SmallProblem(std::mt19937_64& random, std::int64_t batches, std::int64_t rows,
               std::int64_t columns, std::int64_t depth)
      : l(batches),
        m(rows),
        n(columns),
        k(depth),
        a(static_cast<std::size_t>(l * m * k)),
        b(static_cast<std::size_t>(l * k * n)),
        out(static_cast<std::size_t>(l * m * n), -77.0F) {
    for (auto* const matrix : {&a, &b})
      for (float& x : *matrix) x = static_cast<float>(static_cast<int>(random() % 5) - 2);
  }
  GemmArguments bind(EpilogueArguments epilogue) {
    GemmOptions options;
    options.epilogue = std::move(epilogue);
    return GemmArguments(Tensor(a.data(), DType::float32, {l, m, k}),
                         Tensor(b.data(), DType::float32, {l, k, n}),
                         Tensor(out.data(), DType::float32, {l, m, n}), options);
  }
  double sum(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    double total = 0;
    for (std::int64_t at = 0; at < k; ++at)
      total += a[static_cast<std::size_t>((batch * m + row) * k + at)] *
               b[static_cast<std::size_t>((batch * k + at) * n + column)];
    return total;
  }
};

Tensor view(std::vector<float>& values, std::initializer_list<std::int64_t> shape) {
  return Tensor(values.data(), DType::float32, shape);
}

void run_on_all(const GemmArguments& arguments, const std::function<void(const char*)>& check) {
  for (const Kernel& kernel : kernels_for(arguments.problem())) {
    kernel.run(arguments, {.stream = Stream::cpu()});
    check(kernel.name().c_str());
  }
}

TEST(HostPrograms, reductions_of_integers_are_exact_along_every_extent) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 2, 37, 45, 5);
  std::vector<float> rows(37), columns(45), all(1), batches(2), peaks(2 * 37);
  const GemmArguments arguments =
      problem.bind({"D = accum; rows = sum(D); columns = max(D); all = sum(D); batches = min(D); "
                    "peaks = amax(D)",
                    {{"rows", view(rows, {37, 1})},
                     {"columns", view(columns, {45})},
                     {"all", view(all, {1})},
                     {"batches", view(batches, {2, 1, 1})},
                     {"peaks", view(peaks, {2, 37, 1})}}});
  std::vector<double> want_rows(37), want_columns(45, -infinity), want_batches(2, infinity),
      want_peaks(2 * 37);
  double want_all = 0;
  for (std::int64_t l = 0; l < 2; ++l)
    for (std::int64_t m = 0; m < 37; ++m)
      for (std::int64_t n = 0; n < 45; ++n) {
        const double x = problem.sum(l, m, n);
        const auto row = static_cast<std::size_t>(m), column = static_cast<std::size_t>(n),
                   batch = static_cast<std::size_t>(l);
        want_rows[row] += x;
        want_all += x;
        want_columns[column] = std::max(want_columns[column], x);
        want_batches[batch] = std::min(want_batches[batch], x);
        double& peak = want_peaks[batch * 37 + row];
        peak = std::max(peak, std::fabs(x));
      }
  run_on_all(arguments, [&](const char* kernel) {
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], want_rows[i]) << kernel;
    for (std::size_t i = 0; i < columns.size(); ++i)
      EXPECT_EQ(columns[i], want_columns[i]) << kernel;
    for (std::size_t i = 0; i < batches.size(); ++i)
      EXPECT_EQ(batches[i], want_batches[i]) << kernel;
    for (std::size_t i = 0; i < peaks.size(); ++i) EXPECT_EQ(peaks[i], want_peaks[i]) << kernel;
    EXPECT_EQ(all[0], want_all) << kernel;
  });
}

TEST(HostPrograms, reductions_are_the_same_bits_on_any_number_of_threads) {
  std::mt19937_64 random(tests::random_seed());
  const std::int64_t m = 300, n = 200, k = 40;
  std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
      out(static_cast<std::size_t>(m * n)), rows(static_cast<std::size_t>(m)),
      columns(static_cast<std::size_t>(n)), all(1);
  std::normal_distribution<float> normal;
  for (auto* const matrix : {&a, &b})
    for (float& x : *matrix) x = normal(random);
  GemmOptions options;
  options.epilogue = EpilogueArguments(
      "D = accum; rows = sum(D); columns = sum(D); all = sum(D)",
      {{"rows", view(rows, {m, 1})}, {"columns", view(columns, {n})}, {"all", view(all, {1})}});
  const GemmArguments arguments(view(a, {m, k}), view(b, {k, n}), view(out, {m, n}), options);
  std::vector<std::vector<float>> seen;
  for (const int threads : {1, 2, 3, 2}) {
    run_plain(arguments, tile_kernels(), threads);
    std::vector<float> now = rows;
    now.insert(now.end(), columns.begin(), columns.end());
    now.push_back(all[0]);
    seen.push_back(std::move(now));
  }
  for (const auto& one : seen)
    EXPECT_EQ(std::memcmp(one.data(), seen[0].data(), one.size() * sizeof(float)), 0);
}

TEST(HostPrograms, nan_reaches_every_reduction_that_meets_it) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 1, 3, 4, 2);
  problem.a[0] = static_cast<float>(nan);
  problem.a[1] = 1;
  for (const char* const kind : {"sum", "max", "min", "amax"}) {
    std::vector<float> rows(3);
    const GemmArguments arguments = problem.bind(
        {std::string("D = accum; rows = ") + kind + "(D)", {{"rows", view(rows, {3, 1})}}});
    run_on_all(arguments, [&](const char* kernel) {
      EXPECT_TRUE(std::isnan(rows[0])) << kind << " " << kernel;
      EXPECT_FALSE(std::isnan(rows[1])) << kind << " " << kernel;
    });
  }
}

TEST(HostPrograms, reductions_of_nothing_are_written) {
  struct Row {
    const char* kind;
    double result;
  };
  for (const Row& row :
       {Row{"sum", 0}, Row{"amax", 0}, Row{"max", -infinity}, Row{"min", infinity}}) {
    std::mt19937_64 random(1);
    SmallProblem problem(random, 1, 0, 4, 2);
    std::vector<float> all{5}, columns(4, 5.0F);
    const GemmArguments arguments = problem.bind(
        {std::string("D = accum; all = ") + row.kind + "(D); columns = " + row.kind + "(D)",
         {{"all", view(all, {1})}, {"columns", view(columns, {4})}}});
    run_on_all(arguments, [&](const char* kernel) {
      EXPECT_EQ(all[0], row.result) << kernel;
      for (const float one : columns) EXPECT_EQ(one, row.result) << kernel;
    });
  }
}

TEST(HostPrograms, no_depth_gives_the_program_of_zero) {
  std::mt19937_64 random(1);
  SmallProblem problem(random, 1, 3, 4, 0);
  run_on_all(problem.bind({"D = sigmoid(accum) + 1"}), [&](const char* kernel) {
    for (const float one : problem.out) EXPECT_EQ(one, 1.5F) << kernel;
  });
}

TEST(HostPrograms, the_default_program_with_beta_0_does_not_read_C) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 1, 5, 7, 3);
  std::vector<float> c(35, static_cast<float>(nan));
  const GemmArguments arguments = problem.bind(
      {epilogue::linear_combination(), {{"alpha", 1.0}, {"beta", 0.0}, {"C", view(c, {5, 7})}}});
  run_on_all(arguments, [&](const char* kernel) {
    EXPECT_EQ(problem.out[0], problem.sum(0, 0, 0)) << kernel;
    for (const float one : problem.out) EXPECT_FALSE(std::isnan(one)) << kernel;
  });
}

TEST(HostPrograms, a_tensor_that_is_exactly_out_is_read_before_it_is_written) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 2, 30, 70, 4);
  run_on_all(problem.bind({"D = accum + residual", {{"residual", view(problem.out, {2, 30, 70})}}}),
             [&](const char* kernel) {
               EXPECT_EQ(problem.out[71], problem.sum(0, 1, 1) - 77) << kernel;
               std::ranges::fill(problem.out, -77.0F);
             });
}

TEST(HostPrograms, casts_of_f16_overflow_as_they_say) {
  std::mt19937_64 random(1);
  SmallProblem problem(random, 1, 1, 1, 1);
  problem.a = {300};
  problem.b = {300};
  struct Row {
    const char* text;
    double result;
  };
  for (const Row& row :
       {Row{"D = cast(accum, f16)", infinity}, Row{"D = cast(-accum, f16)", -infinity},
        Row{"D = cast(accum, f16, saturate)", 65504},
        Row{"D = cast(accum, f16, toward_zero)", 65504}, Row{"D = cast(accum, s8)", 127},
        Row{"D = cast(accum, e5m2)", infinity}, Row{"D = cast(accum, e4m3, saturate)", 448}}) {
    run_on_all(problem.bind({row.text}), [&](const char* kernel) {
      EXPECT_EQ(problem.out[0], row.result) << row.text << " " << kernel;
    });
  }
  run_on_all(problem.bind({"D = cast(accum, e4m3)"}),
             [&](const char*) { EXPECT_TRUE(std::isnan(problem.out[0])); });
}

TEST(HostPrograms, a_prepared_launch_takes_new_memory_and_numbers) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 1, 3, 4, 2);
  std::vector<float> bias(8, 1.0F);
  const GemmArguments arguments =
      problem.bind({"D = accum * s + bias", {{"s", 1.0}, {"bias", view(bias, {4})}}});
  for (const Kernel& kernel : kernels_for(arguments.problem())) {
    PreparedLaunch launch = kernel.compile(Target::cpu()).bind(arguments);
    std::vector<float> other(8, 10.0F);
    launch.set_scalar("s", 2);
    launch.set_data("bias", other.data());
    launch.launch(Stream::cpu());
    EXPECT_EQ(problem.out[5], 2 * problem.sum(0, 1, 1) + 10) << kernel.name();
  }
}

// --- discovery ---

TEST(HostPrograms, names_carry_the_program_and_read_back) {
  const ProblemLine line =
      parse_problem("gemm 8x8x8 a=f32 epilogue=\"D = relu(accum + bias)\" bias=f32[n]");
  for (const Kernel& kernel : kernels_for(line.problem)) {
    EXPECT_NE(kernel.name().find("_e-" + digest(line.problem.epilogue)), std::string::npos);
    const auto read = kernel.family().parse_name(kernel.name());
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, kernel);
    EXPECT_EQ(kernel.metadata().epilogue, "D = relu(accum + bias)");
  }
}

TEST(HostPrograms, a_kernel_refuses_another_program_in_the_words_of_both) {
  const auto problem = [](const char* program) {
    return parse_problem(std::string("gemm 8x8x8 a=f32 epilogue=\"") + program + "\"").problem;
  };
  const GemmProblem relu = problem("D = relu(accum)");
  const GemmProblem tanh = problem("D = tanh(accum)");
  for (const Kernel& kernel : kernels_for(relu)) {
    EXPECT_TRUE(kernel.supports(relu, platform::host_device_info()));
    for (const GemmProblem& other : {tanh, parse_problem("gemm 8x8x8 a=f32").problem}) {
      const Status status = kernel.supports(other, platform::host_device_info());
      ASSERT_FALSE(status);
      EXPECT_NE(status.error().find("relu(accum)"), std::string::npos) << status.error();
      EXPECT_NE(status.error().find(text(other.epilogue)), std::string::npos) << status.error();
    }
  }
}

TEST(HostPrograms, better_aligned_operands_are_served_and_worse_are_not) {
  const auto problem = [](const char* bias) {
    return parse_problem(std::string("gemm 8x8x8 a=f32 epilogue=\"D = accum + bias\" bias=f32[n]") +
                         bias)
        .problem;
  };
  for (const Kernel& kernel : kernels_for(problem("/align=8"))) {
    EXPECT_TRUE(kernel.supports(problem(""), platform::host_device_info()));
    const Status status = kernel.supports(problem("/align=4"), platform::host_device_info());
    EXPECT_NE(status.error().find("bias"), std::string::npos) << status.error();
  }
}

// --- the oracle ---

TEST(ProgramOracle, notices_a_wrong_element_of_any_result) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 2, 20, 30, 6);
  std::vector<float> aux(2 * 20 * 30), rows(20), bias(30);
  std::normal_distribution<float> normal;
  for (float& x : bias) x = normal(random);
  const GemmArguments arguments = problem.bind({"aux = accum + bias; D = gelu(aux); rows = sum(D)",
                                                {{"bias", view(bias, {30})},
                                                 {"aux", view(aux, {2, 20, 30})},
                                                 {"rows", view(rows, {20, 1})}}});
  const DeclaredMath declared{
      .a = DType::float32, .b = DType::float32, .accumulator = DType::float32};
  run_plain(arguments);
  const Comparison right = compare_program_with_oracle(arguments, declared);
  EXPECT_EQ(right.mismatches, 0);
  EXPECT_EQ(right.elements, 2 * 2 * 20 * 30 + 20);
  struct Row {
    const char* output;
    float* element;
  };
  for (const Row& row :
       {Row{"out", &problem.out[77]}, Row{"aux", &aux[601]}, Row{"rows", &rows[7]}}) {
    const float before = *row.element;
    for (const float wrong : {before + std::fabs(before) * 0x1p-10F + 0x1p-10F,
                              static_cast<float>(nan), static_cast<float>(infinity)}) {
      *row.element = wrong;
      const Comparison comparison = compare_program_with_oracle(arguments, declared);
      EXPECT_EQ(comparison.mismatches, 1) << row.output << " " << wrong;
      ASSERT_TRUE(comparison.first);
      EXPECT_EQ(comparison.first->output, row.output);
    }
    *row.element = before;
  }
}

// Pairs of similar programs: the results of one are checked with the other.
TEST(ProgramOracle, notices_another_program) {
  struct Row {
    const char* run;
    const char* judged;
  };
  const Row rows[] = {{"D = gelu(accum)", "D = gelu_tanh(accum)"},
                      {"D = accum * sigmoid(1.7 * accum)", "D = accum * sigmoid(1.702 * accum)"},
                      {"D = accum", "D = cast(accum, bf16)"},
                      {"D = relu(accum)", "D = leaky_relu(accum, 0.001)"},
                      {"D = floor(accum)", "D = round(accum)"},
                      {"D = cast(accum, f16, toward_zero)", "D = cast(accum, f16)"},
                      {"D = tanh(accum)", "D = erf(accum)"},
                      {"D = accum; r = max(D)", "D = accum; r = amax(D)"},
                      {"D = accum; r = sum(D)", "D = accum; r = sum(relu(D))"}};
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 1, 20, 30, 6);
  for (auto* const matrix : {&problem.a, &problem.b})
    for (float& x : *matrix) x = std::normal_distribution<float>()(random);
  std::vector<float> reduced(20);
  const auto bind = [&](std::string_view text) {
    std::vector<EpilogueOperand> operands;
    if (text.find("r =") != std::string_view::npos)
      operands.push_back({"r", view(reduced, {20, 1})});
    return problem.bind({text, operands});
  };
  const DeclaredMath declared{
      .a = DType::float32, .b = DType::float32, .accumulator = DType::float32};
  for (const Row& row : rows) {
    run_plain(bind(row.run));
    EXPECT_EQ(compare_program_with_oracle(bind(row.run), declared).mismatches, 0) << row.run;
    EXPECT_GT(compare_program_with_oracle(bind(row.judged), declared).mismatches, 0) << row.judged;
  }
}

// 1 / ((x + 1) - x - 1) divides by a rounding error: any result passes, and the element is counted.
TEST(ProgramOracle, counts_elements_about_which_it_says_nothing) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 1, 20, 30, 6);
  std::vector<float> aux(20 * 30);
  const GemmArguments arguments =
      problem.bind({"aux = accum + 1; D = 1 / (aux - accum - 1)", {{"aux", view(aux, {20, 30})}}});
  const DeclaredMath declared{
      .a = DType::float32, .b = DType::float32, .accumulator = DType::float32};
  run_plain(arguments);
  const Comparison comparison = compare_program_with_oracle(arguments, declared);
  EXPECT_EQ(comparison.mismatches, 0);
  EXPECT_EQ(comparison.elements, 2 * 20 * 30);
  EXPECT_EQ(comparison.without_bound, 20 * 30);
}

TEST(ProgramOracle, samples_rows_of_problems_that_are_too_large) {
  std::mt19937_64 random(tests::random_seed());
  SmallProblem problem(random, 2, 20, 30, 6);
  std::vector<float> peak(1), rows(40);
  const GemmArguments arguments =
      problem.bind({"D = tanh(accum); peak = amax(D); rows = sum(D)",
                    {{"peak", view(peak, {1})}, {"rows", view(rows, {2, 20, 1})}}});
  const DeclaredMath declared{
      .a = DType::float32, .b = DType::float32, .accumulator = DType::float32};
  run_plain(arguments);
  const RowSample sample = check_rows_of_program(arguments, declared, 10, 1);
  EXPECT_EQ(sample.comparison.mismatches, 0);
  EXPECT_EQ(sample.skipped, 1);
  EXPECT_EQ(sample.comparison.elements, 10 * 31);
}

// Scales of blocks along k belong to the rows that are judged, in either layout.
TEST(ProgramOracle, sampled_rows_have_their_scales) {
  std::mt19937_64 random(tests::random_seed());
  constexpr int m = 33, n = 30, k = 96;
  std::uniform_int_distribution<int> codes(-8, 7), exponents(120, 134);
  std::vector<std::int8_t> a(std::size_t{m} * k), b(std::size_t{k} * n);
  for (auto* const codes_of : {&a, &b})
    for (std::int8_t& code : *codes_of) code = static_cast<std::int8_t>(codes(random));
  std::vector<std::uint8_t> scales(128 * 4);
  for (std::uint8_t& scale : scales) scale = static_cast<std::uint8_t>(exponents(random));
  std::vector<float> factors(std::size_t{3} * 2, 0.5F), bias(n, 1.0F), out(std::size_t{m} * n);
  for (float& factor : factors) factor = static_cast<float>(codes(random));
  const auto of = [](auto& data, DType dtype, std::initializer_list<std::int64_t> shape) {
    return Tensor(data.data(), dtype, std::vector<std::int64_t>(shape));
  };
  for (const bool is_swizzled : {true, false}) {
    const Tensor scale = is_swizzled ? of(scales, DType::float8_e8m0fnu, {512})
                                     : of(scales, DType::float8_e8m0fnu, {m, 3});
    const ScaledOperand left(
        of(a, DType::int8, {m, k}),
        {{scale, {1, 32}, is_swizzled ? ScaleLayout::swizzled_128x4 : ScaleLayout::strided}});
    const ScaledOperand right(
        of(b, DType::int8, {k, n}),
        {{of(factors, DType::float32, {3, 2}), {16, 32}, ScaleLayout::strided}});
    const GemmArguments arguments(
        left, right, of(out, DType::float32, {m, n}), DType::float32,
        {.epilogue = EpilogueArguments("D = relu(accum) + bias",
                                       {{"bias", of(bias, DType::float32, {n})}})});
    const DeclaredMath declared{
        .a = DType::float32, .b = DType::float32, .accumulator = DType::float32};
    run_plain(arguments);
    const RowSample sample = check_rows_of_program(arguments, declared, 10, 1);
    EXPECT_EQ(sample.comparison.mismatches, 0) << is_swizzled;
    EXPECT_EQ(sample.comparison.elements, 10 * n);
    for (float& value : out) value *= 2;
    EXPECT_GT(check_rows_of_program(arguments, declared, 10, 1).comparison.mismatches, 0);
  }
}

}  // namespace
}  // namespace gemmery::host
