// SPDX-License-Identifier: Apache-2.0
// The definition of a gemm, element by element.
#include "tests/conformance/naive_oracle.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace gemmery::conformance {
namespace {

// --- numbers, read by the arithmetic of their format ---

// Of the codes with the largest exponent.
enum class Specials { infinity_and_nan, nan, none };

long double read_float(std::uint64_t code, int exponent_bits, int mantissa_bits,
                       Specials specials) {
  const std::uint64_t mantissa = code & ((std::uint64_t{1} << mantissa_bits) - 1);
  const auto exponent =
      static_cast<int>((code >> mantissa_bits) & ((std::uint64_t{1} << exponent_bits) - 1));
  const bool is_negative = ((code >> (mantissa_bits + exponent_bits)) & 1) != 0;
  const int all_ones = (1 << exponent_bits) - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  long double value = 0;
  if (exponent == all_ones && specials == Specials::infinity_and_nan) {
    value = mantissa == 0 ? std::numeric_limits<long double>::infinity()
                          : std::numeric_limits<long double>::quiet_NaN();
  } else if (exponent == all_ones && specials == Specials::nan &&
             mantissa == (std::uint64_t{1} << mantissa_bits) - 1) {
    value = std::numeric_limits<long double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<long double>(mantissa), 1 - bias - mantissa_bits);
  } else {
    const auto significand =
        static_cast<long double>(mantissa + (std::uint64_t{1} << mantissa_bits));
    value = std::ldexp(significand, exponent - bias - mantissa_bits);
  }
  return is_negative ? -value : value;
}

// The bits of an element, one by one.
std::uint64_t read_code(const void* data, std::int64_t index, int bits) {
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  std::uint64_t code = 0;
  for (int bit = 0; bit < bits; ++bit) {
    const std::int64_t at = index * bits + bit;
    code |= std::uint64_t{static_cast<std::uint8_t>(bytes[at >> 3] >> (at & 7) & 1)} << bit;
  }
  return code;
}

Specials specials_of(DType dtype) {
  if (is_packed(dtype)) return Specials::none;
  return dtype == DType::float8_e4m3fn ? Specials::nan : Specials::infinity_and_nan;
}

long double read(const Tensor& tensor, std::int64_t l, std::int64_t r, std::int64_t c) {
  const DTypeFacts& known = facts(tensor.dtype());
  const std::int64_t of_batch = tensor.has_pointers() ? 0 : l * tensor.stride(0);
  const std::int64_t index = of_batch + r * tensor.stride(1) + c * tensor.stride(2);
  const void* const data =
      tensor.has_pointers() ? static_cast<void* const*>(tensor.data())[l] : tensor.data();
  const auto width = static_cast<std::int64_t>(byte_width(tensor.dtype()));
  std::uint64_t code = 0;
  if (is_packed(tensor.dtype()))
    code = read_code(data, index, known.bits);
  else
    std::memcpy(&code, static_cast<const std::byte*>(data) + index * width,
                static_cast<std::size_t>(width));
  if (known.kind == DTypeKind::floating) {
    return read_float(code, known.exponent_bits, known.mantissa_bits, specials_of(tensor.dtype()));
  }
  if (known.kind == DTypeKind::unsigned_integer) return static_cast<long double>(code);
  const std::uint64_t sign = std::uint64_t{1} << (known.bits - 1);
  return static_cast<long double>(static_cast<std::int64_t>((code ^ sign) - sign));
}

// --- the bound ---

// Relative error of one operation in the accumulator's type.
long double unit_of(DType accumulator, bool uses_tensor_cores) {
  if (accumulator == DType::float64 || accumulator == DType::int32) return 0x1p-53L;
  if (accumulator == DType::float16) return 0x1p-11L;
  return uses_tensor_cores ? 0x1p-23L : 0x1p-24L;
}

// The largest error of an addition whose result is below the normal numbers of its type: 2^-14 for
// float16.
long double smallest_positive(DType accumulator) {
  const DTypeFacts& known = facts(accumulator);
  if (known.kind != DTypeKind::floating) return 0;
  const int bias = (1 << (known.exponent_bits - 1)) - 1;
  return std::ldexp(1.0L, 1 - bias - known.mantissa_bits);
}

// Bounds of a value in [x - e, x + e] after it is stored.
struct Interval {
  long double low;
  long double high;
};

Interval stored(DType out, long double x, long double e) {
  const DTypeFacts& known = facts(out);
  const auto bound = [&](long double value, int direction) -> long double {
    if (known.kind != DTypeKind::floating) {
      const int bits = known.bits - (known.kind == DTypeKind::signed_integer ? 1 : 0);
      const long double most = std::ldexp(1.0L, bits) - 1;
      const long double least = known.kind == DTypeKind::signed_integer ? -most - 1 : 0;
      return std::fmin(std::fmax(value + 0.5L * direction, least), most);
    }
    const int bias = (1 << (known.exponent_bits - 1)) - 1;
    const long double unit = std::ldexp(1.0L, -known.mantissa_bits - 1);
    const long double smallest = std::ldexp(1.0L, 1 - bias - known.mantissa_bits);
    return value + direction * (unit * std::fabs(value) + smallest / 2);
  };
  return {bound(x - e, -1), bound(x + e, 1)};
}

