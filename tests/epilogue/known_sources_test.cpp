// SPDX-License-Identifier: Apache-2.0
// Programs of users of other interfaces, one row for each that is known to fail there or to give
// wrong results. Here each computes the result of a plain loop, or gives one error with its place
// and reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/number.hpp"
#include "epilogue/graph.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

using epilogue::Op;
using epilogue::Reduction;
using testing::HasSubstr;

constexpr std::int64_t batches = 2, rows = 7, columns = 6, depth = 5;

// Extents by their letters: "mn", "l11", "1".
std::vector<std::int64_t> shape_of(std::string_view dims) {
  std::vector<std::int64_t> shape;
  for (const char dim : dims)
    shape.push_back(dim == 'l' ? batches : dim == 'm' ? rows : dim == 'n' ? columns : dim - '0');
  return shape;
}

// A tensor of small integers, which are exact in every type, as are their sums.
class Memory {
 public:
  Memory(std::string_view dims, DType dtype, bool is_column_major)
      : shape_(shape_of(dims)), dtype_(dtype), strides_(shape_.size(), 1) {
    std::int64_t stride = 1;
    std::vector<std::size_t> inner_first;
    for (std::size_t d = shape_.size(); d-- > 0;) inner_first.push_back(d);
    if (is_column_major) std::swap(inner_first[0], inner_first[1]);
    for (const std::size_t d : inner_first) {
      strides_[d] = stride;
      stride *= shape_[d];
    }
    bytes_.assign(static_cast<std::size_t>(stride) * byte_width(dtype), std::byte{0xff});
  }

  void fill(std::mt19937_64& random) {
    for (std::size_t at = 0; at * byte_width(dtype_) < bytes_.size(); ++at)
      put(at, static_cast<int>(random() % 7) - (dtype_ == DType::uint8 ? 0 : 3));
  }
  void poison() { std::ranges::fill(bytes_, std::byte{0xff}); }

  Tensor view() const { return Tensor(bytes_.data(), dtype_, shape_, strides_); }

  // The element for an element of out, by NumPy's broadcasting.
  double at(std::int64_t l, std::int64_t m, std::int64_t n) const {
    const std::int64_t index[] = {l, m, n};
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape_.size(); ++d)
      if (shape_[d] != 1) at += index[3 - shape_.size() + d] * strides_[d];
    return get(static_cast<std::size_t>(at));
  }

 private:
  void put(std::size_t at, double value) {
    std::byte* const to = bytes_.data() + at * byte_width(dtype_);
    const auto copy = [&](auto number) { std::memcpy(to, &number, byte_width(dtype_)); };
    if (dtype_ == DType::float64) return copy(value);
    if (is_integer(dtype_)) return copy(static_cast<std::int32_t>(value));
    copy(number::encode(number::float_format(dtype_), value));
  }
  double get(std::size_t at) const {
    const std::byte* const from = bytes_.data() + at * byte_width(dtype_);
    std::uint32_t code = 0;
    double wide = 0;
    if (dtype_ == DType::float64) return std::memcpy(&wide, from, sizeof wide), wide;
    std::memcpy(&code, from, byte_width(dtype_));
    if (dtype_ == DType::int32) return static_cast<std::int32_t>(code);
    if (dtype_ == DType::int8) return static_cast<std::int8_t>(code);
    if (is_integer(dtype_)) return code;
    return number::decode(number::float_format(dtype_), code);
  }

  std::vector<std::int64_t> shape_;
  DType dtype_;
  std::vector<std::int64_t> strides_;
  std::vector<std::byte> bytes_;
};

struct Operand {
  std::string name;
  std::string dims;  // empty: a number
  DType dtype = DType::float32;
  bool is_column_major = false;
  double number = 0;
};
Operand number(std::string name, double value) {
  return {.name = std::move(name), .dims = "", .number = value};
}

