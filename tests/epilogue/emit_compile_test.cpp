// SPDX-License-Identifier: Apache-2.0
// Emitted epilogues compile, and on the emulator give the host's results bit for bit if every
// operation of a program is exact or rounded once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include <gemmery/epilogue.hpp>

#include "epilogue/emit_cuda.hpp"
#include "epilogue/evaluate.hpp"
#include "epilogue/zeros.hpp"
#include "jit/compiler.hpp"
#include "tests/emulator/kernel_under_test.hpp"
#include "tests/epilogue/random_expression.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::epilogue {
namespace {

constexpr int samples = 64;         // threads of the block
constexpr int columns = 4;          // accum and the operands
constexpr std::size_t results = 2;  // D and another one

EpilogueId intern_full(const Program& program) {
  EpilogueRules rules{program, {}};
  for (const std::string& name : program.inputs())
    rules.operands.push_back({.name = name, .varies_m = true, .varies_n = true});
  for (const std::string& name : program.outputs())
    if (name != "D")
      rules.operands.push_back(
          {.name = name, .is_output = true, .varies_m = true, .varies_n = true});
  return intern(rules);
}

constexpr std::string_view preamble = R"(
#include <device/abi/epilogue.hpp>
#include <device/epilogue/operations.cuh>

// One row of values and one of results for each thread of each program.
template <class Epilogue, class T>
__device__ void run(const T* values, T* results, int program) {
  const int row = program * blockDim.x + threadIdx.x;
  T in[Epilogue::inputs > 0 ? Epilogue::inputs : 1] = {};
  for (int at = 0; at < Epilogue::inputs; ++at) in[at] = values[row * 4 + 1 + at];
  const T number[1] = {};
  T out[Epilogue::outputs + 1];
  Epilogue::apply(values[row * 4], in, number, out);
  for (int at = 0; at <= Epilogue::outputs; ++at) results[row * 2 + at] = out[at];
}
)";

std::string source_of(const std::vector<Program>& programs, std::string_view type,
                      bool is_brief = false) {
  std::string source(preamble);
  std::string calls;
  for (std::size_t at = 0; at < programs.size(); ++at) {
    source += fmt::format("namespace program_{} {{\n{}}}\n", at,
                          emit_struct(intern_full(programs[at]), false, is_brief));
    calls += fmt::format("  run<program_{0}::Epilogue>(values, results, {0});\n", at);
  }
  return source +
         fmt::format(
             "extern \"C\" __global__ void all(const {0}* values, {0}* results) {{\n{1}}}\n", type,
             calls);
}

template <class T>
std::vector<T> run_on_emulator(const std::vector<Program>& programs, const std::vector<T>& values,
                               std::string_view type, bool is_brief = false) {
  // Without contraction, since the host rounds products before additions.
  const std::string ptx = jit::compile({.source = source_of(programs, type, is_brief),
                                        .entry = "all",
                                        .target = {90, 'a'},
                                        .form = CodeForm::ptx,
                                        .extra_options = {"-fmad=false"}})
                              .ptx;
  emulator::KernelUnderTest kernel(ptx, "all");
  kernel.request.grid = {1, 1, 1};
  kernel.request.block = {samples, 1, 1};
  const std::uint64_t in = kernel.put(values);
  const std::uint64_t out = kernel.put(std::vector<T>(programs.size() * samples * results));
  const auto fault = kernel.launch(in, out);
  EXPECT_FALSE(fault.has_value()) << fault->what();
  return kernel.get<T>(out, programs.size() * samples * results);
}

template <class T>
struct Typed;
template <>
struct Typed<float> {
  using Bits = std::uint32_t;
  static constexpr DType dtype = DType::float32;
  static constexpr std::string_view name = "float";
};
template <>
struct Typed<double> {
  using Bits = std::uint64_t;
  static constexpr DType dtype = DType::float64;
  static constexpr std::string_view name = "double";
};

template <class T>
bool is_same(T x, T y) {
  using Bits = typename Typed<T>::Bits;
  return std::bit_cast<Bits>(x) == std::bit_cast<Bits>(y) || (std::isnan(x) && std::isnan(y));
}

// Operations whose result is exact, or rounded once, in any implementation.
std::vector<Op> exact_operations() {
  return {Op::add,   Op::subtract,   Op::multiply,    Op::negate,     Op::abs,          Op::min,
          Op::max,   Op::clamp,      Op::fma,         Op::less,       Op::less_equal,   Op::greater,
          Op::equal, Op::not_equal,  Op::logical_and, Op::logical_or, Op::logical_not,  Op::where,
          Op::relu,  Op::leaky_relu, Op::floor,       Op::round,      Op::greater_equal};
}

template <class T>
class EmittedPrograms : public testing::Test {
 protected:
  std::uint64_t seed = gemmery::tests::random_seed();
  tests::RandomExpressions random{seed, exact_operations()};

  T value() {
    constexpr std::array<double, 12> specials{0,    -0.0, 1,        -1,        2.5, -0.5,
                                              1e30, 7.75, INFINITY, -INFINITY, NAN, -3};
    return static_cast<T>(specials[random.below(specials.size())]);
  }
};

using ComputeTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(EmittedPrograms, ComputeTypes);

TYPED_TEST(EmittedPrograms, compute_what_the_host_computes) {
  std::vector<Program> programs;
  for (int count = 0; count < 24; ++count) {
    const tests::Drawn drawn = this->random.draw(1 + this->random.below(12));
    programs.push_back(Program{{"D", drawn.numbers.back()}, {"other", drawn.truths.back()}});
  }
  std::vector<TypeParam> values(programs.size() * samples * columns);
  for (TypeParam& value : values) value = this->value();
  const std::vector<TypeParam> got = run_on_emulator(programs, values, Typed<TypeParam>::name);
  for (std::size_t at = 0; at < programs.size(); ++at) {
    Machine<TypeParam> machine(programs[at].graph(), Typed<TypeParam>::dtype);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const std::size_t row = at * samples + sample;
      *machine.accumulator() = values[row * columns];
      for (std::size_t input = 0; input < programs[at].inputs().size(); ++input)
        *machine.input(input) = values[row * columns + 1 + input];
      machine.run(1);
      for (std::size_t result = 0; result < results; ++result)
        ASSERT_PRED2(is_same<TypeParam>, got[row * results + result], *machine.output(result))
            << programs[at].text() << "\nresult " << result << ", accum " << values[row * columns]
            << ", " << values[row * columns + 1] << ", " << values[row * columns + 2] << ", "
            << values[row * columns + 3];
    }
  }
}

// Predicted results for zeros are correct bit for bit, also with brief formulas: for each operation
// alone and for expressions over all of them.
TEST(EmittedPrograms, make_of_zeros_what_is_foretold) {
  tests::RandomExpressions random(gemmery::tests::random_seed());
  std::vector<Program> programs;
  for (int count = 0; count < 60; ++count)
    programs.push_back(Program{{"D", random.draw(1 + random.below(6)).numbers.back()}});
#define GEMMERY_OP(name, arity, ...) \
  if (row_of(Op::name).kind == OpKind::real) add_operation(Op::name);
  const auto add_operation = [&](Op op) {
    std::vector<Expression> operands{accum(), operand("bias"), operand("scale")};
    operands.resize(static_cast<std::size_t>(row_of(op).arity), accum());
    programs.push_back(Program{{"D", epilogue::apply(op, operands)}});
  };
#include <gemmery/ops.def>
  int foretold = 0;
  for (const bool is_brief : {false, true}) {
    const std::vector<float> got = run_on_emulator<float>(
        programs, std::vector<float>(programs.size() * samples * columns), "float", is_brief);
    for (std::size_t at = 0; at < programs.size(); ++at) {
      const Graph& graph = programs[at].graph();
      const auto value = evaluate_zeros(
          graph, std::vector<bool>(graph.inputs.size(), true))[graph.outputs.front().value];
      if (!value) continue;
      ++foretold;
      EXPECT_EQ(got[at * samples * results], static_cast<float>(*value)) << programs[at].text();
    }
  }
  EXPECT_GT(foretold, 30);
}

// If the minimum is written as a comparison, NVVM 13.0 emits one that loses the sign of zero.
TEST(EmittedMinimum, keeps_the_sign_of_zero_beside_a_constant) {
  const Program program(
      std::string_view("D = min(where(accum < accum, 1, 0), cast(leaky_relu(scale, -2), e5m2)); "
                       "other = where(accum < accum, 1, 0)"));
  const std::vector<double> zeros(samples * columns);
  const std::vector<double> got = run_on_emulator<double>({program}, zeros, "double");
  EXPECT_TRUE(is_same(got[0], -0.0)) << got[0];
}

// Operations that are not exact on the emulator are only compiled.
TEST(EmittedOperations, of_every_row_compile) {
  tests::RandomExpressions random(gemmery::tests::random_seed());
  std::vector<Program> programs;
  for (int count = 0; count < 8; ++count)
    programs.push_back(Program{{"D", random.draw(30).numbers.back()}});
#define GEMMERY_OP(name, arity, ...) \
  programs.push_back(Program{{"D", epilogue::apply(Op::name, operands_of(Op::name))}});
  const auto operands_of = [](Op op) {
    std::vector<Expression> operands{accum(), operand("bias"), operand("scale")};
    const OpRow& row = row_of(op);
    if (row.kind == OpKind::logical) operands.assign(3, accum() < operand("C"));
    if (row.kind == OpKind::choose) operands[0] = accum() < operand("C");
    operands.resize(static_cast<std::size_t>(row.arity), accum());
    return operands;
  };
#include <gemmery/ops.def>
  for (const std::string_view type : {"float", "double"})
    EXPECT_FALSE(jit::compile({.source = source_of(programs, type),
                               .entry = "all",
                               .target = {90, 'a'},
                               .form = CodeForm::ptx,
                               .extra_options = {}})
                     .ptx.empty());
}

}  // namespace
}  // namespace gemmery::epilogue
