// SPDX-License-Identifier: Apache-2.0
// The text form: meaning, refusals, and error messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

namespace gemmery::epilogue {
namespace {

using testing::HasSubstr;

struct Reads {
  std::string_view text;
  std::string_view canonical;
};

void PrintTo(const Reads& row, std::ostream* out) { *out << row.text; }

class TextForm : public testing::TestWithParam<Reads> {};

TEST_P(TextForm, means_the_program_that_it_prints) {
  const Program program{GetParam().text};
  EXPECT_EQ(program.text(), GetParam().canonical);
  EXPECT_EQ(Program(std::string_view(program.text())), program);
}

constexpr Reads grammar[] = {
    {"D = alpha * accum + beta * C", "D = alpha * accum + beta * C"},
    {"D=beta*C+accum*alpha", "D = alpha * accum + beta * C"},
    {"D = gelu(bias + accum); amax = max(abs(D))", "D = gelu(accum + bias); amax = amax(D)"},
    {"D = accum; top = max(abs(-D))", "D = accum; top = amax(accum)"},
    {"D = accum; top = amax(abs(-abs(D)))", "D = accum; top = amax(accum)"},
    {"D = accum; top = max(-abs(D)); low = min(abs(D))",
     "D = accum; _1 = abs(accum); low = min(_1); top = max(-_1)"},
    {"t = accum + bias\nD = t * sigmoid(t)  # silu\n\n", "t = accum + bias; D = t * sigmoid(t)"},
    {"_t = accum + bias; D = _t * sigmoid(_t)", "_1 = accum + bias; D = _1 * sigmoid(_1)"},
    {"D = (accum\n + bias)", "D = accum + bias"},
    {"D = -accum ** 2", "D = -(accum * accum)"},
    {"D = 2 ** -accum", "D = 2 ** -accum"},
    {"D = accum ** a ** b", "D = accum ** a ** b"},
    {"D = (accum ** a) ** b", "D = (accum ** a) ** b"},
    {"D = accum - (a - b)", "D = accum - (a - b)"},
    {"D = accum - a - b", "D = accum - a - b"},
    {"D = accum / (a / b)", "D = accum / (a / b)"},
    {"D = a if accum > 0 else b", "D = where(accum > 0, a, b)"},
    {"D = a if accum > 0 else b if accum < -1 else c",
     "D = where(accum > 0, a, where(accum < -1, b, c))"},
    {"D = where(accum > 0 and accum < 1 or not a >= b, 1, 0)",
     "D = where(accum < 1 and accum > 0 or not b <= a, 1, 0)"},
    {"D = where(!(accum > 0) || a < 1 && b == c, 1, 2)",
     "D = where(b == c and a < 1 or not accum > 0, 1, 2)"},
    {"D = (accum > 0) * accum", "D = accum * where(accum > 0, 1, 0)"},
    {"D = accum > 0", "D = where(accum > 0, 1, 0)"},
    {"D = leaky_relu(accum)", "D = leaky_relu(accum, 0.01)"},
    {"D = leaky_relu(accum, 0.2)", "D = leaky_relu(accum, 0.2)"},
    {"D = maximum(accum, 0) + minimum(accum, 1)", "D = max(accum, 0) + min(accum, 1)"},
    {"D = multiply_add(accum, a, b) + identity(c)", "D = fma(a, accum, b) + c"},
    {"D = square(accum) * reciprocal(a)", "D = 1 / a * (accum * accum)"},
    {"D = gelu_erf(accum)", "D = gelu(accum)"},
    {"D = cast(accum, bfloat16)", "D = cast(accum, bf16)"},
    {"D = cast(accum, e4m3, saturate)", "D = cast(accum, e4m3, saturate)"},
    {"D = cast(accum, s8, toward_zero)", "D = cast(accum, s8, toward_zero)"},
    {"D = accum * inf + nan - inf + 1e-3 + .5", "D = inf * accum + nan - inf + 0.001 + 0.5"},
    {"D = accum * True + False", "D = accum + 0"},
    {"D = 1 + 2 * exp(0)", "D = 3"},
    {"D = less(accum, 1) * add(accum, 1)", "D = (accum + 1) * where(accum < 1, 1, 0)"},
    {"D = accum; row = sum(exp(accum - top)); low = min(accum)",
     "D = accum; low = min(accum); row = sum(exp(accum - top))"},
    {"D = exp(sum)", "D = exp(sum)"},
    {"D = accum; copy = D", "D = accum; copy = accum"},
    {"D = relu(accum); copy = relu(accum)", "D = relu(accum); copy = D"},
    {"D = accum + c; D2 = D * D", "D = accum + c; D2 = D * D"},
};

INSTANTIATE_TEST_SUITE_P(grammar, TextForm, testing::ValuesIn(grammar));

// Programs that other interfaces refuse or compute wrongly, and that this grammar accepts.
constexpr Reads functions[] = {
    {"def f(accum, bias):\n  D = relu(accum + bias)\n  return D\n", "D = relu(accum + bias)"},
    {"def f(accum, bias): t = accum + bias; D = relu(t); return D, t",
     "t = accum + bias; D = relu(t)"},
    {"def f(accum):\n    t = accum + 1\n    D = t * t\n    return D",
     "_1 = accum + 1; D = _1 * _1"},
    {"\ndef f(bias: Tensor, accum: dict[str, int]) -> tuple[int]:\n  \"\"\"Adds.\n\n  bias\n"
     "  \"\"\"\n\n  D: float = accum + bias\n  return (D)\n",
     "D = accum + bias"},
    {"def f(accum):\n  'one line'\n  return relu(accum)", "D = relu(accum)"},
    {"def f(accum): return 1.0", "D = 1"},
    {"def f(accum): return accum", "D = accum"},
    {"def f(accum): D = relu(accum); return D, accum", "D = relu(accum); accum_out = accum"},
    {"lambda accum, b: relu(accum) + b", "D = relu(accum) + b"},
    {"def f(accum):\n  x = silu(accum) + hardswish(accum)\n  D = x * x\n  return D",
     "_1 = hardswish(accum) + silu(accum); D = _1 * _1"},
    {"def f(accum, c):\n  D = -c if accum <= 0 else accum * -1.0\n  return D",
     "D = where(accum <= 0, -c, -accum)"},
    {"def f(accum, C):\n  D = accum ** 3 + C\n  top = max(D)\n  return D, top",
     "D = accum ** 3 + C; top = max(D)"},
};

INSTANTIATE_TEST_SUITE_P(functions, TextForm, testing::ValuesIn(functions));

struct Refused {
  std::string_view text;
  std::string_view got;   // the word and its place
  std::string_view says;  // part of the expectation or the hint
};

void PrintTo(const Refused& row, std::ostream* out) { *out << testing::PrintToString(row.text); }

class RefusedText : public testing::TestWithParam<Refused> {};

TEST_P(RefusedText, gives_one_error_with_line_column_word_and_reason) {
  try {
    const Program program{GetParam().text};
    FAIL() << "read as " << program.text();
  } catch (const Error& error) {
    EXPECT_EQ(error.operand(), "epilogue");
    EXPECT_EQ(error.got(), GetParam().got) << error.what();
    EXPECT_THAT(error.expected() + "; " + error.hint(), HasSubstr(GetParam().says));
  }
}

constexpr Refused statements[] = {
    {"", "the end at line 1, column 1", "assignment to D"},
    {"x = accum", "the end at line 1, column 10", "assignment to D"},
    {"D = gelo(accum)", "'gelo' at line 1, column 5", "did you mean gelu?"},
    {"D = accum\nx = tahn(accum)", "'tahn' at line 2, column 5", "did you mean tanh?"},
    {"D = softmax(accum)", "'softmax' at line 1, column 5", "it needs the whole row first"},
    {"relu(accum)", "'(' at line 1, column 5", "an epilogue assigns its results: D = relu(accum)"},
    {"D = relu(accum, 2.0)", "'relu' at line 1, column 5", "1 operand of relu; it was given 2"},
    {"D = fma(accum, 2)", "'fma' at line 1, column 5", "3 operands"},
    {"D = sum(accum, 1)", "'sum' at line 1, column 5", "1 operand of sum"},
    {"D = accum; D = 2", "'D' at line 1, column 12", "assigned at line 1, column 1"},
    {"x = x + 1; D = x", "'x' at line 1, column 1", "read as an operand at line 1, column 5"},
    {"D = D + 1", "'D' at line 1, column 5", "read before it is assigned"},
    {"z += 1", "'+=' at line 1, column 3", "assigned once"},
    {"accum = 1; D = 2", "'accum' at line 1, column 1", "accum is the product"},
    {"a, b = accum", "',' at line 1, column 2", "one name at a time"},
    {"D == accum", "'==' at line 1, column 3", "'='"},
    {"D = accum % 2", "'%' at line 1, column 11", "floor"},
    {"D = accum \xc3\x97 2", "'\\xc3\\x97' at line 1, column 11", "ASCII"},
    {"D = accum + \xff", "'\\xff' at line 1, column 13", "ASCII"},
    {"D = accum.T", "'.' at line 1, column 10", "layouts (x.T) belong to tensors"},
    {"def f(accum): return accum, accum * 2", "',' at line 1, column 27", "a name first"},
    {"D = accum // 2", "'//' at line 1, column 11", "floor"},
    {"D = accum @ w", "'@' at line 1, column 11", "element by element"},
    {"D = accum ^ 2", "'^' at line 1, column 11", "x ** y"},
    {"D = accum & 1", "'&' at line 1, column 11", "and"},
    {"D = ~accum", "'~' at line 1, column 5", "not"},
    {"D = a ? b : c", "'?' at line 1, column 7", "where"},
    {"D = a < b < c", "'<' at line 1, column 11", "do not chain"},
    {"D = not accum", "'not' at line 1, column 5", "x != 0"},
    {"D = where(accum, 1, 2)", "'where' at line 1, column 5", "x != 0"},
    {"D = 1 if accum else 2", "'if' at line 1, column 7", "x != 0"},
    {"D = (accum > 0) == (a > 0)", "'==' at line 1, column 17", "truth value"},
    {"D = 1 if accum > 0", "the end at line 1, column 19", "else"},
    {"D = torch.relu(accum)", "'.' at line 1, column 10", "relu(x)"},
    {"D = accum[0]", "'[' at line 1, column 10", "broadcast"},
    {"D = permute(accum, 1)", "'permute' at line 1, column 5", "layouts belong to tensors"},
    {"D = reshape(accum)", "'reshape' at line 1, column 5", "layouts belong to tensors"},
    {"D = gelu(accum, approximate=\"tanh\")", "'approximate' at line 1, column 17", "gelu_tanh"},
    {"D = relu(x=accum)", "'x' at line 1, column 10", "without keywords"},
    {"D = accum; t = sum(D); u = t + 1", "'t' at line 1, column 28", "result of a reduction"},
    {"D = max(accum)", "'max' at line 1, column 5", "element by element"},
    {"D = accum - max(accum)", "'max' at line 1, column 13", "whole right side"},
    {"D = accum; t = (sum(D))", "'sum' at line 1, column 17", "whole right side"},
    {"D = cast(accum, f33)", "'f33' at line 1, column 17", "element type"},
    {"D = cast(accum, f16, up)", "'up' at line 1, column 22", "toward_zero"},
    {"D = cast(accum)", "')' at line 1, column 15", "cast(x, bf16)"},
    {"D = 1e999", "'1e999' at line 1, column 5", "inf"},
    {"D = 0x10", "'0x10' at line 1, column 5", "decimal"},
    {"D = 1.5f", "'1.5f' at line 1, column 5", "decimal"},
    {"D = accum $ 1", "'$' at line 1, column 11", "sign of the grammar"},
    {"D = accum + \"x\"", "'\"x\"' at line 1, column 13", "strings"},
    {"D = \"x", "'\"' at line 1, column 5", "end of the string"},
    {"D = \xc3\xa4", "'\\xc3\\xa4' at line 1, column 5", "grammar"},
    {"D = (accum", "the end at line 1, column 11", "')'"},
    {"D = accum)", "')' at line 1, column 10", "end of the statement"},
    {"D = accum bias", "'bias' at line 1, column 11", "end of the statement"},
    {"D = ", "the end at line 1, column 5", "a value"},
    {"D = ;", "';' at line 1, column 5", "a value"},
    {"D = \nx = 1", "the end of the line at line 1, column 5", "a value"},
    {"D = _x", "'_x' at line 1, column 5", "assigned first"},
    {"_x = accum; D = accum", "'_x' at line 1, column 1", "something reads"},
    {"for i in x: D = 1", "'for' at line 1, column 1", "no loops"},
    {"if accum > 0: D = 1", "'if' at line 1, column 1", "a if c else b"},
    {"import torch", "'import' at line 1, column 1", "without their modules"},
    {"return D", "'return' at line 1, column 1", "statements assign"},
    {"2 = accum", "'2' at line 1, column 1", "name = expression"},
    {"@jit\ndef f(accum): return accum", "'@' at line 1, column 1", "decorator"},
};

INSTANTIATE_TEST_SUITE_P(statements, RefusedText, testing::ValuesIn(statements));

constexpr Refused refused_functions[] = {
    {"def f(x): return relu(x)", "'def' at line 1, column 1", "accum is the product"},
    {"lambda x: x", "'lambda' at line 1, column 1", "accum is the product"},
    {"def f(accum):\n  t = accum\n  return t", "'t' at line 3, column 10", "D among"},
    {"def f(accum, b): D = accum + b; return accum, D, accum", "'accum' at line 1, column 50", ""},
    {"def f(accum): D = relu(accum); accum_out = D; return D, accum_out, accum",
     "'accum' at line 1, column 68", "stored of accum"},
    {"def f(accum, b): D = accum + b; return D, b", "'b' at line 1, column 43", "assigns"},
    {"def f(accum): D = accum * scale; return D", "'scale' at line 1, column 27", "outside"},
    {"def f(accum, bias): D = accum * bia; return D", "'bia' at line 1, column 33",
     "did you mean bias?"},
    {"def f(accum, b): D = accum; return D", "'b' at line 1, column 14", "leave it out"},
    {"def f(accum, b=2): D = accum * b; return D", "'=' at line 1, column 15", "defaults"},
    {"def f(accum, *, b): D = accum * b; return D", "'*' at line 1, column 14", "of its own"},
    {"def f(accum, *args): D = accum; return D", "'*' at line 1, column 14", "of its own"},
    {"def f(accum, **kw): D = accum; return D", "'**' at line 1, column 14", "of its own"},
    {"def f(accum, b): b = 2; D = accum; return D", "'b' at line 1, column 18", "own"},
    {"def f(accum, b, b): return b", "'b' at line 1, column 17", "once"},
    {"def f(accum): t = 1; D = accum; return D", "'t' at line 1, column 15", "leave it out"},
    {"def f(accum): D = accum; return D, D", "'D' at line 1, column 36", "each result once"},
    {"def f(accum): D = accum; _t = D + 1; return D, _t", "'_t' at line 1, column 48",
     "underscore"},
    {"def f(accum):\n  D = accum\n", "the end at line 3, column 1", "return D"},
    {"def f(accum): return", "the end at line 1, column 21", "what is returned"},
    {"def f(accum): D = accum; return relu(D)", "'return' at line 1, column 26", "return D"},
    {"def f(accum): return {'D': accum}", "'{' at line 1, column 22", "a value"},
    {"def f(accum): return max(accum)", "'max' at line 1, column 22", "element by element"},
    {"def f(accum):\n  if accum > 0:\n    D = 1\n  return D", "'if' at line 2, column 3",
     "a if c else b"},
    {"def f(accum):\n  for i in range(3):\n    D = 1\n  return D", "'for' at line 2, column 3",
     "loops"},
    {"def f(accum):\n  D = accum\n  D *= 2\n  return D", "'*=' at line 3, column 5", "once"},
    {"def f(accum): D = accum; return D\nx = 1", "'x' at line 2, column 1", "end of the text"},
};

INSTANTIATE_TEST_SUITE_P(functions, RefusedText, testing::ValuesIn(refused_functions));

TEST(TextLimits, nesting_is_refused_by_its_limit_however_deep) {
  for (const std::size_t depth : {101U, 1000U, 60000U})
    for (const char letter : {'(', '-', '!'}) {
      SCOPED_TRACE(std::string(1, letter) + " times " + std::to_string(depth));
      try {
        (void)Program("D = " + std::string(depth, letter) + "accum");
        FAIL();
      } catch (const Error& error) {
        EXPECT_THAT(error.expected(), HasSubstr("at most 100")) << error.what();
        EXPECT_THAT(error.got(), HasSubstr("line 1, column 10"));
      }
    }
}

TEST(TextLimits, length_is_refused_by_its_limit) {
  try {
    (void)Program("D = " + std::string(100000, '('));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("65536 bytes"));
  }
}

TEST(TextLimits, long_chains_are_refused_by_their_depth) {
  std::string text = "D = accum";
  for (int term = 0; term < 2000; ++term) text += " + x";
  try {
    (void)Program(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("1024"));
    EXPECT_THAT(error.got(), HasSubstr("line 1"));
  }
}

TEST(TextLimits, deep_expressions_print_as_text_that_reads_back) {
  Expression x = accum();
  for (int depth = 0; depth < 900; ++depth) x = exp(x);
  const Program program{{"D", x}};
  EXPECT_EQ(Program(std::string_view(program.text())), program);
}

TEST(TextLimits, shared_values_print_once) {
  Expression x = accum();
  for (int depth = 0; depth < 200; ++depth) x = x * x + operand("c");
  const Program program{{"D", x}};
  EXPECT_LT(program.text().size(), 20000U);
  EXPECT_EQ(Program(std::string_view(program.text())), program);
}

TEST(TextLimits, many_names_are_refused_by_their_number) {
  std::string text = "D = accum";
  for (int name = 0; name < 300; ++name) text += " + x" + std::to_string(name);
  EXPECT_THROW((void)Program(text), Error);
}

}  // namespace
}  // namespace gemmery::epilogue
