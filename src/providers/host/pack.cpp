// SPDX-License-Identifier: Apache-2.0
// One packing loop for each stored type; the compiler vectorises conversion and copy where lanes
// are contiguous.
#include "providers/host/pack.hpp"

#include <algorithm>
#include <cmath>

#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

// How a stored type is read: Stored is its memory, `read` gives a float or double that equals it.
template <class Value>
struct AsItIs {
  using Stored = Value;
  static Value read(Stored element) { return element; }
};
struct Float16 {
  using Stored = std::uint16_t;
  static float read(Stored code) { return from_float16(code); }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  static float read(Stored code) { return from_bfloat16(code); }
};
struct E4m3 {
  using Stored = std::uint8_t;
  static float read(Stored code) { return from_float8_e4m3fn(code); }
};
struct E5m2 {
  using Stored = std::uint8_t;
  static float read(Stored code) { return from_float8_e5m2(code); }
};

// The smallest normal number of a floating type.
template <class Type>
constexpr double smallest_normal = 0;
template <>
constexpr double smallest_normal<AsItIs<double>> = 0x1p-1022;
template <>
constexpr double smallest_normal<AsItIs<float>> = 0x1p-126;
template <>
constexpr double smallest_normal<Float16> = 0x1p-14;
template <>
constexpr double smallest_normal<Bfloat16> = 0x1p-126;
template <>
constexpr double smallest_normal<E4m3> = 0x1p-6;
template <>
constexpr double smallest_normal<E5m2> = 0x1p-14;

template <class T, class Type, PackedValue packed>
T packed_value(typename Type::Stored element) {
  const T value = static_cast<T>(Type::read(element));
  if constexpr (packed == PackedValue::magnitude) return std::fabs(value);
  if constexpr (packed == PackedValue::aligned_magnitude)
    return value == T{0} ? value
                         : std::max(std::fabs(value), static_cast<T>(smallest_normal<Type>));
  return value;
}

// One panel; `source` is its first lane.
template <class T, class Type, PackedValue packed>
void pack_panel(const PanelSource& shape, const typename Type::Stored* source, int lanes, int width,
                T* panel) {
  const std::int64_t lane_stride = shape.lane_stride;
  const std::int64_t depth_stride = shape.depth_stride;
  if (lanes < width) std::fill_n(panel, shape.depth * width, T{0});
  if (lane_stride == 1) {
    for (std::int64_t k = 0; k < shape.depth; ++k, panel += width, source += depth_stride)
      for (int lane = 0; lane < lanes; ++lane)
        panel[lane] = packed_value<T, Type, packed>(source[lane]);
    return;
  }
  // Depth in pieces, so that the panel's cache lines stay near while every lane adds its share to
  // them.
  constexpr std::int64_t piece = 64;
  for (std::int64_t first = 0; first < shape.depth; first += piece) {
    const std::int64_t count = std::min(piece, shape.depth - first);
    for (int lane = 0; lane < lanes; ++lane) {
      const auto* element = source + lane * lane_stride + first * depth_stride;
      T* packed_element = panel + first * width + lane;
      for (std::int64_t k = 0; k < count; ++k)
        packed_element[k * width] = packed_value<T, Type, packed>(element[k * depth_stride]);
    }
  }
}

template <class T, class Type, PackedValue packed>
void pack_typed(const PanelSource& source, LaneRange range, int width, T* panels) {
  const auto* first = static_cast<const typename Type::Stored*>(source.data);
  for (std::int64_t lane = 0; lane < range.count; lane += width) {
    const int lanes = static_cast<int>(std::min<std::int64_t>(width, range.count - lane));
    pack_panel<T, Type, packed>(source, first + (range.first + lane) * source.lane_stride, lanes,
                                width, panels);
    panels += source.depth * width;
  }
}

template <class T, PackedValue packed>
void pack_any(const PanelSource& source, LaneRange range, int width, T* panels) {
  switch (source.dtype) {
    case DType::float64:
      return pack_typed<T, AsItIs<double>, packed>(source, range, width, panels);
    case DType::float32:
      return pack_typed<T, AsItIs<float>, packed>(source, range, width, panels);
    case DType::float16:
      return pack_typed<T, Float16, packed>(source, range, width, panels);
    case DType::bfloat16:
      return pack_typed<T, Bfloat16, packed>(source, range, width, panels);
    case DType::float8_e4m3fn:
      return pack_typed<T, E4m3, packed>(source, range, width, panels);
    case DType::float8_e5m2:
      return pack_typed<T, E5m2, packed>(source, range, width, panels);
    case DType::int8:
      return pack_typed<T, AsItIs<std::int8_t>, packed>(source, range, width, panels);
    case DType::uint8:
      return pack_typed<T, AsItIs<std::uint8_t>, packed>(source, range, width, panels);
    case DType::int32:
      return pack_typed<T, AsItIs<std::int32_t>, packed>(source, range, width, panels);
    case DType::uint32:
      return pack_typed<T, AsItIs<std::uint32_t>, packed>(source, range, width, panels);
    case DType::float8_e8m0fnu:
    case DType::float4_e2m1fn:
      break;
  }
}

}  // namespace

template <class T>
void pack_panels(const PanelSource& source, LaneRange range, int width, PackedValue packed,
                 T* panels) {
  if (source.depth == 0) return;  // and perhaps no memory
  if (packed == PackedValue::itself)
    return pack_any<T, PackedValue::itself>(source, range, width, panels);
  if (packed == PackedValue::magnitude)
    return pack_any<T, PackedValue::magnitude>(source, range, width, panels);
  pack_any<T, PackedValue::aligned_magnitude>(source, range, width, panels);
}

template void pack_panels<float>(const PanelSource&, LaneRange, int, PackedValue, float*);
template void pack_panels<double>(const PanelSource&, LaneRange, int, PackedValue, double*);

}  // namespace gemmery::host
