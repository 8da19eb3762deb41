// SPDX-License-Identifier: Apache-2.0
// Programs from expressions: equality, results that rewriting must not change, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

#include "epilogue/evaluate.hpp"
#include "tests/epilogue/random_expression.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::epilogue {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using tests::Values;

Program program_of(const Expression& x) { return Program{{"D", x}}; }

std::string text_of(const Expression& x) { return program_of(x).text(); }

template <class Make>
std::string message_of(Make make) {
  try {
    make();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

double evaluate(const Program& program, const Values& values) {
  Machine<double> machine(program.graph(), DType::float64);
  *machine.accumulator() = values[0];
  for (std::size_t input = 0; input < program.inputs().size(); ++input)
    for (std::size_t at = 0; at < tests::operand_names.size(); ++at)
      if (program.inputs()[input] == tests::operand_names[at])
        *machine.input(input) = values[1 + at];
  machine.run(1);
  return *machine.output(0);
}

bool is_same(double x, double y) {
  return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}

class RandomPrograms : public testing::Test {
 protected:
  std::uint64_t seed = gemmery::tests::random_seed();
  tests::RandomExpressions random{seed};
};

TEST_F(RandomPrograms, read_back_from_their_text) {
  for (int round = 0; round < 500; ++round) {
    const tests::Drawn drawn = random.draw(1 + random.below(30));
    const Program program{
        {"D", drawn.numbers.back()},
        {"other", drawn.numbers[random.below(drawn.numbers.size())]},
        {"truth", drawn.truths.back()},
        {"top", drawn.numbers[random.below(drawn.numbers.size())], Reduction::amax}};
    ASSERT_EQ(Program(std::string_view(program.text())), program) << program.text();
  }
}

TEST_F(RandomPrograms, compute_what_was_written_for_special_values_too) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::array<double, 10> specials{0,         -0.0,         1,      -1.5,  infinity,
                                        -infinity, std::nan(""), 5e-324, 1e308, 0.3};
  for (int round = 0; round < 1000; ++round) {
    const Expression written = random.draw(1 + random.below(8)).numbers.back();
    const Program program = program_of(written);
    for (int sample = 0; sample < 30; ++sample) {
      Values values{};
      for (double& value : values) value = specials[random.below(specials.size())];
      const double expected = tests::evaluate_as_written(*written.value(), values);
      ASSERT_PRED2(is_same, evaluate(program, values), expected)
          << program.text() << " of " << testing::PrintToString(values);
    }
  }
}

// The same value with the operands of commutative operations in another order, reversed comparisons
// and differences of negated values.
Expression written_differently(const Expressed& value, tests::RandomExpressions& random) {
  if (value.kind == NodeKind::cast)
    return cast(written_differently(*value.operands[0], random), value.cast.dtype,
                value.cast.rounding, value.cast.overflow);
  if (value.kind != NodeKind::operation)
    return Expression(std::make_shared<const Expressed>(value));
  std::vector<Expression> operands;
  for (const auto& operand : value.operands)
    if (operand != nullptr) operands.push_back(written_differently(*operand, random));
  switch (value.op) {
    case Op::add:
    case Op::multiply:
    case Op::min:
    case Op::max:
    case Op::fma:
    case Op::equal:
    case Op::not_equal:
    case Op::logical_and:
    case Op::logical_or:
      if (random.below(2) == 0) std::swap(operands[0], operands[1]);
      break;
    case Op::less:
      if (random.below(2) == 0) return operands[1] > operands[0];
      break;
    case Op::greater_equal:
      if (random.below(2) == 0) return operands[1] <= operands[0];
      break;
    case Op::negate:
      if (random.below(2) == 0) return -1 * operands[0];
      break;
    default:
      break;
  }
  return epilogue::apply(value.op, operands);
}

TEST_F(RandomPrograms, are_equal_however_they_are_written) {
  for (int round = 0; round < 300; ++round) {
    const Expression written = random.draw(1 + random.below(8)).numbers.back();
    ASSERT_EQ(program_of(written_differently(*written.value(), random)), program_of(written));
  }
}

TEST(Program, shares_folds_and_orders) {
  const Expression x = accum();
  const Expression bias = operand("bias");
  EXPECT_EQ(text_of(x * 1), "D = accum");
  EXPECT_EQ(text_of(1 * x / 1), "D = accum");
  EXPECT_EQ(text_of(x - 0), "D = accum");
  EXPECT_EQ(text_of(x + 0), "D = accum + 0");
  EXPECT_EQ(text_of(x + -0.0), "D = accum");
  EXPECT_EQ(text_of(x * 0), "D = 0 * accum");
  EXPECT_EQ(text_of(-(-x)), "D = accum");
  EXPECT_EQ(text_of(x / 4), "D = 0.25 * accum");
  EXPECT_EQ(text_of(x / 3), "D = accum / 3");
  EXPECT_THAT(text_of(x / 0x1p-130), HasSubstr("/"));
  EXPECT_EQ(text_of(pow(x, 2)), text_of(x * x));
  EXPECT_EQ(text_of(bias + x), "D = accum + bias");
  EXPECT_EQ(text_of(x + -bias), "D = accum - bias");
  EXPECT_EQ(text_of(!(x == bias)), text_of(x != bias));
  EXPECT_EQ(text_of(where(!(x < bias), x, bias)), text_of(where(x < bias, bias, x)));
  EXPECT_EQ(text_of(where(x < bias, x, x)), "D = accum");
  EXPECT_EQ(text_of(where(Expression(1) < 2, x, bias)), "D = accum");
  EXPECT_EQ(text_of(exp(Expression(0)) + x), "D = accum + 1");
  EXPECT_EQ(text_of(cast(cast(x, DType::float16), DType::float16)), "D = cast(accum, f16)");
  EXPECT_EQ(text_of(x - std::nan("")), text_of(x + -std::nan("1")));
}

TEST(Program, keeps_signed_zeros_apart) {
  const Expression x = accum();
  EXPECT_NE(program_of(max(x, 0)), program_of(max(x, -0.0)));
  EXPECT_EQ(text_of(max(x, -0.0)), "D = max(accum, -0)");
}

TEST(Program, lists_inputs_in_the_order_of_its_text_and_D_first) {
  const Program program{{"zeta", operand("b") * operand("a")},
                        {"D", accum() + operand("c")},
                        {"alpha", accum() - operand("b")}};
  EXPECT_THAT(program.outputs(), ElementsAre("D", "alpha", "zeta"));
  EXPECT_THAT(program.inputs(), ElementsAre("c", "b", "a"));
}

TEST(Program, the_order_of_results_does_not_count) {
  const Program one{{"D", accum()}, {"a", -accum()}, {"b", accum() * 2}};
  const Program other{{"b", accum() * 2}, {"a", -accum()}, {"D", accum()}};
  EXPECT_EQ(one, other);
}

TEST(Program, does_without_results_that_nothing_is_bound_to) {
  const Program program(std::string_view("t = accum + bias; D = gelu(t); w = C * t"));
  EXPECT_EQ(keep_results(program, {}), Program(std::string_view("D = gelu(accum + bias)")));
}

TEST(Program, refuses_results_that_cannot_be) {
  const Expression x = accum();
  EXPECT_THAT(message_of([&] { Program{{"E", x}}; }), HasSubstr("D"));
  EXPECT_THAT(message_of([&] { (Program{{"D", x}, {"D", -x}}); }), HasSubstr("twice"));
  EXPECT_THAT(message_of([&] { (Program{{"D", x}, {"a b", x}}); }), HasSubstr("a b"));
  EXPECT_THAT(message_of([&] { (Program{{"D", x}, {"accum", x}}); }), HasSubstr("accum"));
  for (const char* const word : {"accum", "if", "nan", "class", "for", "import", "pass", "while"})
    EXPECT_THAT(message_of([&] {
                  (Program{{"D", x}, {word, x}});
                }),
                HasSubstr("a meaning of its own"))
        << word;
  EXPECT_THAT(message_of([&] { (Program{{"D", x + operand("t")}, {"t", x}}); }), HasSubstr("both"));
  EXPECT_THAT(message_of([&] { (Program{{"D", x, Reduction::sum}}); }), HasSubstr("reduction"));
}

TEST(Expression, refuses_operands_of_the_wrong_kind) {
  const Expression x = accum();
  EXPECT_THAT(message_of([&] { (void)logical_not(x); }), HasSubstr("x != 0"));
  EXPECT_THAT(message_of([&] { (void)where(x, x, x); }), HasSubstr("x != 0"));
  EXPECT_THAT(message_of([&] { (void)((x < 1) < 2); }), HasSubstr("do not chain"));
  EXPECT_THAT(message_of([&] { (void)apply(Op::add, {x}); }), HasSubstr("2 operands of add"));
  EXPECT_THAT(message_of([&] { (void)apply(static_cast<Op>(200), {x}); }), HasSubstr("200"));
  EXPECT_THAT(message_of([&] { (void)cast(x, static_cast<DType>(250)); }), HasSubstr("250"));
  EXPECT_THAT(message_of([] { (void)operand("a b"); }), HasSubstr("a b"));
  EXPECT_THAT(message_of([] { (void)operand("accum"); }), HasSubstr("accum"));
  EXPECT_THAT(message_of([] { (void)operand("D"); }), HasSubstr("\"D\""));
  EXPECT_THAT(message_of([&] {
                Expression moved = x;
                const Expression kept = std::move(moved);
                (void)(moved + kept);  // NOLINT(bugprone-use-after-move): this is the test
              }),
              HasSubstr("moved from"));
}

TEST(Expression, nests_to_a_limit_that_is_named) {
  const std::string message = message_of([] {
    Expression x = accum();
    for (int depth = 0; depth < 100000; ++depth) x = x + 1;
  });
  EXPECT_THAT(message, HasSubstr("at most 1024"));
}

TEST(Ops, every_row_is_found_by_its_name) {
#define GEMMERY_OP(op, operand_count, ...) \
  ASSERT_EQ(find_op(#op), Op::op);         \
  EXPECT_EQ(row_of(Op::op).name, #op);     \
  EXPECT_EQ(row_of(Op::op).arity, operand_count);
#include <gemmery/ops.def>
  EXPECT_EQ(find_op("gelo"), std::nullopt);
  EXPECT_THAT(row_of(Op::hardswish).turns, ElementsAre(-3, -1.5));
}

TEST(DefineOp, names_an_expression_for_texts) {
  define_op("quick_gelu", "x * sigmoid(1.702 * x)");
  define_op("mix", "z * x + (1 - z) * y");
  EXPECT_EQ(Program(std::string_view("D = quick_gelu(accum + bias)")),
            Program(std::string_view("_t = accum + bias; D = _t * sigmoid(_t * 1.702)")));
  EXPECT_EQ(
      Program(std::string_view("D = mix(accum, C, quick_gelu(w))")),
      Program(std::string_view("_g = w * sigmoid(1.702 * w); D = _g * accum + (1 - _g) * C")));
  define_op("twice_quick", "quick_gelu(quick_gelu(x))");
  EXPECT_NO_THROW((void)Program(std::string_view("D = twice_quick(accum)")));
}

TEST(DefineOp, the_same_again_is_no_error_another_meaning_is) {
  define_op("triple", "3 * x");
  EXPECT_NO_THROW(define_op("triple", "3 * x"));
  EXPECT_THAT(message_of([] { define_op("triple", "x * x * x"); }), HasSubstr("otherwise"));
}

TEST(DefineOp, refuses_what_it_cannot_name) {
  EXPECT_THAT(message_of([] { define_op("gelu", "x"); }), HasSubstr("taken"));
  EXPECT_THAT(message_of([] { define_op("sum", "x"); }), HasSubstr("taken"));
  EXPECT_THAT(message_of([] { define_op("cast", "x"); }), HasSubstr("taken"));
  EXPECT_THAT(message_of([] { define_op("a-b", "x"); }), HasSubstr("a-b"));
  EXPECT_THAT(message_of([] { define_op("odd", "x + tahn(x)"); }),
              testing::AllOf(HasSubstr("line 1, column 5"), HasSubstr("did you mean tanh?")));
  EXPECT_THAT(message_of([] { define_op("odd", "x + w"); }), HasSubstr("'w' at line 1, column 5"));
  EXPECT_THAT(message_of([] { define_op("odd", "y + 1"); }), HasSubstr("in this order"));
  EXPECT_THAT(message_of([] { define_op("odd", "x + z"); }), HasSubstr("in this order"));
  EXPECT_THAT(message_of([] { define_op("odd", "x; y"); }), HasSubstr("'y'"));
  EXPECT_THAT(message_of([] { define_op("odd", "x + accum * y"); }), HasSubstr("accum"));
  EXPECT_THROW((void)Program(std::string_view("D = odd(accum)")), Error);
}

TEST(Call, finds_functions_by_the_names_of_the_text_form) {
  const std::array<Expression, 2> operands{accum(), operand("b")};
  EXPECT_EQ(text_of(call("maximum", operands)), "D = max(accum, b)");
  EXPECT_EQ(text_of(call("swish", std::span(operands).first(1))), "D = silu(accum)");
  EXPECT_THAT(message_of([&] { (void)call("gelo", operands); }), HasSubstr("did you mean gelu?"));
  EXPECT_THAT(message_of([&] { (void)call("gelu", operands); }), HasSubstr("1 operand of gelu"));
}

TEST(DefineOp, refuses_another_number_of_operands_by_its_name) {
  define_op("halved", "x / 2");
  EXPECT_THAT(message_of([] { (void)Program(std::string_view("D = halved(accum, 2)")); }),
              HasSubstr("1 operand of halved"));
}

}  // namespace
}  // namespace gemmery::epilogue