// A product of integers with the operands of a row, on the CPU.
class Bench {
 public:
  explicit Bench(const std::vector<Operand>& operands, DType input = DType::float32)
      : a_("lm5", input, false), b_("l5n", input, false) {
    std::mt19937_64 random(tests::random_seed());
    for (Memory* const matrix : {&a_, &b_}) matrix->fill(random);
    for (const Operand& operand : operands) {
      if (operand.dims.empty()) {
        numbers_[operand.name] = operand.number;
        continue;
      }
      Memory memory(operand.dims, operand.dtype, operand.is_column_major);
      memory.fill(random);
      tensors_.emplace(operand.name, std::move(memory));
    }
  }

  GemmArguments bind(std::string_view text) const {
    std::vector<EpilogueOperand> operands;
    for (const auto& [name, value] : numbers_) operands.push_back({name, value});
    for (const auto& [name, memory] : tensors_) operands.push_back({name, memory.view()});
    GemmOptions options;
    options.epilogue = EpilogueArguments(text, operands);
    return GemmArguments(a_.view(), b_.view(), out_.view(), options);
  }

  double accum(std::int64_t l, std::int64_t m, std::int64_t n) const {
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) sum += a_.at(l, m, k) * b_.at(l, k, n);
    return sum;
  }
  double operand(const std::string& name, std::int64_t l, std::int64_t m, std::int64_t n) const {
    const auto found = numbers_.find(name);
    return found != numbers_.end() ? found->second : tensors_.at(name).at(l, m, n);
  }
  const Memory& result(const std::string& name) const {
    return name == "D" ? out_ : tensors_.at(name);
  }
  Memory& result(const std::string& name) { return name == "D" ? out_ : tensors_.at(name); }

 private:
  // a has `depth` columns and b has `depth` rows.
  Memory a_, b_;
  Memory out_{"lmn", DType::float32, false};
  std::map<std::string, Memory> tensors_;
  std::map<std::string, double> numbers_;
};

// One element in a row's loop.
struct Element {
  const Bench& bench;
  std::int64_t l, m, n;
  double accum() const { return bench.accum(l, m, n); }
  double operator()(const char* name) const { return bench.operand(name, l, m, n); }
};
using Loop = std::function<double(const Element&)>;

struct Result {
  std::string name;
  Loop loop;
  Reduction reduction = Reduction::none;
};

struct Works {
  std::string source;  // the row of the table
  std::string text;
  std::vector<Operand> operands;
  std::vector<Result> results;
  std::optional<Op> rounded = {};  // the operation of a row that is not exact
  DType input = DType::float32;
};

void PrintTo(const Works& row, std::ostream* out) { *out << row.source << ": " << row.text; }

double reduce(Reduction kind, double total, double x) {
  if (kind == Reduction::sum) return total + x;
  if (kind == Reduction::max) return std::max(total, x);
  return kind == Reduction::min ? std::min(total, x) : std::max(total, std::fabs(x));
}

double nothing_of(Reduction kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return kind == Reduction::max ? -infinity : kind == Reduction::min ? infinity : 0.0;
}

// The expected value of a result at one element of out; for a reduction, over all its elements.
double expected_at(const Bench& bench, const Result& result, const std::string& dims,
                   const Element& at) {
  if (result.reduction == Reduction::none) return result.loop(at);
  const std::string own = std::string(3 - dims.size(), '1') + dims;
  double total = nothing_of(result.reduction);
  for (std::int64_t l = own[0] == 'l' ? at.l : 0; l <= (own[0] == 'l' ? at.l : batches - 1); ++l)
    for (std::int64_t m = own[1] == 'm' ? at.m : 0; m <= (own[1] == 'm' ? at.m : rows - 1); ++m)
      for (std::int64_t n = own[2] == 'n' ? at.n : 0; n <= (own[2] == 'n' ? at.n : columns - 1);
           ++n)
        total = reduce(result.reduction, total, result.loop({bench, l, m, n}));
  return total;
}

