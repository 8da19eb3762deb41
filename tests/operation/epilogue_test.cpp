// SPDX-License-Identifier: Apache-2.0
// Epilogues in arguments and problems: binding, broadcasting, and error messages.
#include <gtest/gtest.h>
#include <gemmery/arguments.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gemmery {
namespace {

// Memory that is never read: arguments check only addresses.
struct Memory {
  alignas(64) std::byte bytes[1 << 16];
  const void* at(std::size_t offset) const { return bytes + offset; }
};
const Memory& memory() {
  static const Memory* const one = new Memory;
  return *one;
}

constexpr std::int64_t m = 6, n = 8, k = 4;

Tensor floats(std::size_t offset, std::initializer_list<std::int64_t> shape) {
  return Tensor(memory().at(offset), DType::float32, shape);
}
Tensor a() { return floats(0, {m, k}); }
Tensor b() { return floats(1024, {k, n}); }
Tensor out() { return floats(2048, {m, n}); }

GemmArguments bind(EpilogueArguments epilogue) {
  GemmOptions options;
  options.epilogue = std::move(epilogue);
  return GemmArguments(a(), b(), out(), options);
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}
std::string refusal(std::string_view text, const std::vector<EpilogueOperand>& operands) {
  return refusal([&] { bind({text, operands}); });
}

const EpilogueOperandRule& rule(const GemmArguments& arguments, std::size_t index) {
  return rules_of(arguments.problem().epilogue).operands.at(index);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// --- what is bound ---

struct BroadcastRow {
  const char* what;
  std::vector<std::int64_t> shape;
  bool varies_l, varies_m, varies_n;
};

TEST(EpilogueArguments, inputs_broadcast_by_numpys_rule) {
  constexpr std::int64_t l = 3;
  const std::vector<BroadcastRow> rows{{"a scalar", {}, false, false, false},
                                       {"one element", {1}, false, false, false},
                                       {"one for each batch", {l, 1, 1}, true, false, false},
                                       {"a row", {n}, false, false, true},
                                       {"a row of rank 3", {1, 1, n}, false, false, true},
                                       {"a column", {m, 1}, false, true, false},
                                       {"a column for each batch", {l, m, 1}, true, true, false},
                                       {"a matrix", {m, n}, false, true, true},
                                       {"all", {l, m, n}, true, true, true}};
  for (const BroadcastRow& row : rows) {
    GemmOptions options;
    options.epilogue = EpilogueArguments(
        "D = accum * s", {{"s", Tensor(memory().at(8192), DType::bfloat16, row.shape)}});
    const GemmArguments arguments(floats(0, {l, m, k}), floats(1024, {l, k, n}),
                                  floats(2048, {l, m, n}), options);
    const EpilogueOperandRule& got = rule(arguments, 0);
    EXPECT_EQ(got.varies_l, row.varies_l) << row.what;
    EXPECT_EQ(got.varies_m, row.varies_m) << row.what;
    EXPECT_EQ(got.varies_n, row.varies_n) << row.what;
    EXPECT_EQ(got.dtype, DType::bfloat16);
    const auto& view = std::get<Tensor>(arguments.epilogue_operands().at(0).value);
    EXPECT_EQ(view.rank(), 3);
    EXPECT_EQ(view.extent(1), m) << row.what;
    EXPECT_EQ(view.stride(2) != 0, row.varies_n) << row.what;
  }
}

TEST(EpilogueArguments, an_input_named_C_is_nothing_special) {
  const GemmArguments arguments =
      bind({"D = accum + C", {{"C", Tensor(memory().at(8192), DType::float32, {n})}}});
  EXPECT_FALSE(arguments.c());
  EXPECT_TRUE(rule(arguments, 0).varies_n);
  EXPECT_FALSE(rule(arguments, 0).varies_m);
}

TEST(EpilogueArguments, the_default_program_takes_the_default_path) {
  const GemmArguments arguments = bind(
      {epilogue::linear_combination(),
       {{"alpha", 2.0}, {"beta", 0.5}, {"C", Tensor(memory().at(8192), DType::float32, {n})}}});
  EXPECT_EQ(arguments.problem().epilogue, default_epilogue);
  EXPECT_EQ(arguments.alpha(), 2.0);
  EXPECT_EQ(arguments.beta(), 0.5);
  ASSERT_TRUE(arguments.c());
  EXPECT_TRUE(arguments.epilogue_operands().empty());
}

TEST(EpilogueArguments, the_default_program_with_alpha_in_memory_is_a_program) {
  const GemmArguments arguments = bind({epilogue::linear_combination(),
                                        {{"alpha", Tensor(memory().at(4096), DType::float32, {1})},
                                         {"beta", 0.5},
                                         {"C", Tensor(memory().at(8192), DType::float32, {n})}}});
  EXPECT_NE(arguments.problem().epilogue, default_epilogue);
}

TEST(EpilogueArguments, equal_epilogues_are_one_id_however_they_are_written) {
  const std::vector<EpilogueOperand> bias{{"bias", floats(8192, {n})}};
  EXPECT_EQ(bind({"D = relu(accum + bias)", bias}).problem(),
            bind({"x = bias + accum\nD = relu(x)", bias}).problem());
  EXPECT_NE(bind({"D = relu(accum + bias)", bias}).problem().epilogue,
            bind({"D = gelu(accum + bias)", bias}).problem().epilogue);
}

TEST(EpilogueArguments, another_type_or_variation_is_another_id) {
  const auto id = [](const Tensor& bias) {
    return bind({"D = accum + bias", {{"bias", bias}}}).problem().epilogue;
  };
  const EpilogueId row = id(floats(8192, {n}));
  EXPECT_EQ(row, id(floats(8192 + 64, {n})));
  EXPECT_NE(row, id(Tensor(memory().at(8192), DType::float16, {n})));
  EXPECT_NE(row, id(floats(8192, {m, 1})));
  EXPECT_NE(row, id(floats(8192 + 4, {n}))) << "less aligned";
  EXPECT_EQ(id(floats(8192, {1})), id(floats(8192 + 4, {1}))) << "alone it needs no alignment";
}

TEST(EpilogueArguments, results_say_by_their_shape_what_is_reduced) {
  const GemmArguments arguments =
      bind({"D = accum; rows = sum(D); peak = amax(D)",
            {{"rows", floats(8192, {m, 1})}, {"peak", floats(9000, {1})}}});
  for (const EpilogueOperandRule& one : rules_of(arguments.problem().epilogue).operands) {
    EXPECT_TRUE(one.is_output);
    EXPECT_EQ(one.varies_m, one.name == "rows");
    EXPECT_FALSE(one.varies_n);
  }
}

TEST(EpilogueArguments, an_input_may_be_exactly_out) {
  EXPECT_NO_THROW(bind({"D = accum + residual", {{"residual", out()}}}));
}

// A reduction of all of out is written while other blocks still read, even if out is one element.
TEST(EpilogueArguments, a_result_of_everything_is_no_tensor_that_is_read) {
  const auto bind_one = [](const char* text, std::vector<EpilogueOperand> operands) {
    GemmOptions options;
    options.epilogue = EpilogueArguments(text, std::move(operands));
    GemmArguments(floats(0, {1, 4}), floats(1024, {4, 1}), floats(2048, {1, 1}), options);
  };
  const Tensor one = floats(8192, {1, 1});
  EXPECT_NO_THROW(bind_one("y = accum * t; D = relu(y)", {{"t", one}, {"y", one}}));
  for (const char* const text : {"D = accum * t; s = amax(D)", "D = accum * t; s = sum(D)"}) {
    const std::string refused = refusal([&] { bind_one(text, {{"t", one}, {"s", one}}); });
    EXPECT_TRUE(has(refused, "memory that shares nothing with t")) << refused;
  }
}

TEST(EpilogueArguments, memory_and_numbers_are_patched_by_name) {
  GemmArguments arguments = bind({"D = accum * s + A", {{"s", 2.0}, {"A", floats(8192, {n})}}});
  arguments.set_scalar("s", 3.0);
  arguments.set_data("epilogue.A", memory().at(8192 + 32));
  for (const EpilogueOperand& operand : arguments.epilogue_operands()) {
    if (operand.name == "s") {
      EXPECT_EQ(std::get<double>(operand.value), 3.0);
    } else {
      EXPECT_EQ(std::get<Tensor>(operand.value).data(), memory().at(8224));
    }
  }
  arguments.set_data("A", memory().at(512));
  EXPECT_EQ(arguments.a().data(), memory().at(512));
  EXPECT_TRUE(has(refusal([&] { arguments.set_scalars(1, 0); }), "set_scalar sets a number"));
  EXPECT_TRUE(has(refusal([&] { arguments.set_scalar("A", 1); }), "\"s\""));
  EXPECT_TRUE(
      has(refusal([&] { arguments.set_data("epilogue.A", memory().at(8196)); }), "aligned"));
  EXPECT_TRUE(has(refusal([&] { arguments.set_data("epilogue.A", memory().at(2048 + 16)); }),
                  "partly overlapping"));
}

// --- what is refused ---

TEST(EpilogueArguments, alpha_beta_and_C_beside_a_program_are_refused_by_name) {
  const auto with = [](auto change) {
    return refusal([&] {
      GemmOptions options;
      options.epilogue = EpilogueArguments("D = relu(accum)");
      change(options);
      GemmArguments(a(), b(), out(), options);
    });
  };
  EXPECT_TRUE(has(with([](GemmOptions& options) { options.alpha = 2; }), "gemm: alpha"));
  EXPECT_TRUE(has(with([](GemmOptions& options) { options.beta = 2; }), "gemm: beta"));
  EXPECT_TRUE(has(with([](GemmOptions& options) { options.c = out(); }), "gemm: C"));
}

struct RefusedRow {
  const char* why;
  const char* text;
  std::vector<EpilogueOperand> operands;
  std::vector<const char*> words;
};

TEST(EpilogueArguments, what_does_not_fit_is_refused_by_operand_and_position) {
  const std::vector<RefusedRow> rows{
      {"a size that does not fit",
       "D = accum + bias",
       {{"bias", floats(8192, {n + 1})}},
       {"bias", "(9,)", "column 13", "broadcasts to out's (1, 6, 8)"}},
      {"a higher rank",
       "D = accum + bias",
       {{"bias", floats(8192, {1, 1, 1, n})}},
       {"bias", "(1, 1, 1, 8)"}},
      {"a vector along m without its extent of 1",
       "D = accum + bias",
       {{"bias", floats(8192, {m})}},
       {"bias", "(6,)"}},
      {"a scale type",
       "D = accum * s",
       {{"s", Tensor(memory().at(8192), DType::float8_e8m0fnu, {n})}},
       {"s", "float8_e8m0fnu"}},
      {"no memory",
       "D = accum + bias",
       {{"bias", Tensor(nullptr, DType::float32, {n})}},
       {"bias", "null"}},
      {"an address between elements",
       "D = accum + bias",
       {{"bias", floats(8193, {n})}},
       {"bias", "1 bytes off"}},
      {"another device",
       "D = accum + bias",
       {{"bias", Tensor(memory().at(8192), DType::float32, {n}, Device::cuda(0))}},
       {"bias", "memory on cpu"}},
      {"a part of out", "D = accum + x", {{"x", floats(2048 + 32, {m, n})}}, {"x", "exactly out"}},
      {"a result over A", "y = accum; D = relu(y)", {{"y", floats(0, {m, n})}}, {"y", "A"}},
      {"a result over out", "y = accum; D = relu(y)", {{"y", floats(2048, {m, n})}}, {"y", "out"}},
      {"two results in one place",
       "y = accum; z = -accum; D = relu(y)",
       {{"y", floats(8192, {m, n})}, {"z", floats(8192, {m, n})}},
       {"z", "shares nothing with y"}},
      {"a result that is smaller than out",
       "y = accum; D = relu(y)",
       {{"y", floats(8192, {n})}},
       {"y", "an element for every element", "sum(x)"}},
      {"a reduction that reduces nothing",
       "y = amax(accum); D = accum",
       {{"y", floats(8192, {m, n})}},
       {"y", "the shape of out"}},
      {"a result whose elements overlap",
       "y = accum; D = relu(y)",
       {{"y", Tensor(memory().at(8192), DType::float32, {m, n}, {1, 1})}},
       {"y", "no two elements"}},
      {"a name that the program has not", "D = accum", {{"x", 1.0}}, {"x", "none of them"}},
      {"nothing for a name", "D = accum + x", {}, {"x", "none"}},
      {"a name twice", "D = accum + x", {{"x", 1.0}, {"x", 2.0}}, {"x", "two"}},
      {"a number for a result", "y = accum; D = relu(y)", {{"y", 1.0}}, {"y", "a number"}},
      {"D by its name", "D = accum", {{"D", out()}}, {"D", "stored to out"}}};
  for (const RefusedRow& row : rows) {
    const std::string text = refusal(row.text, row.operands);
    for (const char* const word : row.words)
      EXPECT_TRUE(has(text, word)) << row.why << ": \"" << word << "\" is not in: " << text;
  }
}

TEST(EpilogueArguments, more_operands_than_kernels_take_are_refused) {
  std::string text = "D = accum";
  std::vector<EpilogueOperand> numbers;
  for (int i = 0; i < 17; ++i) {
    text += " + s" + std::to_string(i);
    numbers.push_back({"s" + std::to_string(i), 1.0});
  }
  EXPECT_TRUE(has(refusal(text, numbers), "at most 16 numbers"));
  for (EpilogueOperand& operand : numbers) operand.value = floats(8192, {n});
  EXPECT_TRUE(has(refusal(text, numbers), "at most 16 tensors to read"));
  numbers.pop_back();
  EXPECT_NO_THROW(bind({text.substr(0, text.rfind(" +")), numbers}));
}

// --- problems ---

TEST(EpilogueProblem, arguments_and_their_line_are_one_problem) {
  const std::vector<GemmArguments> all{
      bind({"D = gelu(accum + bias); peak = amax(D)",
            {{"bias", Tensor(memory().at(8192), DType::bfloat16, {n})},
             {"peak", floats(9216, {1})}}}),
      bind({"D = accum * s * x", {{"s", 0.25}, {"x", out()}}}),
      bind({"aux = round(accum); D = relu(aux) * v",
            {{"v", Tensor(memory().at(8192), DType::float16, {m, 1}, {3, 1})},
             {"aux", Tensor(memory().at(16384), DType::int8, {m, n}, {1, 7})}}})};
  for (const GemmArguments& arguments : all) {
    const std::string line = to_string(arguments.problem());
    EXPECT_EQ(parse_problem(line).problem, arguments.problem()) << line;
    EXPECT_EQ(hash_value(parse_problem(line).problem), hash_value(arguments.problem())) << line;
  }
}

// Every shape of a reduction, for outs with and without elements.
TEST(EpilogueProblem, a_result_keeps_its_extents_where_out_has_no_elements) {
  int reduced = 0;
  for (const std::int64_t batches : {0, 1, 3})
    for (const std::int64_t rows : {0, 1, 6})
      for (const std::int64_t columns : {0, 1, 8})
        for (int kept = 0; kept < 8; ++kept) {
          const std::vector<std::int64_t> own{(kept & 4) != 0 ? batches : 1,
                                              (kept & 2) != 0 ? rows : 1,
                                              (kept & 1) != 0 ? columns : 1};
          const std::vector<std::int64_t> of_out{batches, rows, columns};
          if (own[1] == rows && rows != 1 && own[2] == columns && columns != 1 && own[0] == batches)
            continue;  // nothing is reduced, which is refused
          GemmOptions options;
          options.epilogue.emplace(
              std::string_view("D = accum; s = sum(D)"),
              std::vector<EpilogueOperand>{{"s", Tensor(memory().at(16384), DType::float32, own)}});
          const GemmArguments arguments(Tensor(memory().at(0), DType::float32, {batches, rows, k}),
                                        Tensor(memory().at(1024), DType::float32, {k, columns}),
                                        Tensor(memory().at(8192), DType::float32, of_out), options);
          const std::string line = to_string(arguments.problem());
          EXPECT_EQ(parse_problem(line).problem, arguments.problem()) << line;
          const EpilogueOperandRule& of_s = rule(arguments, 0);
          const std::vector<bool> varies{of_s.varies_l, of_s.varies_m, of_s.varies_n};
          for (std::size_t d = 0; d < 3; ++d)
            EXPECT_EQ(varies[d] ? of_out[d] : 1, own[d]) << line << ", extent " << d;
          ++reduced;
        }
  EXPECT_GT(reduced, 150);
  EXPECT_TRUE(has(
      refusal([] { parse_problem("gemm 33x0x24 a=f32 epilogue=\"D = accum; s = sum(D)\" s=f32"); }),
      "nothing is reduced"));
}

TEST(EpilogueProblem, a_line_reads_back_as_itself) {
  const std::vector<const char*> lines{
      "gemm 64x32x16 a=bf16 out=f32 epilogue=\"D = gelu(accum + bias); peak = amax(D)\" "
      "bias=bf16[n] peak=f32[1]",
      "gemm 64x32x16x3 a=f16 epilogue=\"D = accum * scale\" scale=f32[l,1]",
      "gemm 64x32x16 a=f16 epilogue=\"D = accum * scale\" scale=f32:scalar",
      "gemm 64x32x16 a=f16 epilogue=\"D = accum * scale\" scale=0.25",
      "gemm 64x32x16 a=f16 epilogue=\"D = accum * a\" epilogue.a=f32[m]",
      "gemm 64x32x16 a=f16 epilogue=\"D = accum + alpha * c\" alpha=3 c=f16:c/ld=80",
      "gemm 64x32x16 a=f16 epilogue=\"D = accum; rows = sum(D); columns = max(D)\" rows=f32[m] "
      "columns=f64[n]",
      "gemm 2x5x24x0 a=f32 epilogue=\"D = accum; s = sum(D)\" s=f32/strides=2,1/batch=0",
      "gemm 2x5x24x0 a=f32 epilogue=\"D = accum; s = sum(D)\" s=f32:c/ld=7/batch=0",
      "gemm 9x0x24x3 a=f32 epilogue=\"D = accum; s = sum(D)\" s=f32[l,m]/strides=-2,0/batch=50",
      "gemm 9x0x24x3 a=f32 epilogue=\"D = accum; s = sum(D)\" s=f32[m]/strides=5,1"};
  for (const char* const text : lines) {
    const ProblemLine line = parse_problem(text);
    const ProblemLine again = parse_problem(to_string(line));
    EXPECT_EQ(again, line) << to_string(line);
    EXPECT_EQ(to_string(again), to_string(line));
    EXPECT_NE(line.problem.epilogue, default_epilogue);
  }
}

TEST(EpilogueProblem, lines_that_do_not_fit_are_refused_at_their_column) {
  struct Row {
    const char* line;
    std::vector<const char*> words;
  };
  const std::vector<Row> rows{
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum + bias\"", {"bias="}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum + bias\" bias=f32[n] x=f32", {"column 58", "bias"}},
      {"gemm 8x8x8 a=f32 bias=f32[n]", {"epilogue that names them"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum + x\" x=f32[q]", {"[l,m,n]"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum; p = amax(D)\" p=f32", {"p", "shape of out"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum; p = amax(D)\" p=2", {"tensor to store"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum\" epilogue=\"D = accum\"", {"once"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum + x\" x=1 x=2", {"once"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = acum\"", {"acum=", "did you mean accum?"}},
      {"gemm 1000x8x1x2 a=f32/ld=4294967296", {"2^40"}},
      {"gemm 2147483647x8x2147483647x2 a=f32", {"extents", "2^40"}},
      {"gemm 8x1000x8x2 a=f32 epilogue=\"D=accum+x\" x=f32:c[n]/ld=4294967296", {"2^40"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum\" q=f32", {"reads nothing but accum"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = accum + bias\" bia=f32", {"did you mean bias?"}},
      {"gemm 8x8x8 a=f32 epilogue=\"D = alpha*accum + beta*C\" C=f32 c=f32", {"once"}}};
  for (const Row& row : rows) {
    const std::string text = refusal([&] { parse_problem(row.line); });
    for (const char* const word : row.words)
      EXPECT_TRUE(has(text, word)) << row.line << ": \"" << word << "\" is not in: " << text;
  }
}

TEST(EpilogueProblem, the_default_program_keeps_its_fields) {
  EXPECT_EQ(parse_problem("gemm 8x8x8 a=f32 c=f32 epilogue=\"D = alpha*accum + beta*C\" beta=1"),
            parse_problem("gemm 8x8x8 a=f32 c=f32 beta=1"));
  EXPECT_EQ(parse_problem("gemm 8x8x8 a=f32 epilogue=\"D = alpha*accum + beta*C\" "
                          "epilogue.alpha=2 beta=1 C=f32:c"),
            parse_problem("gemm 8x8x8 a=f32 alpha=2 beta=1 c=f32:c"));
}

// Results that are not stored do not change the program, as in arguments.
TEST(EpilogueProblem, the_default_program_is_what_is_left_of_a_longer_one) {
  const std::string text = "gemm 8x8x8 a=f32 epilogue=\"D = alpha*accum + beta*C; s = sum(D * w)\"";
  const ProblemLine plain = parse_problem("gemm 8x8x8 a=f32 alpha=2 beta=1 c=f32");
  for (const char* const operands :
       {" alpha=2 beta=1 C=f32 w=f32[n]", " alpha=2 beta=f32:scalar c=f32 w=3"}) {
    const ProblemLine line = parse_problem(text + operands);
    EXPECT_EQ(line, plain) << operands;
    EXPECT_EQ(parse_problem(to_string(line)), line) << operands;
  }
  const ProblemLine stored = parse_problem(text + " alpha=2 beta=1 C=f32 w=f32[n] s=f32[1]");
  EXPECT_NE(stored.problem.epilogue, default_epilogue);
  EXPECT_EQ(parse_problem(to_string(stored)), stored);
  EXPECT_EQ(
      bind({"D = alpha*accum + beta*C; s = sum(D)", {{"alpha", 2.0}, {"beta", 1.0}, {"C", out()}}})
          .problem(),
      parse_problem("gemm 6x8x4 a=f32 epilogue=\"D = alpha*accum + beta*C; s = sum(D)\" "
                    "alpha=2 beta=1 C=f32")
          .problem);
  EXPECT_THROW(parse_problem(text + " alpha=2 beta=1 C=f32 q=3"), Error);
  // A result with the name of a field of the line is not stored.
  EXPECT_EQ(parse_problem("gemm 8x8x8 a=f32 acc=f32 epilogue=\"D = alpha*accum + beta*C; "
                          "acc = sum(D)\" alpha=2 beta=1 C=f32"),
            plain);
}

TEST(EpilogueProblem, the_default_programs_text_takes_the_numbers_of_its_fields) {
  const std::string text = "gemm 8x8x8 a=f32 epilogue=\"D = alpha*accum + beta*C\" beta=1 c=f32";
  EXPECT_TRUE(std::isinf(parse_problem(text + " alpha=INF").alpha));
  EXPECT_TRUE(std::isnan(parse_problem(text + " alpha=nan").alpha));
  EXPECT_EQ(parse_problem(text + " alpha=f32:scalar").alpha, 1);
}

// The default program's text with other operands than those of GemmOptions is a program like
// others.
TEST(EpilogueProblem, the_default_program_takes_factors_in_memory) {
  const Tensor rows(memory().at(4096), DType::float32, {m, 1});
  const Tensor addend(memory().at(8192), DType::float32, {n});
  const std::vector<std::vector<EpilogueOperand>> all{
      {{"alpha", rows}, {"beta", 0.5}, {"C", addend}},
      {{"alpha", 0.5}, {"beta", rows}, {"C", addend}},
      {{"alpha", rows}, {"beta", rows}, {"C", addend}},
      {{"alpha", 2.0}, {"beta", 0.5}, {"C", 3.0}}};
  for (const auto& operands : all) {
    const GemmArguments arguments = bind({epilogue::linear_combination(), operands});
    EXPECT_NE(arguments.problem().epilogue, default_epilogue);
    const std::string line = to_string(arguments.problem());
    EXPECT_EQ(parse_problem(line).problem, arguments.problem()) << line;
  }
}

TEST(EpilogueProblem, bytes_count_every_operand_once) {
  const double plain = parse_problem("gemm 8x16x8 a=f32").problem.bytes();
  EXPECT_EQ(parse_problem("gemm 8x16x8 a=f32 epilogue=\"D = accum * s + bias; p = amax(D)\" "
                          "s=2 bias=f16[n] p=f32[1]")
                .problem.bytes(),
            plain + 16 * 2 + 4);
}

}  // namespace
}  // namespace gemmery
