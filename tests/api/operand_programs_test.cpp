// SPDX-License-Identifier: Apache-2.0
// Programs of operands: on the CPU against their formulas in double, random ones against the oracle
// on the CPU and by simt on an emulated H200; their spelling, their identity, their refusals.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/number.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_scaled.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery {
namespace {

bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

// A packed matrix of its own.
struct Matrix {
  std::vector<std::byte> bytes;
  DType dtype;
  std::int64_t rows, columns;

  Matrix(DType type, std::int64_t row_count, std::int64_t column_count)
      : bytes(static_cast<std::size_t>(row_count * column_count) * byte_width(type)),
        dtype(type),
        rows(row_count),
        columns(column_count) {}
  void set(std::int64_t row, std::int64_t column, double value) {
    number::store(dtype, bytes.data(), row * columns + column, {value, 0});
  }
  double at(std::int64_t row, std::int64_t column) const {
    return number::load(dtype, bytes.data(), row * columns + column);
  }
  Tensor view() const { return Tensor(bytes.data(), dtype, {rows, columns}); }
};

class OperandPrograms : public ::testing::Test {
 protected:
  std::mt19937_64 random_{tests::random_seed()};

  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  Matrix draw(DType dtype, std::int64_t rows, std::int64_t columns) {
    Matrix made(dtype, rows, columns);
    const int least = facts(dtype).kind == DTypeKind::unsigned_integer ? 0 : -4;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        made.set(row, column, least + below(9));
    return made;
  }
  std::string pick(std::initializer_list<const char*> words) {
    return words.begin()[below(static_cast<int>(words.size()))];
  }

  void expect_all_pass(const ProblemLine& line, Device device, std::size_t most) {
    const std::vector<RankedKernel> kernels = get_kernels(line.problem, device_info(device));
    ASSERT_FALSE(kernels.empty()) << to_string(line);
    for (std::size_t at = 0; at < std::min(kernels.size(), most); ++at) {
      const VerifyReport report =
          verify(line, kernels[at], {.seed = random_() | 1, .device = device});
      EXPECT_TRUE(report.passed) << to_string(line) << '\n'
                                 << kernels[at].name() << ": " << report.first_failure;
    }
  }
};

// Values on which every operation of the formula is exact.
struct Row {
  const char* text;  // of A, whose rows are m and columns k; gate (m, k), by_k (k), by_m (m, 1)
  DType dtype;
  std::function<double(double a, double gate, double by_k, double by_m)> formula;
};

TEST_F(OperandPrograms, give_what_their_formulas_give) {
  const Row rows[] = {
      {"A = relu(a) * gate", DType::float32,
       [](double a, double gate, double, double) { return std::max(a, 0.0) * gate; }},
      {"A = (a - by_k) * by_m", DType::float16,
       [](double a, double, double by_k, double by_m) { return (a - by_k) * by_m; }},
      {"A = where(gate > 0, a, 0)", DType::bfloat16,
       [](double a, double gate, double, double) { return gate > 0 ? a : 0; }},
      {"half = a * 0.5; A = half * half + by_k", DType::float64,
       [](double a, double, double by_k, double) { return a * a / 4 + by_k; }},
      {"def f(a, by_m): return abs(a) - by_m", DType::float8_e4m3fn,
       [](double a, double, double, double by_m) { return std::fabs(a) - by_m; }},
      {"lambda a, by_k: max(a, by_k)", DType::int8,
       [](double a, double, double by_k, double) { return std::max(a, by_k); }},
      {"A = cast(a * 3 + 0.5, f32)", DType::uint8,
       [](double a, double, double, double) { return a * 3 + 0.5; }},
      {"A = slope * a", DType::float32, [](double a, double, double, double) { return 0.25 * a; }},
  };
  constexpr std::int64_t m = 9, n = 11, k = 37;
  for (const Row& row : rows)
    for (const bool is_a : {true, false}) {
      // B is A transposed: its program is that of A in other letters.
      const Matrix x = draw(row.dtype, m, k);
      const Matrix gate = draw(DType::float16, m, k), by_k = draw(DType::float32, 1, k),
                   by_m = draw(DType::float32, m, 1);
      const DType other = row.dtype == DType::float64 ? DType::float64 : DType::float32;
      const Matrix y = draw(other, k, n);
      Matrix out(other, is_a ? m : n, is_a ? n : m);
      const epilogue::Program program =
          read_operand_program(row.text, operand_of_program(row.text));
      const auto turned = [&](const Tensor& tensor) {
        if (is_a) return tensor;
        return Tensor(tensor.data(), tensor.dtype(), {tensor.extent(1), tensor.extent(0)},
                      {tensor.stride(1), tensor.stride(0)});
      };
      std::vector<EpilogueOperand> operands;
      for (const std::string& name : program.inputs())
        if (name == "slope")
          operands.push_back({name, 0.25});
        else
          operands.push_back({name, turned(name == "gate"   ? gate.view()
                                           : name == "by_k" ? by_k.view()
                                                            : by_m.view())});
      const ScaledOperand changed(turned(x.view()), OperandProgram(program, operands));
      const ScaledOperand plain(turned(y.view()));
      const GemmArguments arguments = is_a ? GemmArguments(changed, plain, out.view())
                                           : GemmArguments(plain, changed, out.view());
      for (const RankedKernel& kernel : get_kernels(arguments)) {
        kernel.run(arguments, {.stream = Stream::cpu()});
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t at = 0; at < k; ++at)
              sum += row.formula(x.at(i, at), gate.at(i, at), by_k.at(0, at), by_m.at(i, 0)) *
                     y.at(at, j);
            ASSERT_EQ(is_a ? out.at(i, j) : out.at(j, i), sum) << kernel.name() << row.text;
          }
        const VerifyReport report = check_result(arguments, kernel);
        EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
        EXPECT_EQ(find_kernel(kernel.name()), Kernel(kernel));
      }
    }
}