class KnownSources : public testing::TestWithParam<Works> {
 protected:
  // The error that the row's operation declares, at x.
  double allowed(double x, double value) const {
    if (!GetParam().rounded) return 0;
    const epilogue::OpRow& row = epilogue::row_of(*GetParam().rounded);
    return 0x1p-24 * (row.errors.relative * std::fabs(value) +
                      row.errors.absolute * std::max(1.0, std::fabs(x)));
  }

  std::string dims_of(const std::string& name) const {
    for (const Operand& operand : GetParam().operands)
      if (operand.name == name) return operand.dims;
    return "lmn";
  }

  void compare(const Bench& bench, const std::string& kernel) const {
    for (const Result& result : GetParam().results)
      for (std::int64_t l = 0; l < batches; ++l)
        for (std::int64_t m = 0; m < rows; ++m)
          for (std::int64_t n = 0; n < columns; ++n) {
            const Element at{bench, l, m, n};
            const double want = expected_at(bench, result, dims_of(result.name), at);
            const double got = bench.result(result.name).at(l, m, n);
            if (got == want || (std::isnan(want) && std::isnan(got))) continue;
            ASSERT_LE(std::fabs(got - want), allowed(at.accum(), want))
                << result.name << " of " << kernel << " at " << l << ", " << m << ", " << n << ": "
                << got << " for " << want << ", accum " << at.accum();
          }
  }
};

TEST_P(KnownSources, compute_what_a_plain_loop_computes) {
  const Works& row = GetParam();
  Bench bench(row.operands, row.input);
  const GemmArguments arguments = bench.bind(row.text);
  const auto kernels = get_kernels(arguments);
  ASSERT_FALSE(kernels.empty());
  for (const Kernel& kernel : kernels) {
    for (const Result& result : row.results) bench.result(result.name).poison();
    kernel.run(arguments, {.stream = Stream::cpu()});
    compare(bench, kernel.name());
  }
}

double relu(double x) { return std::max(x, 0.0); }

Works activation(const std::string& call, Op op, const Loop& loop) {
  return {call, "def f(accum):\n  D = " + call + "\n  return D", {}, {{"D", loop}}, op};
}

