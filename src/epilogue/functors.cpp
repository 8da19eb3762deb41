// SPDX-License-Identifier: Apache-2.0
// Functors as expressions.
#include <fmt/format.h>
#include <gemmery/error.hpp>
#include <gemmery/functors.hpp>

#include <cmath>
#include <string>

namespace gemmery::epilogue {
namespace {

[[noreturn]] void refuse_functor(ErrorKind kind, std::string operand, std::string expected,
                                 std::string got) {
  throw Error({.kind = kind,
               .operand = std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got)});
}

void check(const FunctorTypes& types) {
  if (types.compute != DType::float32 && types.compute != DType::float64)
    refuse_functor(ErrorKind::unsupported, "compute", "float32 or float64",
                   std::string(name(types.compute)));
  const bool runs_in_float64 = is_integer(types.accumulator) || types.accumulator == DType::float64;
  if (types.compute == DType::float64 && !runs_in_float64)
    refuse_functor(ErrorKind::unsupported, "compute",
                   fmt::format("float32 for an accumulator of {}", name(types.accumulator)),
                   "float64");
  const bool is_power = types.count > 0 && (types.count & (types.count - 1)) == 0;
  if (!is_power || types.count > 128 / bit_width(types.out))
    refuse_functor(ErrorKind::invalid_argument, "count",
                   fmt::format("1, 2, 4 … elements of {}, at most 16 bytes", name(types.out)),
                   std::to_string(types.count));
}

// Computes a functor in its own compute type, whatever type the program runs in: integer and
// float64 accumulators make the program run in float64 (docs/decisions/0002), where float32
// roundings must be written out. A product of two float32 is exact there. A sum that float64 rounds
// first may round a float32 tie differently, once in 2^29.
class Steps {
 public:
  explicit Steps(const FunctorTypes& types)
      : rounds_(types.compute == DType::float32 &&
                (is_integer(types.accumulator) || types.accumulator == DType::float64)) {}

  Expression operator()(const Expression& x) const { return rounds_ ? cast(x, DType::float32) : x; }

 private:
  bool rounds_;
};

Expression combine(const FunctorTypes& types, const Expression& accumulated) {
  const Steps step(types);
  const Expression alpha = step(operand("alpha"));
  if (!types.reads_c) return step(alpha * step(accumulated));
  const Expression source = step(step(operand("beta")) * step(operand("C")));
  return step(fma(alpha, step(accumulated), source));
}

double largest(DType dtype) {
  const DTypeFacts& it = facts(dtype);
  switch (it.kind) {
    case DTypeKind::signed_integer:
      return std::ldexp(1.0, it.bits - 1) - 1;
    case DTypeKind::unsigned_integer:
      return std::ldexp(1.0, it.bits) - 1;
    case DTypeKind::floating:
      break;
  }
  switch (dtype) {
    case DType::float8_e4m3fn:
      return 448;
    case DType::float4_e2m1fn:
      return 6;
    case DType::float6_e2m3fn:
      return 7.5;
    case DType::float6_e3m2fn:
      return 28;
    case DType::float8_e8m0fnu:
      return std::ldexp(1.0, 127);
    default:
      // IEEE's layout: the exponent of all ones means infinity.
      return std::ldexp(2 - std::ldexp(1.0, -it.mantissa_bits), (1 << (it.exponent_bits - 1)) - 1);
  }
}

double lowest(DType dtype) {
  if (facts(dtype).kind == DTypeKind::unsigned_integer) return 0;
  if (facts(dtype).kind == DTypeKind::signed_integer) return -largest(dtype) - 1;
  return dtype == DType::float8_e8m0fnu ? std::ldexp(1.0, -127) : -largest(dtype);
}

Expression activate(Activation activation, const Steps& step, const Expression& t) {
  switch (activation) {
    case Activation::identity:
      return t;
    case Activation::relu:
      return relu(t);
    case Activation::leaky_relu:
      return leaky_relu(t, step(operand("leaky_alpha")));
    case Activation::tanh:
      return tanh(t);
    case Activation::sigmoid:
      return sigmoid(t);
    case Activation::silu:
      return silu(t);
    case Activation::hardswish:
      return hardswish(t);
    case Activation::gelu:
      return gelu(t);
  }
  refuse_functor(ErrorKind::invalid_argument, "activation", "one of the enumeration",
                 std::to_string(static_cast<int>(activation)));
}

}  // namespace

Program linear_combination(const FunctorTypes& types, const Expression& accumulated) {
  check(types);
  return Program{{"D", combine(types, accumulated)}};
}

Program linear_combination_clamp(const FunctorTypes& types, const Expression& accumulated) {
  check(types);
  const Steps step(types);
  // The largest int32 is 2^31 in float32; the store saturates it to the largest int32.
  return Program{
      {"D", clamp(combine(types, accumulated), step(lowest(types.out)), step(largest(types.out)))}};
}

Program fast_linear_combination_clamp(DType out, int count, bool reads_c,
                                      const Expression& accumulated) {
  if (out != DType::int8 && out != DType::uint8)
    refuse_functor(ErrorKind::unsupported, "out", "int8 or uint8", std::string(name(out)));
  if (count % 4 != 0)
    refuse_functor(ErrorKind::invalid_argument, "count", "a multiple of 4", std::to_string(count));
  return linear_combination_clamp({.out = out,
                                   .count = count,
                                   .accumulator = DType::int32,
                                   .compute = DType::float32,
                                   .reads_c = reads_c},
                                  accumulated);
}

Program linear_combination_generic(Activation activation, const FunctorTypes& types,
                                   const Expression& accumulated) {
  check(types);
  const Steps step(types);
  return Program{{"D", step(activate(activation, step, combine(types, accumulated)))}};
}

}  // namespace gemmery::epilogue