TEST_F(OperandPrograms, come_after_zero_points_and_scales) {
  constexpr std::int64_t m = 5, n = 6, k = 64;
  const Matrix codes = draw(DType::int8, m, k), zero = draw(DType::int8, m, 2),
               scale = draw(DType::float32, m, 2), y = draw(DType::float32, k, n);
  Matrix out(DType::float32, m, n);
  ScaledOperand a(codes.view(), {{scale.view(), scale_block::mx, ScaleLayout::strided}},
                  Companion{zero.view(), scale_block::mx, ScaleLayout::strided});
  a.program = OperandProgram("A = relu(a)");
  const GemmArguments arguments(a, ScaledOperand(y.view()), out.view());
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    kernel.run(arguments, {.stream = Stream::cpu()});
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t at = 0; at < k; ++at)
          sum += std::max((codes.at(i, at) - zero.at(i, at / 32)) * scale.at(i, at / 32), 0.0) *
                 y.at(at, j);
        ASSERT_EQ(out.at(i, j), sum) << kernel.name();
      }
  }
}

// A scale of rows multiplies sums, but not beside a program, which it must precede.
TEST_F(OperandPrograms, keep_scales_with_the_elements) {
  const GemmProblem problem =
      parse_problem("gemm 4x4x4 a=f32 scale_a=f32[row] program_a=\"A = a * a\"").problem;
  EXPECT_EQ(problem.a_companions.scales.size(), 1u);
  const Matrix x = draw(DType::float32, 4, 4), scale = draw(DType::float32, 4, 1),
               y = draw(DType::float32, 4, 4);
  Matrix out(DType::float32, 4, 4);
  ScaledOperand a(x.view(), {{scale.view(), scale_block::row, ScaleLayout::strided}});
  a.program = OperandProgram(epilogue::element() * epilogue::element());
  const GemmArguments arguments(a, ScaledOperand(y.view()), out.view());
  EXPECT_EQ(arguments.problem().epilogue, default_epilogue);
  get_kernels(arguments).front().run(arguments, {.stream = Stream::cpu()});
  double sum = 0;
  for (std::int64_t at = 0; at < 4; ++at)
    sum += std::pow(x.at(2, at) * scale.at(2, 0), 2) * y.at(at, 3);
  EXPECT_EQ(out.at(2, 3), sum);
}