std::vector<Works> works() {
  const auto accum = [](const Element& at) { return at.accum(); };
  std::vector<Works> table{
      {"D used again",
       "def f(accum, bias):\n  D = relu(accum + bias)\n  twice = D * 2\n  return D, twice",
       {{"bias", "n"}, {"twice", "lmn"}},
       {{"D", [](const Element& at) { return relu(at.accum() + at("bias")); }},
        {"twice", [](const Element& at) { return 2 * relu(at.accum() + at("bias")); }}}},
      {"return relu(accum)",
       "def f(accum): return relu(accum)",
       {},
       {{"D", [](const Element& at) { return relu(at.accum()); }}}},
      {"return constant",
       "def f(accum): return 1.0",
       {},
       {{"D", [](const Element&) { return 1.0; }}}},
      {"accum returned",
       "def f(accum): D = accum * 2; return D, accum",
       {{"accum", "lmn"}},
       {{"D", [](const Element& at) { return 2 * at.accum(); }}, {"accum", accum}}},
      {"one line",
       "def f(accum, b): t = accum + b; D = relu(t); return D, t",
       {{"b", "lmn"}, {"t", "lmn"}},
       {{"D", [](const Element& at) { return relu(at.accum() + at("b")); }},
        {"t", [](const Element& at) { return at.accum() + at("b"); }}}},
      {"docstring",
       "def f(accum):\n  \"\"\"Nothing: D = 3.\"\"\"\n  D = accum\n  return D",
       {},
       {{"D", accum}}},
      {"lambda",
       "lambda accum, bias: relu(accum + bias)",
       {{"bias", "n"}},
       {{"D", [](const Element& at) { return relu(at.accum() + at("bias")); }}}},
      {"x * x",
       "def f(accum):\n  x = accum + 1\n  D = x * x\n  return D",
       {},
       {{"D", [](const Element& at) { return (at.accum() + 1) * (at.accum() + 1); }}}},
      {"-x",
       "def f(accum): return -accum",
       {},
       {{"D", [](const Element& at) { return -at.accum(); }}}},
      {"x * -1.0",
       "def f(accum): return accum * -1.0",
       {},
       {{"D", [](const Element& at) { return -at.accum(); }}}},
      {"comparison",
       "def f(accum, t): return (accum > t) * accum",
       {number("t", 3)},
       {{"D", [](const Element& at) { return at.accum() > 3 ? at.accum() : 0.0; }}}},
      {"a if c else b",
       "def f(accum, a): return a if accum < 0 else accum * 2",
       {{"a", "m1"}},
       {{"D", [](const Element& at) { return at.accum() < 0 ? at("a") : 2 * at.accum(); }}}},
      {"x ** 2",
       "def f(accum): return accum ** 2",
       {},
       {{"D", [](const Element& at) { return at.accum() * at.accum(); }}}},
      {"maximum, minimum",
       "def f(accum, b): return maximum(accum, b) - minimum(accum, 2)",
       {{"b", "n"}},
       {{"D",
         [](const Element& at) {
           return std::max(at.accum(), at("b")) - std::min(at.accum(), 2.0);
         }}}},
      {"identity, multiply_add",
       "def f(accum, b): return multiply_add(accum, b, identity(accum))",
       {{"b", "n"}},
       {{"D", [](const Element& at) { return at.accum() * at("b") + at.accum(); }}}},
      {"min of two",
       "def f(accum): return min(accum, 1)",
       {},
       {{"D", [](const Element& at) { return std::min(at.accum(), 1.0); }}}},
      {"scalars are not baked in",
       "def f(accum, s): return accum * s",
       {number("s", -3)},
       {{"D", [](const Element& at) { return -3 * at.accum(); }}}},
      {"tensor of one element",
       "def f(accum, s): return accum * s",
       {{"s", "1"}},
       {{"D", [](const Element& at) { return at.accum() * at("s"); }}}},
      {"row bias",
       "def f(accum, b): return accum + b",
       {{"b", "1n"}},
       {{"D", [](const Element& at) { return at.accum() + at("b"); }}}},
      {"column bias",
       "def f(accum, b): return accum + b",
       {{"b", "m1"}},
       {{"D", [](const Element& at) { return at.accum() + at("b"); }}}},
      {"column bias per batch",
       "def f(accum, b): return accum + b",
       {{"b", "lm1"}},
       {{"D", [](const Element& at) { return at.accum() + at("b"); }}}},
      {"row and column bias",
       "def f(accum, b, c): return accum + b * c",
       {{"b", "n"}, {"c", "m1"}},
       {{"D", [](const Element& at) { return at.accum() + at("b") * at("c"); }}}},
      {"(M, N) with batches",
       "def f(accum, aux): return accum * aux",
       {{"aux", "mn"}},
       {{"D", [](const Element& at) { return at.accum() * at("aux"); }}}},
      {"aux of another layout",
       "def f(accum, aux): return accum - aux",
       {{"aux", "lmn", DType::float32, true}},
       {{"D", [](const Element& at) { return at.accum() - at("aux"); }}}},
      {"results of another layout",
       "def f(accum): D = accum; t = accum + 1; return D, t",
       {{"t", "lmn", DType::float32, true}},
       {{"D", accum}, {"t", [](const Element& at) { return at.accum() + 1; }}}},
      {"sum to a scalar, not filled before",
       "def f(accum): D = accum; s = sum(D); return D, s",
       {{"s", "1"}},
       {{"D", accum}, {"s", accum, Reduction::sum}}},
      {"max to a scalar, not filled before",
       "def f(accum): D = -7 - relu(accum); s = max(D); return D, s",
       {{"s", "1"}},
       {{"s", [](const Element& at) { return -7 - relu(at.accum()); }, Reduction::max}}},
      {"reduction of rows",
       "def f(accum): D = accum; s = sum(D); return D, s",
       {{"s", "lm1"}},
       {{"s", accum, Reduction::sum}}},
      {"reduction of columns",
       "def f(accum): D = accum; s = amax(D); return D, s",
       {{"s", "n"}},
       {{"s", accum, Reduction::amax}}},
      {"any order of parameters",
       "def f(bias, accum): return accum - bias",
       {{"bias", "n"}},
       {{"D", [](const Element& at) { return at.accum() - at("bias"); }}}},
      {"int32 accumulator",
       "def f(accum, bias): return accum + bias",
       {{"bias", "n"}},
       {{"D", [](const Element& at) { return at.accum() + at("bias"); }}},
       std::nullopt,
       DType::int8},

      // An operand's shape determines its kind, whatever its name.
      {"C is a vector",
       "def f(accum, C): return accum + C",
       {{"C", "n"}},
       {{"D", [](const Element& at) { return at.accum() + at("C"); }}}},
      {"C is a column",
       "def f(accum, C): return accum + C",
       {{"C", "m1"}},
       {{"D", [](const Element& at) { return at.accum() + at("C"); }}}},
      {"C is a number",
       "def f(accum, C): return accum + C",
       {number("C", 5)},
       {{"D", [](const Element& at) { return at.accum() + 5; }}}},
      {"C is one element",
       "def f(accum, C): return accum + C",
       {{"C", "1"}},
       {{"D", [](const Element& at) { return at.accum() + at("C"); }}}},
      {"(L, 1, 1) is a scale per batch",
       "def f(accum, scale): return accum * scale",
       {{"scale", "l11"}},
       {{"D", [](const Element& at) { return at.accum() * at("scale"); }}}},
      {"a leading 1 repeats",
       "def f(accum, aux): return accum + aux",
       {{"aux", "1mn"}},
       {{"D", [](const Element& at) { return at.accum() + at("aux"); }}}},

      activation("relu(accum)", Op::relu, [](const Element& at) { return relu(at.accum()); }),
      activation("sigmoid(accum)", Op::sigmoid,
                 [](const Element& at) { return 1 / (1 + std::exp(-at.accum())); }),
      activation("tanh(accum)", Op::tanh, [](const Element& at) { return std::tanh(at.accum()); }),
      activation("exp(accum)", Op::exp, [](const Element& at) { return std::exp(at.accum()); }),
      activation("silu(accum)", Op::silu,
                 [](const Element& at) { return at.accum() / (1 + std::exp(-at.accum())); }),
      activation("gelu(accum)", Op::gelu,
                 [](const Element& at) {
                   return at.accum() * std::erfc(-at.accum() / std::sqrt(2.0)) / 2;
                 }),
      activation(
          "hardswish(accum)", Op::hardswish,
          [](const Element& at) { return at.accum() * std::clamp(at.accum() + 3, 0.0, 6.0) / 6; }),
      activation("leaky_relu(accum)", Op::leaky_relu,
                 [](const Element& at) {
                   return at.accum() > 0 ? at.accum() : at.accum() * static_cast<double>(0.01F);
                 }),
      activation("sqrt(accum)", Op::sqrt, [](const Element& at) { return std::sqrt(at.accum()); }),
      activation("log(accum)", Op::log, [](const Element& at) { return std::log(at.accum()); }),
      activation("rsqrt(accum)", Op::rsqrt,
                 [](const Element& at) { return 1 / std::sqrt(at.accum()); })};
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::int8, DType::uint8,
                            DType::int32, DType::float64, DType::float8_e4m3fn, DType::float8_e5m2})
    table.push_back({"aux and results of " + std::string(name(dtype)),
                     "def f(accum, aux): D = accum + aux; t = where(aux > 1, aux, 1); return D, t",
                     {{"aux", "lmn", dtype}, {"t", "lmn", dtype}},
                     {{"D", [](const Element& at) { return at.accum() + at("aux"); }},
                      {"t", [](const Element& at) { return std::max(at("aux"), 1.0); }}}});
  return table;
}

