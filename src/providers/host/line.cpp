// SPDX-License-Identifier: Apache-2.0
// One loop for every type of memory.
#include "providers/host/line.hpp"

#include <algorithm>

#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

template <class Stored, class Convert, class Compute>
void store_converted(const Line& line, const Compute* values, const Convert& convert) {
  Stored* element = static_cast<Stored*>(line.data) + line.first;
  if (line.stride == 1) {
    for (int i = 0; i < line.count; ++i) element[i] = convert(values[i]);
    return;
  }
  for (int i = 0; i < line.count; ++i) element[i * line.stride] = convert(values[i]);
}

template <class Stored, DType dtype>
Stored narrow(float value) {
  constexpr FloatFormat format = float_format(dtype);
  return static_cast<Stored>(
      encode_float<format.exponent_bits, format.mantissa_bits, format.has_infinity>(value));
}
template <class Stored, DType dtype>
Stored narrow(double value) {
  return static_cast<Stored>(encode(float_format(dtype), value));
}

template <class Stored, class Compute, class Convert>
void load_converted(const Line& line, Compute* values, const Convert& convert) {
  const Stored* element = static_cast<const Stored*>(line.data) + line.first;
  if (line.stride == 1) {
    for (int i = 0; i < line.count; ++i) values[i] = static_cast<Compute>(convert(element[i]));
    return;
  }
  if (line.stride == 0) {
    std::fill_n(values, line.count, static_cast<Compute>(convert(*element)));
    return;
  }
  for (int i = 0; i < line.count; ++i)
    values[i] = static_cast<Compute>(convert(element[i * line.stride]));
}

}  // namespace

template <class Compute>
void store_line(const Line& line, const Compute* values) {
  const auto as = []<class Stored>(Stored) {
    return [](Compute value) { return static_cast<Stored>(value); };
  };
  const auto saturated = []<class Stored>(Stored) {
    return [](Compute value) { return saturate<Stored>(value); };
  };
  switch (line.dtype) {
    case DType::float64:
      return store_converted<double>(line, values, as(double{}));
    case DType::float32:
      return store_converted<float>(line, values, as(float{}));
    case DType::float16:
      return store_converted<std::uint16_t>(
          line, values, [](Compute v) { return narrow<std::uint16_t, DType::float16>(v); });
    case DType::bfloat16:
      return store_converted<std::uint16_t>(
          line, values, [](Compute v) { return narrow<std::uint16_t, DType::bfloat16>(v); });
    case DType::float8_e4m3fn:
      return store_converted<std::uint8_t>(
          line, values, [](Compute v) { return narrow<std::uint8_t, DType::float8_e4m3fn>(v); });
    case DType::float8_e5m2:
      return store_converted<std::uint8_t>(
          line, values, [](Compute v) { return narrow<std::uint8_t, DType::float8_e5m2>(v); });
    case DType::int8:
      return store_converted<std::int8_t>(line, values, saturated(std::int8_t{}));
    case DType::uint8:
      return store_converted<std::uint8_t>(line, values, saturated(std::uint8_t{}));
    case DType::int32:
      return store_converted<std::int32_t>(line, values, saturated(std::int32_t{}));
    case DType::uint32:
      return store_converted<std::uint32_t>(line, values, saturated(std::uint32_t{}));
    default:
      for (int i = 0; i < line.count; ++i)
        store(line.dtype, line.data, line.first + i * line.stride, {values[i], 0});
  }
}

template <class Compute>
void load_line(const Line& line, Compute* values) {
  const auto itself = [](auto value) { return value; };
  if (line.count == 0) return;
  switch (line.dtype) {
    case DType::float64:
      return load_converted<double>(line, values, itself);
    case DType::float32:
      return load_converted<float>(line, values, itself);
    case DType::float16:
      return load_converted<std::uint16_t>(line, values, from_float16);
    case DType::bfloat16:
      return load_converted<std::uint16_t>(line, values, from_bfloat16);
    case DType::float8_e4m3fn:
      return load_converted<std::uint8_t>(line, values, from_float8_e4m3fn);
    case DType::float8_e5m2:
      return load_converted<std::uint8_t>(line, values, from_float8_e5m2);
    case DType::int8:
      return load_converted<std::int8_t>(line, values, itself);
    case DType::uint8:
      return load_converted<std::uint8_t>(line, values, itself);
    case DType::int32:
      return load_converted<std::int32_t>(line, values, itself);
    case DType::uint32:
      return load_converted<std::uint32_t>(line, values, itself);
    default:
      for (int i = 0; i < line.count; ++i)
        values[i] = static_cast<Compute>(load(line.dtype, line.data, line.first + i * line.stride));
  }
}

template void store_line(const Line& line, const float* values);
template void store_line(const Line& line, const double* values);
template void load_line(const Line& line, float* values);
template void load_line(const Line& line, double* values);

}  // namespace gemmery::host
