// SPDX-License-Identifier: Apache-2.0
// Epilogues. An epilogue is a program that is applied to the accumulators before they are stored:
// a typed expression graph, written as C++ expressions or as text, with its tensors and scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gemmery/dtype.hpp>
#include <gemmery/export.hpp>
#include <gemmery/scale_layout.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

namespace epilogue {

struct Graph;      // the program as values: src/epilogue/graph.hpp
struct Expressed;  // what an Expression points at

// The rows of ops.def.
enum class Op : std::uint8_t {
#define GEMMERY_OP(name, ...) name,
#include <gemmery/ops.def>
};

// How a cast narrows a value. Both kinds of rounding are IEEE's; NaN stays NaN if the type has one
// (integers: 0).
enum class Rounding : std::uint8_t { nearest_even, toward_zero };
enum class Overflow : std::uint8_t {
  natural,  // infinity if the type has one, else its NaN; integers always saturate
  saturate  // the largest finite value of the sign
};

// How a reduction combines elements. amax is the largest absolute value.
enum class Reduction : std::uint8_t { none, sum, max, min, amax };

// So many rows by so many columns of out, from its corner on; 0: all of a matrix. Blocks at its end
// may be shorter.
struct Block {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  friend bool operator==(const Block&, const Block&) = default;
};
inline constexpr Block one_element{1, 1};

// A value of a program. Copies are cheap and share structure; building one has no side effects.
//
//   const Expression x = accum() + operand("bias");
//   const Program program{{"D", gelu(x)}, {"amax", amax(x)}};
class GEMMERY_API Expression {
 public:
  Expression(double constant);  // NOLINT(google-explicit-constructor): constants read as numbers

  explicit Expression(std::shared_ptr<const Expressed> value) noexcept : value_(std::move(value)) {}
  const std::shared_ptr<const Expressed>& value() const noexcept { return value_; }

 private:
  std::shared_ptr<const Expressed> value_;
};

// The accumulator, in the epilogue's compute type.
GEMMERY_API Expression accum();
// A tensor or scalar, by the name under which EpilogueArguments binds it.
GEMMERY_API Expression operand(std::string_view name);
// The value rounded to a narrower type, then converted back to the compute type.
GEMMERY_API Expression cast(const Expression& x, DType dtype,
                            Rounding rounding = Rounding::nearest_even,
                            Overflow overflow = Overflow::natural);
// The elements of every block combined, as a value of each of its elements: x / reduce(x,
// Reduction::amax, {1, 32}). Throws Error (invalid_argument) for Reduction::none and extents beyond
// 2^20.
GEMMERY_API Expression reduce(const Expression& x, Reduction reduction, Block block);
// An operation of ops.def with as many operands as its arity. Throws Error (invalid_argument) for
// another number, and for comparisons that mix truth values and numbers (a truth value in
// arithmetic counts as 0 or 1).
GEMMERY_API Expression apply(Op op, std::span<const Expression> operands);
inline Expression apply(Op op, std::initializer_list<Expression> operands) {
  return apply(op, std::span<const Expression>(operands.begin(), operands.size()));
}

// A function of the text form by its name: a row of ops.def, an alias of one, or a name that
// define_op made. Throws Error (invalid_argument) for other names, and as `apply` does.
GEMMERY_API Expression call(std::string_view function, std::span<const Expression> operands);

// sigmoid(x), gelu(x), pow(x, y), where(c, x, y) …: one function for every row.
#define GEMMERY_FUNCTION_1(name) \
  inline Expression name(const Expression& x) { return apply(Op::name, {x}); }
#define GEMMERY_FUNCTION_2(name)                                     \
  inline Expression name(const Expression& x, const Expression& y) { \
    return apply(Op::name, {x, y});                                  \
  }
#define GEMMERY_FUNCTION_3(name)                                                          \
  inline Expression name(const Expression& x, const Expression& y, const Expression& z) { \
    return apply(Op::name, {x, y, z});                                                    \
  }
#define GEMMERY_OP(name, arity, ...) GEMMERY_FUNCTION_##arity(name)
#include <gemmery/ops.def>
#undef GEMMERY_FUNCTION_1
#undef GEMMERY_FUNCTION_2
#undef GEMMERY_FUNCTION_3

inline Expression operator+(const Expression& x, const Expression& y) { return add(x, y); }
inline Expression operator-(const Expression& x, const Expression& y) { return subtract(x, y); }
inline Expression operator*(const Expression& x, const Expression& y) { return multiply(x, y); }
inline Expression operator/(const Expression& x, const Expression& y) { return divide(x, y); }
inline Expression operator-(const Expression& x) { return negate(x); }
inline Expression operator<(const Expression& x, const Expression& y) { return less(x, y); }
inline Expression operator<=(const Expression& x, const Expression& y) { return less_equal(x, y); }
inline Expression operator>(const Expression& x, const Expression& y) { return greater(x, y); }
inline Expression operator>=(const Expression& x, const Expression& y) {
  return greater_equal(x, y);
}
inline Expression operator==(const Expression& x, const Expression& y) { return equal(x, y); }
inline Expression operator!=(const Expression& x, const Expression& y) { return not_equal(x, y); }
inline Expression operator!(const Expression& x) { return logical_not(x); }

// One result of a program: stored element by element, or reduced to the shape of its tensor (a
// tensor (m, 1) holds one value for every row, (1,) one for everything). A value of blocks, made of
// `reduce`, constants and operands of one element, is stored once for each block.
struct Result {
  std::string name;
  Expression value;
  Reduction reduction = Reduction::none;

