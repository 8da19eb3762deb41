// SPDX-License-Identifier: Apache-2.0
// One packing loop per stored type; the compiler vectorises conversion and copy if lanes are
// contiguous.
#include "providers/host/pack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "device/abi/prepared_layout.hpp"
#include "providers/host/number.hpp"
#include "providers/host/pack_window.hpp"

namespace gemmery::host {
namespace {

// Codes of a packed type, addressed like an array of them.
class PackedCodes {
 public:
  PackedCodes(DType dtype, const void* data) : data_(data), dtype_(dtype) {}

  float operator[](std::int64_t index) const {
    return static_cast<float>(load(dtype_, data_, first_ + index));
  }
  PackedCodes operator+(std::int64_t elements) const {
    PackedCodes moved = *this;
    moved.first_ += elements;
    return moved;
  }
  PackedCodes& operator+=(std::int64_t elements) { return *this = *this + elements; }

 private:
  const void* data_;
  std::int64_t first_ = 0;
  DType dtype_;
};

// Reads a stored type: Stored is its type in memory, `read` gives an equal float or double.
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

// The mapping of a value on its way into a panel.
struct Itself {
  template <class T>
  T operator()(T value) const {
    return value;
  }
};
template <class T>
struct Magnitude {
  T least;
  T end;