INSTANTIATE_TEST_SUITE_P(table, KnownSources, testing::ValuesIn(works()));

// --- what is refused -----------------------------------------------------------------------------

struct Refused {
  std::string source;
  std::string text;
  std::vector<Operand> operands;
  std::string operand;            // the operand in the error
  std::vector<std::string> says;  // texts that the error contains
};

void PrintTo(const Refused& row, std::ostream* out) { *out << row.source << ": " << row.text; }

class RefusedSources : public testing::TestWithParam<Refused> {};

TEST_P(RefusedSources, give_one_error_with_place_and_reason) {
  const Refused& row = GetParam();
  const Bench bench(row.operands);
  try {
    (void)bench.bind(row.text);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.operand(), HasSubstr(row.operand)) << error.what();
    for (const std::string& words : row.says) EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

std::vector<Refused> refused() {
  const auto text = [](std::string source, std::string words, int line, int column,
                       std::string reason) {
    return Refused{
        words,
        std::move(source),
        {},
        "epilogue",
        {"line " + std::to_string(line), "column " + std::to_string(column), std::move(reason)}};
  };
  return {
      text("def f(x):\n  D = relu(x)\n  return D", "no accum", 1, 1, "accum among the parameters"),
      text("def f(accum):\n  t = accum\n  return t", "no D", 3, 10, "D among the returned names"),
      text("def f(accum):\n  x = accum\n  x = relu(x)\n  return x", "name assigned twice", 3, 3,
           "assigned at line 2, column 3"),
      text("def f(accum, b):\n  b = b + 1\n  return b", "parameter assigned again", 2, 3,
           "no parameter"),
      text("def f(accum):\n  D = accum * scale\n  return D", "name from outside", 2, 15,
           "parameters, bound by name"),
      text("def f(accum): D = torch.relu(accum); return D", "torch.relu", 1, 24,
           "without a module"),
      text("def f(accum): D = accum % 2; return D", "%", 1, 25, "x - y * floor(x / y)"),
      text("def f(accum): D = accum // 2; return D", "//", 1, 25, "floor(x / y)"),
      text("def f(accum, w): D = accum @ w; return D", "@", 1, 28, "element by element"),
      text("def f(accum):\n  if accum > 0:\n    D = 1\n  else:\n    D = 2\n  return D", "if", 2, 3,
           "a if c else b"),
      text("def f(accum):\n  z = accum\n  for i in range(3):\n    z = z + 1\n  return z", "for", 3,
           3, "no loops"),
      text("def f(accum):\n  z = accum\n  z += 1\n  D = z\n  return D", "z += 1", 3, 5,
           "a name of its own"),
      text("def f(accum, b=1.0): D = accum * b; return D", "default", 1, 15, "no defaults"),
      text("def f(accum, *, b): D = accum * b; return D", "keyword only", 1, 14,
           "operand is a parameter"),
      text("def f(accum, *args): D = accum; return D", "*args", 1, 14, "operand is a parameter"),
      text("def f(accum, **kwargs): D = accum; return D", "**kwargs", 1, 14,
           "operand is a parameter"),
      text("<function f>", "a callable's name for its source", 1, 1, "statement"),
      text("def f(accum):\n  D = accum\n  s = sum(D)\n  t = s + 1\n  return D, t",
           "reduction read again", 4, 7, "result of a reduction"),
      text("def f(accum): return relu(accum, 2.0)", "wrong arity", 1, 22, "1 operand of relu"),
      text("def f(accum): return min()", "min()", 1, 22, "2 operands of min"),
      text("def f(accum): D = permute(accum, 1, 0); return D", "permute", 1, 19,
           "layouts belong to tensors"),
      text("def f(accum): D = reshape(accum, 7); return D", "reshape", 1, 19,
           "layouts belong to tensors"),
      text("def f(accum): D = accum.T; return D", "transposed D", 1, 24, "module"),
      text("def f(accum): D = accum; unused = accum * 2; return D", "unused result", 1, 26,
           "leave it out"),
      text("def f(accum, unused): D = accum; return D", "unused parameter", 1, 14, "leave it out"),
      {"missing operand",
       "def f(accum, bias): return accum + bias",
       {},
       "epilogue operand bias",
       {"none", "reads it"}},
      {"operand that the program does not name",
       "def f(accum): return accum",
       {{"bias", "n"}},
       "epilogue operand bias",
       {"none of them", "it has none"}},
      {"number for a result",
       "def f(accum): D = accum; t = sum(D); return D, t",
       {number("t", 0)},
       "epilogue operand t",
       {"a tensor to store"}},
      {"shapes that do not broadcast",
       "def f(accum, b): return accum + b",
       {{"b", "4"}},
       "epilogue operand b",
       {"(2, 7, 6)", "(4,)", "column"}},
      {"rows for columns",
       "def f(accum, b): return accum + b",
       {{"b", "m"}},
       "epilogue operand b",
       {"(7,)"}},
      {"aux with more batches",
       "def f(accum, b): return accum + b",
       {{"b", "3mn"}},
       "epilogue operand b",
       {"(3, 7, 6)"}},
      {"aux of higher rank",
       "def f(accum, b): return accum + b",
       {{"b", "1lmn"}},
       "epilogue operand b",
       {"(1, 2, 7, 6)"}},
      {"result of another shape",
       "def f(accum): D = accum; t = D + 1; return D, t",
       {{"t", "mn"}},
       "epilogue operand t",
       {"out"}},
      {"result that is transposed",
       "def f(accum): D = accum; t = D + 1; return D, t",
       {{"t", "lnm"}},
       "epilogue operand t",
       {"(2, 6, 7)"}},
      {"reduction into a full tensor",
       "def f(accum): D = accum; t = sum(D); return D, t",
       {{"t", "lmn"}},
       "epilogue operand t",
       {"nothing is reduced"}},
  };
}

INSTANTIATE_TEST_SUITE_P(table, RefusedSources, testing::ValuesIn(refused()));

// --- kernels and programs ------------------------------------------------------------------------

TEST(ProgramIdentity, kernels_of_one_program_refuse_another_and_none) {
  const Bench with_bias(std::vector<Operand>{{"bias", "n"}});
  const Bench plain(std::vector<Operand>{});
  const GemmArguments relu_of = with_bias.bind("D = relu(accum + bias)");
  const GemmArguments tanh_of = with_bias.bind("D = tanh(accum + bias)");
  const GemmArguments nothing = plain.bind("D = accum");
  for (const Kernel& kernel : get_kernels(relu_of)) {
    EXPECT_TRUE(kernel.supports(relu_of));
    for (const GemmArguments* const other : {&tanh_of, &nothing}) {
      EXPECT_THAT(kernel.supports(*other).error(), HasSubstr("relu")) << kernel.name();
      EXPECT_THROW(kernel.run(*other, {.stream = Stream::cpu()}), Error) << kernel.name();
    }
  }
  for (const Kernel& kernel : get_kernels(nothing)) EXPECT_FALSE(kernel.supports(relu_of));
}

TEST(ProgramIdentity, numbers_of_a_program_are_parameters_of_its_kernels) {
  const Bench one(std::vector{number("s", 1)});
  const Bench two(std::vector{number("s", 2)});
  const GemmArguments first = one.bind("D = accum * s");
  for (const Kernel& kernel : get_kernels(first))
    EXPECT_TRUE(kernel.supports(two.bind("D = s * accum")));
}

}  // namespace
}  // namespace gemmery