// --- random problems ----------------------------------------------------------------------------

class RandomPrograms : public OperandPrograms {
 protected:
  tests::RandomOperandPrograms problems_{random_()};
};

TEST_F(RandomPrograms, print_as_lines_that_read_back) {
  for (int trial = 0; trial < (is_soak() ? 3000 : 200); ++trial) {
    const std::string text = below(4) == 0 ? problems_.grouped_line() : problems_.line(70);
    const ProblemLine read = parse_problem(text);
    const std::string printed = to_string(read);
    EXPECT_EQ(parse_problem(printed), read) << text << '\n' << printed;
    EXPECT_EQ(to_string(parse_problem(printed)), printed);
    EXPECT_EQ(hash_value(parse_problem(printed).problem), hash_value(read.problem));
  }
}

TEST_F(RandomPrograms, of_the_cpu_are_within_their_bounds) {
  for (int trial = 0; trial < (is_soak() ? 2000 : 60); ++trial)
    expect_all_pass(parse_problem(trial % 4 == 0 ? problems_.grouped_line() : problems_.line(50)),
                    Device::cpu(), 4);
}

class EmulatedPrograms : public RandomPrograms {
 protected:
  void SetUp() override {
    const jit::CompilerStatus status = jit::compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }
};

TEST_F(EmulatedPrograms, of_simt_are_within_their_bounds) {
  const Device device = parse_device("emulated:h200").value();
  // On CUDA cores float64 accumulates float64 alone.
  const std::string of_doubles = "gemm 17x9x33 a=f64" + problems_.program(true, false);
  expect_all_pass(parse_problem(of_doubles), device, 1);
  for (int trial = 0; trial < (is_soak() ? 200 : 3); ++trial) {
    std::string text = trial % 3 == 0 ? problems_.grouped_line() : problems_.line(40);
    constexpr std::string_view doubles = " acc=f64";
    if (const std::size_t at = text.find(doubles); at != std::string::npos)
      text.erase(at, doubles.size());
    expect_all_pass(parse_problem(text), device, is_soak() ? 2 : 1);
  }
}

// Files hold the problem's line, from which other processes read the programs.
TEST_F(EmulatedPrograms, in_artifact_files_need_a_line) {
  const ProblemLine line = parse_problem("gemm 8x8x8 a=f32 program_a=\"A = a * s\" s=0.5");
  const Kernel kernel = get_kernels(line.problem, device_info("h200")).front();
  const Artifact artifact = kernel.compile(parse_target("sm_90"));
  const tests::TemporaryFolder folder;
  const std::string path = folder / "programs.gem";
  const StoredArtifact stored[] = {{artifact, {to_string(line)}}};
  save_artifacts(path, stored);
  EXPECT_EQ(load_artifacts(path).at(0).artifact.kernel(), kernel);
  const StoredArtifact unnamed[] = {{artifact, {}}};
  EXPECT_NE(std::string(tests::error_of([&] { save_artifacts(path, unnamed); }).what())
                .find("a problem's line with the programs"),
            std::string::npos);
}

// --- identity and refusals ----------------------------------------------------------------------

std::string refusal(const std::string& line) {
  return tests::error_of([&] { parse_problem(line); }).what();
}

void expect_refusal(const std::string& line, std::string_view part) {
  const std::string message = refusal(line);
  EXPECT_NE(message.find(part), std::string::npos) << line << '\n' << message;
}

TEST(OperandProgramText, names_the_operand_and_reads_back) {
  const auto text = [](std::string_view given) {
    const ProductOperand operand = operand_of_program(given);
    return operand_program_text(read_operand_program(given, operand), operand);
  };
  EXPECT_EQ(text("A = gate * relu(a)"), "A = gate * relu(a)");
  EXPECT_EQ(text(text("B = (b - 8) * s")), text("B = (b - 8) * s"));
  EXPECT_EQ(text("def f(a, gate):\n  return relu(a) * gate"), text("A = relu(a) * gate"));
  EXPECT_EQ(operand_of_program("lambda b: b * 2"), ProductOperand::b);
}