  Result(std::string result_name, Expression result_value,
         Reduction result_reduction = Reduction::none)
      : name(std::move(result_name)), value(std::move(result_value)), reduction(result_reduction) {}
};

// A program. Immutable; copies are cheap. Programs that compute the same by the same operations are
// equal, however they were written: common subexpressions are shared, constants folded, operands of
// commutative operations ordered.
class GEMMERY_API Program {
 public:
  // Reads text: statements "name = expression", separated by ';' or line ends, comments from '#'. D
  // must be assigned. A name is assigned once and may be used in later statements (D, too: its
  // value before it is rounded to out's type). It is stored only if a tensor is bound to it; a name
  // that begins with an underscore is never stored. The text may be a Python function or lambda
  // instead: its parameters are operands, the names that it returns are results, and a returned
  // accum is stored as accum_out. sum(x), max(x), min(x) and amax(x) of one operand are reductions;
  // each must be the whole right side of a statement. block_amax(x, 1, 32) is a value: the
  // reduction of the block of 1 row by 32 columns that an element is in (0: all). Throws Error
  // (invalid_argument) with line, column, the word and a hint. docs/epilogues.md has the grammar.
  explicit Program(std::string_view text);

  // From expressions. Throws Error (invalid_argument): no result named D, a name twice.
  Program(std::initializer_list<Result> results);
  explicit Program(const std::vector<Result>& results);

  // The program as text that reads back as an equal program, statements separated by "; ".
  const std::string& text() const noexcept;
  // Names that it reads, in the order of their first use, and names that it can store, D first.
  const std::vector<std::string>& inputs() const noexcept;
  std::vector<std::string> outputs() const;

  const Graph& graph() const noexcept { return *graph_; }
  friend GEMMERY_API bool operator==(const Program& a, const Program& b) noexcept;

 private:
  std::shared_ptr<const Graph> graph_;
};

// Names an expression of x (of x and y; of x, y and z), which then is a function of programs in
// text: define_op("quick_gelu", "x * sigmoid(1.702 * x)"). Programs contain the expression, not the
// name. Throws Error (invalid_argument) for an expression that does not parse, with line and
// column, and for a name with another meaning. Any thread.
GEMMERY_API void define_op(std::string_view name, std::string_view expression);

// The functions that programs in text may call: rows of ops.def, aliases, names of define_op,
// reductions and cast. Any thread.
GEMMERY_API std::vector<std::string> function_names();

// D = alpha * accum + beta * C
GEMMERY_API const Program& linear_combination();

}  // namespace epilogue