  T operator()(T value) const {
    const T magnitude = std::fabs(value);
    if (magnitude >= end) return std::numeric_limits<T>::infinity();
    return magnitude == T{0} ? magnitude : std::max(magnitude, least);
  }
};

// One panel; `source` is its first lane.
template <class T, class Type, class Source, class Map>
void pack_panel(const PanelSource& shape, Source source, int lanes, int width, const Map& map,
                T* panel) {
  const std::int64_t lane_stride = shape.lane_stride;
  const std::int64_t depth_stride = shape.depth_stride;
  if (lanes < width) std::fill_n(panel, shape.depth * width, T{0});
  if (lane_stride == 1) {
    for (std::int64_t k = 0; k < shape.depth; ++k, panel += width, source += depth_stride)
      for (int lane = 0; lane < lanes; ++lane)
        panel[lane] = map(static_cast<T>(Type::read(source[lane])));
    return;
  }
  // The depth is split, so that the panel's cache lines stay cached while every lane adds its
  // share.
  constexpr std::int64_t piece = 64;
  for (std::int64_t first = 0; first < shape.depth; first += piece) {
    const std::int64_t count = std::min(piece, shape.depth - first);
    for (int lane = 0; lane < lanes; ++lane) {
      const auto element = source + lane * lane_stride + first * depth_stride;
      T* packed_element = panel + first * width + lane;
      for (std::int64_t k = 0; k < count; ++k)
        packed_element[k * width] = map(static_cast<T>(Type::read(element[k * depth_stride])));
    }
  }
}

template <class T, class Type, class Map>
void pack_typed(const PanelSource& source, LaneRange range, int width, const Map& map, T* panels) {
  const auto* first = static_cast<const typename Type::Stored*>(source.data);
  const auto read = [&](typename Type::Stored element) {
    return map(static_cast<T>(Type::read(element)));
  };
  for (std::int64_t lane = 0; lane < range.count; lane += width) {
    const int lanes = static_cast<int>(std::min<std::int64_t>(width, range.count - lane));
    if (source.window)
      pack_window(*source.window, first,
                  {range.first + lane, lanes, width, source.first_depth, source.depth}, read,
                  panels);
    else
      pack_panel<T, Type>(source, first + (range.first + lane) * source.lane_stride, lanes, width,
                          map, panels);
    panels += source.depth * width;
  }
}

template <class T, class Map>
void pack_packed(const PanelSource& source, LaneRange range, int width, const Map& map, T* panels) {
  const PackedCodes first(source.dtype, source.data);
  for (std::int64_t lane = 0; lane < range.count; lane += width) {
    const int lanes = static_cast<int>(std::min<std::int64_t>(width, range.count - lane));
    pack_panel<T, AsItIs<float>>(source, first + (range.first + lane) * source.lane_stride, lanes,
                                 width, map, panels);
    panels += source.depth * width;
  }
}

// The place of an element in memory.
std::int64_t index_of(const PanelSource& source, std::int64_t lane, std::int64_t depth) {
  const std::int64_t prepared_depth = source.companions.prepared_depth;
  if (prepared_depth == 0) return lane * source.lane_stride + depth * source.depth_stride;
  return abi::prepared_index(lane, depth, prepared_depth, bit_width(source.dtype),
                             source.companions.table.has_value());
}

template <class T>
void pack_prepared(const PanelSource& source, LaneRange range, int width, T* panels) {
  const std::int64_t padded = (range.count + width - 1) / width * width;
  std::fill_n(panels, padded * source.depth, T{0});
  for (std::int64_t lane = 0; lane < range.count; ++lane)
    for (std::int64_t depth = 0; depth < source.depth; ++depth)
      panels[lane / width * width * source.depth + depth * width + lane % width] = static_cast<T>(
          load(source.dtype, source.data, index_of(source, range.first + lane, depth)));
}

template <class T, class Map>
void pack_any(const PanelSource& source, LaneRange range, int width, const Map& map, T* panels) {
  switch (source.dtype) {
    case DType::float64:
      return pack_typed<T, AsItIs<double>>(source, range, width, map, panels);
    case DType::float32:
      return pack_typed<T, AsItIs<float>>(source, range, width, map, panels);
    case DType::float16:
      return pack_typed<T, Float16>(source, range, width, map, panels);
    case DType::bfloat16:
      return pack_typed<T, Bfloat16>(source, range, width, map, panels);
    case DType::float8_e4m3fn:
      return pack_typed<T, E4m3>(source, range, width, map, panels);
    case DType::float8_e5m2:
      return pack_typed<T, E5m2>(source, range, width, map, panels);
    case DType::int8:
      return pack_typed<T, AsItIs<std::int8_t>>(source, range, width, map, panels);
    case DType::uint8:
      return pack_typed<T, AsItIs<std::uint8_t>>(source, range, width, map, panels);
    case DType::int32:
      return pack_typed<T, AsItIs<std::int32_t>>(source, range, width, map, panels);
    case DType::uint32:
      return pack_typed<T, AsItIs<std::uint32_t>>(source, range, width, map, panels);
    default:
      return pack_packed(source, range, width, map, panels);
  }
}

// Subtracts the zero points of packed elements and multiplies them by the scales, lane by lane.
template <class T, class Finish>
void scale_panels(const PanelSource& source, LaneRange range, int width, const Finish& finish,
                  T* panels) {
  for (std::int64_t lane = 0; lane < range.count; ++lane) {
    T* const panel = panels + lane / width * width * source.depth + lane % width;
    const std::int64_t row = range.first + lane;
    for (std::int64_t depth = 0; depth < source.depth;) {
      const std::int64_t first = source.first_depth + depth;
      const std::int64_t end =
          source.companions.next_change(first, source.first_depth + source.depth) -
          source.first_depth;
      const auto zero = static_cast<T>(source.companions.zero_at(row, first));
      const double scale = source.companions.scale_at(row, first);
      const double size = source.companions.scale_magnitude_at(row, first);
      for (; depth < end; ++depth) {
        T& element = panel[depth * width];
        element = finish(static_cast<T>(source.companions.number_of(element)), zero, scale, size);
      }
    }
  }
}

// Applies the program to decoded elements.
template <class T>
void run_program(const PanelSource& source, LaneRange range, int width, T* panels) {
  PanelMachine<T> machine(*source.companions.program);
  for (std::int64_t lane = 0; lane < range.count; ++lane)
    machine.run(range.first + lane, source.first_depth, source.depth, width,
                panels + lane / width * width * source.depth + lane % width);
}

// The distance of a kernel's decoded element from the reference's.
double decoding_distance(const PanelSource& source, double decoded, double size) {
  const int roundings = source.companions.rounding_count();
  if (roundings == 0) return 0;
  const bool is_double = source.companions.program->compute == DType::float64;
  const double unit = (is_double ? 0x1p-53 : 0x1p-24) * 1.0001;
  return std::isnan(decoded) ? 0 : roundings * unit * decoded_magnitude(size);
}

// The magnitude, or the deviation, of an element that a program computes.
double packed_range(const ElementRange& range, DType element, PackedValue packed) {
  if (packed == PackedValue::deviation) return range.deviation();
  const double magnitude = range.magnitude();
  return std::isnan(magnitude) ? magnitude : magnitude_range(element, packed).clamp(magnitude);
}

double programmed_element(const PanelSource& source, std::int64_t lane, std::int64_t depth,
                          PanelIntervals& intervals, PackedValue packed) {
  const PanelCompanions& own = source.companions;
  const std::int64_t place = depth - source.first_depth;
  const double stored = load(source.dtype, source.data, index_of(source, lane, place));
  const double whole = own.number_of(stored) - own.zero_at(lane, depth);
  const double decoded = whole * own.scale_at(lane, depth);
  const double distance =
      decoding_distance(source, decoded, whole * own.scale_magnitude_at(lane, depth));
  return packed_range(intervals.at(lane, depth, decoded, distance), own.program->element, packed);
}

template <class T>
void pack_ranges(const PanelSource& source, LaneRange range, int width, PackedValue packed,
                 T* panels) {
  PanelIntervals intervals(*source.companions.program);
  const std::int64_t padded = (range.count + width - 1) / width * width;
  std::fill_n(panels, padded * source.depth, T{0});
  for (std::int64_t lane = 0; lane < range.count; ++lane)
    for (std::int64_t depth = 0; depth < source.depth; ++depth)
      panels[lane / width * width * source.depth + depth * width + lane % width] =
          static_cast<T>(programmed_element(source, range.first + lane, source.first_depth + depth,
                                            intervals, packed));
}

template <class T>
void pack_scaled(const PanelSource& source, LaneRange range, int width, PackedValue packed,
                 T* panels) {
  const bool has_program = source.companions.program != nullptr;
  if (has_program && packed != PackedValue::itself)
    return pack_ranges(source, range, width, packed, panels);
  if (source.companions.prepared_depth > 0)
    pack_prepared(source, range, width, panels);
  else
    pack_any(source, range, width, Itself{}, panels);
  if (packed == PackedValue::itself) {
    scale_panels(
        source, range, width,
        [](T value, T zero, double scale, double) {
          return static_cast<T>((value - zero) * static_cast<T>(scale));
        },
        panels);
    if (has_program) run_program(source, range, width, panels);
    return;
  }
  scale_panels(
      source, range, width,
      [](T value, T zero, double, double size) {
        return static_cast<T>(decoded_magnitude((static_cast<double>(value) - zero) * size));
      },
      panels);
}

}  // namespace

double packed_element(const PanelSource& source, std::int64_t lane, std::int64_t depth,
                      PackedValue packed) {
  const PanelCompanions& own = source.companions;
  if (own.program != nullptr && packed != PackedValue::itself) {
    PanelIntervals intervals(*own.program);
    return programmed_element(source, lane, depth, intervals, packed);
  }
  const double stored = load(source.dtype, source.data, index_of(source, lane, depth));
  const double whole = own.number_of(stored) - own.zero_at(lane, depth);
  return packed == PackedValue::itself
             ? whole * own.scale_at(lane, depth)
             : decoded_magnitude(whole * own.scale_magnitude_at(lane, depth));
}

template <class T>
void pack_panels(const PanelSource& source, LaneRange range, int width, PackedValue packed,
                 T* panels) {
  if (source.depth == 0) return;  // there may be no memory
  if (source.companions.are_used()) return pack_scaled(source, range, width, packed, panels);
  if (packed == PackedValue::itself) return pack_any(source, range, width, Itself{}, panels);
  const MagnitudeRange kept = magnitude_range(source.dtype, packed);
  pack_any(source, range, width, Magnitude<T>{static_cast<T>(kept.least), static_cast<T>(kept.end)},
           panels);
}

double MagnitudeRange::clamp(double magnitude) const {
  return Magnitude<double>{least, end}(magnitude);
}

MagnitudeRange magnitude_range(DType dtype, PackedValue packed) noexcept {
  constexpr double never = std::numeric_limits<double>::infinity();
  constexpr double end_of_float16 = 65520;  // half a unit beyond the largest number
  switch (packed) {
    case PackedValue::itself:
    case PackedValue::magnitude:
    case PackedValue::deviation:
      break;
    case PackedValue::aligned_magnitude: {
      if (is_integer(dtype)) break;
      const Rounding rounding = rounding_of(dtype);
      return {rounding.smallest / (2 * rounding.unit), never};
    }
    case PackedValue::f16_magnitude:
      return {0x1p-14, end_of_float16};
    case PackedValue::f16x3_magnitude:
      return {0x1p-3, end_of_float16};
    case PackedValue::split_magnitude:
      return {0x1p-102, never};
  }
  return {0, never};
}

template void pack_panels<float>(const PanelSource&, LaneRange, int, PackedValue, float*);
template void pack_panels<double>(const PanelSource&, LaneRange, int, PackedValue, double*);

}  // namespace gemmery::host