TEST(OperandProgramText, refuses_what_an_operand_cannot_be) {
  const auto refuse = [](std::string_view text, std::string_view part) {
    const std::string message = tests::error_of([&] { OperandProgram given(text); }).what();
    EXPECT_NE(message.find(part), std::string::npos) << text << '\n' << message;
  };
  refuse("D = relu(accum)", "an assignment to either A or B");
  refuse("A = relu(accum)", "'accum' at line 1, column 10");
  refuse("A = gelo(a)", "program_a: expected a function of the grammar, got 'gelo'");
  refuse("A = sum(a)", "not a reduction");
  refuse("A = a / block_amax(a, 1, 32)", "a reduction of blocks (node");
  refuse("def f(a):\n  A = a\n  peak = a * 2\n  return A, peak", "a further result, peak");
  refuse("A = a * gate", "program_a operand gate: expected a tensor or a number");
  refuse("lambda accum: accum", "one of the parameters a and b");
  refuse("a = 2; A = a", "a is the element; give the value another name");
}

TEST(OperandProgramLines, are_refused_by_name) {
  expect_refusal("gemm 8x8x8 a=f16 program_a=\"B = b\"", "program_a");
  expect_refusal("gemm 8x8x8 a=f16 program_a=\"A = a * gate\"", "a field a.gate=");
  expect_refusal("gemm 8x8x8 a=f16 program_a=\"A = a * gate\" gate=f16[m,n]", "[m], [k], [1]");
  expect_refusal("gemm 8x8x8 a=f16 program_a=\"A = a * gate\" a.gat=f16", "a name of program_a");
  expect_refusal("gemm 8x8x8 a=f16 program_a=\"A = a * t\" t=f16[k,m]", "[m], [k], [1], [m,k]");
  expect_refusal("gemm 8x8x8 a=f16 program_b=\"B = b * t\" t=f16[l]", "[k], [n], [1], [k,n]");
  expect_refusal("gemm 8x8x8 a=f16 b.gate=f16", "a field program_b=");
  expect_refusal("gemm 8x8x8 a=f16 program_a=\"A = a * t\" program_b=\"B = b * t\" t=f16",
                 "a prefix where several programs");
  expect_refusal("gemm 8x8x8 a=f16 program_a=\"A = a\" acc=f16", "float32 or float64");
  expect_refusal("gemm 8x8x8 a=f32 program_a=\"A = a\" math=tf32", "native");
  expect_refusal("gemm 8x8x8 a=f32 program_a=\"A = cast(a, f64)\"", "float64 for products");
  expect_refusal("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f16 program_a=\"A = a\"",
                 "none for a convolution");
  expect_refusal("grouped_gemm 8x8x8 groups=2 list=host a=f16 program_a=\"A = a\"", "program_a");
  expect_refusal("gemm 64x64x64 a=f16 b=s4:c program_b=\"B = b\" order_b=fragments", "program_b");
}

TEST(OperandProgramLines, have_an_identity_of_their_own) {
  const auto problem = [](const std::string& fields) {
    return parse_problem("gemm 64x64x64 a=f16 " + fields).problem;
  };
  const GemmProblem plain = problem("");
  const GemmProblem relu = problem("program_a=\"A = relu(a)\"");
  EXPECT_NE(plain, relu);
  EXPECT_NE(hash_value(plain), hash_value(relu));
  EXPECT_NE(relu, problem("program_a=\"A = abs(a)\""));
  EXPECT_NE(relu, problem("program_b=\"B = relu(b)\""));
  EXPECT_EQ(problem("program_a=\"A = a * t\" t=f16[k]"),
            problem("program_a=\"A = t * a\" a.t=f16[k]"));
  EXPECT_GT(problem("program_a=\"A = a * t\" t=f16").bytes(), relu.bytes());
}