long double largest_finite(DType out) {
  const DTypeFacts& known = facts(out);
  if (known.kind != DTypeKind::floating) return std::numeric_limits<long double>::infinity();
  const int bias = (1 << (known.exponent_bits - 1)) - 1;
  if (out == DType::float8_e4m3fn) return 448;
  return std::ldexp(2 - std::ldexp(1.0L, -known.mantissa_bits), bias);
}

bool is_acceptable(DType out, long double got, long double x, long double e) {
  if (std::isinf(e)) return true;
  const Interval interval = stored(out, x, e);
  const long double largest = largest_finite(out);
  const bool may_overflow = std::fmax(std::fabs(interval.low), std::fabs(interval.high)) > largest;
  if (std::isnan(x)) return std::isnan(got);
  if (std::isnan(got)) return out == DType::float8_e4m3fn && may_overflow;
  if (std::isinf(got))
    return (may_overflow || std::isinf(x)) && std::signbit(got) == std::signbit(x);
  return got >= interval.low && got <= interval.high;
}

// The magnitude by which tensor cores align a factor: that of the smallest normal number for
// subnormals.
long double aligned(long double factor, DType dtype, bool uses_tensor_cores) {
  const DTypeFacts& known = facts(dtype);
  if (!uses_tensor_cores || factor == 0 || known.kind != DTypeKind::floating)
    return std::fabs(factor);
  return std::fmax(std::fabs(factor), std::ldexp(1.0L, 2 - (1 << (known.exponent_bits - 1))));
}

struct Element {
  long double value = 0;
  long double error = 0;
};

Element compute(const GemmArguments& arguments, const OperandRules& rules, bool uses_tensor_cores,
                std::int64_t l, std::int64_t m, std::int64_t n) {
  const std::int64_t k_extent = arguments.problem().k;
  const long double unit = unit_of(rules.accumulator, uses_tensor_cores);
  // The epilogue reads them in its compute type.
  const bool is_double = epilogue_compute_type(rules.accumulator) == DType::float64;
  const long double alpha = is_double ? arguments.alpha() : static_cast<float>(arguments.alpha());
  const long double beta = is_double ? arguments.beta() : static_cast<float>(arguments.beta());
  long double sum = 0;
  long double magnitude = 0;
  for (std::int64_t k = 0; alpha != 0 && k < k_extent; ++k) {
    const long double a = read(arguments.a(), l, m, k);
    const long double b = read(arguments.b(), l, k, n);
    sum += a * b;
    magnitude += aligned(a, arguments.a().dtype(), uses_tensor_cores) *
                 aligned(b, arguments.b().dtype(), uses_tensor_cores);
  }
  Element element{.value = alpha * sum, .error = 0};
  long double addend = 0;
  if (arguments.c() && beta != 0) addend = beta * read(*arguments.c(), l, m, n);
  element.value += addend;
  // A C wider than the epilogue's compute type is rounded when it is read.
  const bool is_wide = arguments.c() && (arguments.c()->dtype() == DType::float64 ||
                                         arguments.c()->dtype() == DType::int32);
  const long double conversion = !is_double && is_wide ? 0x1p-24L : 0;
  const auto steps = static_cast<long double>(k_extent + 2);
  element.error = steps * std::fabs(alpha) *
                      ((unit + 0x1p-63L) * magnitude + smallest_positive(rules.accumulator)) +
                  (2 * (unit + 0x1p-63L) + conversion) * std::fabs(addend);
  // Partial sums that may overflow (float16: at 65504) may give any result.
  if (magnitude * (1 + steps * unit) > largest_finite(rules.accumulator))
    element.error = std::numeric_limits<long double>::infinity();
  return element;
}

}  // namespace

NaiveVerdict judge_naively(const GemmArguments& arguments, const OperandRules& rules,
                           bool uses_tensor_cores) {
  NaiveVerdict verdict;
  const GemmProblem& problem = arguments.problem();
  for (std::int64_t l = 0; l < problem.l; ++l) {
    for (std::int64_t m = 0; m < problem.m; ++m) {
      for (std::int64_t n = 0; n < problem.n; ++n) {
        const Element element = compute(arguments, rules, uses_tensor_cores, l, m, n);
        const long double got = read(arguments.out(), l, m, n);
        if (is_acceptable(problem.out.dtype, got, element.value, element.error)) continue;
        if (verdict.mismatches++ == 0) {
          verdict.first_failure = fmt::format(
              "[{}, {}, {}]: got {}, exact {} with error {}", l, m, n, static_cast<double>(got),
              static_cast<double>(element.value), static_cast<double>(element.error));
        }
      }
    }
  }
  return verdict;
}

}  // namespace gemmery::conformance