// A name of a program bound to memory, or to a number that is passed with each launch. Tensors
// broadcast to out's (L, M, N) by NumPy's rule; one element is a scalar in device memory. The
// result for blocks of r x c elements is (L, ceil(M / r), ceil(N / c)); it may be float8_e8m0fnu,
// and swizzled if r or c is 1: packed, swizzled_scale_count values for each matrix, whose padding
// is not written. Its rows are then those of out (r = 1), or its columns (c = 1).
struct EpilogueOperand {
  std::string name;
  std::variant<double, Tensor> value;
  ScaleLayout layout = ScaleLayout::strided;
};

// A program with its operands and results, except D (which is out). The caller owns the memory.
class GEMMERY_API EpilogueArguments {
 public:
  // Throws Error (invalid_argument) for a name that the program does not have, for one that is
  // bound twice or not at all, and for a number as a result. Results other than D without a tensor
  // are not stored; a tensor named accum is bound to accum_out. More than 16 tensors to read, 8 to
  // write or 16 numbers: unsupported.
  EpilogueArguments(epilogue::Program program, std::vector<EpilogueOperand> operands = {});
  EpilogueArguments(std::string_view text, std::vector<EpilogueOperand> operands = {})
      : EpilogueArguments(epilogue::Program(text), std::move(operands)) {}

  const epilogue::Program& program() const noexcept { return program_; }
  // In the program's order: inputs, then the results that are stored, without D.
  const std::vector<EpilogueOperand>& operands() const noexcept { return operands_; }

 private:
  epilogue::Program program_;
  std::vector<EpilogueOperand> operands_;
};

// --- an epilogue as part of a kernel -------------------------------------------------------------

// Identifies a program and the properties of its operands that kernels are compiled for. Interned
// for the life of the process. Equal ids mean equal epilogues.
enum class EpilogueId : std::uint32_t { linear_combination = 0 };
inline constexpr EpilogueId default_epilogue = EpilogueId::linear_combination;

// The index along which an operand is contiguous in memory.
enum class Adjacent : std::uint8_t { none, along_n, along_m };

// The properties of one epilogue operand that a kernel is compiled for.
struct EpilogueOperandRule {
  std::string name;
  bool is_number = false;  // passed with the launch; the other fields are unused then
  bool is_output = false;
  DType dtype = DType::float32;
  bool varies_l = false, varies_m = false, varies_n = false;
  Adjacent adjacent = Adjacent::none;
  std::uint8_t alignment =
      1;  // bytes that divide the address of every run's first element: 1 to 16
  ScaleLayout layout = ScaleLayout::strided;      // of a result
  epilogue::Block block = epilogue::one_element;  // of a result; `intern` finds it

  friend bool operator==(const EpilogueOperandRule&, const EpilogueOperandRule&) = default;
};

struct EpilogueRules {
  epilogue::Program program;
  std::vector<EpilogueOperandRule> operands;  // the order of EpilogueArguments::operands
};

// The id of a program with these operands; equal rules always get the same id. Any thread. The
// default program is never interned: `default_epilogue` stands for it.
GEMMERY_API EpilogueId intern(const EpilogueRules& rules);
// The interned rules; for `default_epilogue`, the program of linear_combination() without operands.
GEMMERY_API const EpilogueRules& rules_of(EpilogueId epilogue) noexcept;
// The program's text.
GEMMERY_API std::string_view text(EpilogueId epilogue) noexcept;
// A digest of program and rules: twelve hexadecimal digits, the same in every process, part of
// kernel names ("" for the default). find_epilogue knows the epilogues interned by this process.
GEMMERY_API std::string digest(EpilogueId epilogue);
GEMMERY_API EpilogueId find_epilogue(std::string_view digest) noexcept;  // default if unknown

// Accepts the default program, ignoring white space. Throws Error (unsupported) for any other.
GEMMERY_API EpilogueId parse_epilogue(std::string_view program);

}  // namespace gemmery