TEST(OperandProgramLines, read_back_where_the_epilogue_has_the_same_names) {
  for (const char* const epilogue : {"D = accum * g", "g = accum * 2; D = accum"}) {
    const ProblemLine line = parse_problem(
        "gemm 8x4x16 a=f32 program_a=\"A = a * g\" a.g=0.5 program_b=\"B = b + h\" "
        "b.h=f32[k] epilogue.g=f32[m,n] epilogue=\"" +
        std::string(epilogue) + "\"");
    const ProblemLine again = parse_problem(to_string(line));
    EXPECT_EQ(again.problem, line.problem) << to_string(line);
    EXPECT_EQ(to_string(again), to_string(line));
  }
}

TEST(OperandProgramLines, have_kernels_whose_names_read_back) {
  for (const char* const line : {"gemm 8x8x8 a=f64 b=s8 program_a=\"A = a * 2\" out=f32",
                                 "gemm 8x8x8 a=s4 b=f64 program_a=\"A = a * 2\" out=f32",
                                 "gemm 8x8x8 a=e4m3 b=u8 program_b=\"B = b - 128\" out=f16"}) {
    const std::vector<RankedKernel> kernels =
        get_kernels(parse_problem(line).problem, device_info(Device::cpu()));
    EXPECT_FALSE(kernels.empty()) << line;
    for (const RankedKernel& kernel : kernels)
      EXPECT_EQ(find_kernel(kernel.name()), std::optional<Kernel>(kernel)) << kernel.name();
  }
}

// Families without programs name the node that they cannot compute.
TEST(OperandProgramLines, are_refused_by_node_by_other_families) {
  const GemmProblem problem =
      parse_problem("gemm 512x512x512 a=f16 program_a=\"A = relu(a) * gate\" gate=f16[m,k]")
          .problem;
  bool is_simt_fitting = false;
  for (const Reason& reason : explain(problem, device_info("h200")).reasons) {
    if (reason.family == "simt") is_simt_fitting |= reason.fitting > 0;
    if (reason.family != "sm90") continue;
    EXPECT_NE(reason.failed.find("\"A = gate * relu(a)\" (its node "), std::string::npos)
        << reason.failed;
    EXPECT_NE(reason.failed.find(": relu)"), std::string::npos) << reason.failed;
  }
  EXPECT_TRUE(is_simt_fitting);
}

TEST(OperandProgramArguments, check_shapes_names_and_overlaps) {
  std::vector<float> memory(4096);
  const Tensor a(memory.data(), DType::float32, {4, 8}),
      b(memory.data() + 64, DType::float32, {8, 4});
  const Tensor out(memory.data() + 512, DType::float32, {4, 4});
  const auto refuse = [&](const OperandProgram& program, bool is_a, std::string_view part) {
    const ScaledOperand one(is_a ? a : b, program);
    const std::string message = tests::error_of([&] {
                                  if (is_a)
                                    GemmArguments(one, ScaledOperand(b), out);
                                  else
                                    GemmArguments(ScaledOperand(a), one, out);
                                }).what();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const auto gate = [&](std::initializer_list<std::int64_t> shape) {
    return std::vector<EpilogueOperand>{
        {"gate", Tensor(memory.data() + 1024, DType::float32, shape)}};
  };
  refuse(OperandProgram("A = a * gate", gate({4})), true,
         "a.gate: expected a shape that broadcasts");
  refuse(OperandProgram("B = b * gate", gate({4, 8})), false, "B's (L, K, N)");
  refuse(OperandProgram("A = a * gate", gate({4, 8})), false, "a program that assigns B");
  refuse(OperandProgram("A = a * gate", {{"gate", out}}), true, "a.gate");
  ScaledOperand good(
      a, OperandProgram("A = a * gate * slope", {{"gate", gate({8})[0].value}, {"slope", 2.0}}));
  GemmArguments arguments(good, ScaledOperand(b), out);
  arguments.set_data("a.gate", memory.data() + 2048);
  arguments.set_scalar("a.slope", 3.0);
  for (const EpilogueOperand& operand : arguments.a_companions().program_operands)
    if (operand.name == "slope")
      EXPECT_EQ(std::get<double>(operand.value), 3.0);
    else
      EXPECT_EQ(std::get<Tensor>(operand.value).data(), memory.data() + 2048);
}

}  // namespace
}  // namespace gemmery
