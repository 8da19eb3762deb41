// SPDX-License-Identifier: Apache-2.0
// Random GEMMs in host memory: any types and strides, poison in every gap, canaries around out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gemmery/arguments.hpp>

#include "providers/host/number.hpp"

namespace gemmery::host {

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}
template <class T>
T pick_from(Random& random, std::initializer_list<T> values) {
  return *(values.begin() + pick(random, 0, static_cast<std::int64_t>(values.size()) - 1));
}

enum class Fill { normal, integers, nan };

// The memory of one operand, and a view of it.
class OwnedTensor {
 public:
  // The kinds of strides of a (batch, rows, columns) view.
  enum class Form { row, column, padded, general, negative, broadcast_batch, broadcast_rows };

  OwnedTensor(Random& random, DType dtype, std::array<std::int64_t, 3> shape, Form form)
      : dtype_(dtype), shape_(shape) {
    choose_strides(random, form);
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t reach = (shape[d] - 1) * strides_[d];
      (reach < 0 ? low : high) += shape[d] > 0 ? reach : 0;
    }
    first_ = guard - low;
    bytes_.assign(static_cast<std::size_t>(first_ + high + 1 + guard) * byte_width(dtype),
                  std::byte{0xff});  // NaN in every float
  }

  Tensor view() const {
    return Tensor(bytes_.data() + static_cast<std::size_t>(first_) * byte_width(dtype_), dtype_,
                  shape_, strides_);
  }

  std::int64_t index(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return first_ + l * strides_[0] + i * strides_[1] + j * strides_[2];
  }
  double get(std::int64_t l, std::int64_t i, std::int64_t j) const {
    return load(dtype_, bytes_.data(), index(l, i, j));
  }
  void set(std::int64_t l, std::int64_t i, std::int64_t j, double value) {
    store(dtype_, bytes_.data(), index(l, i, j), {value, 0});
  }

  template <class Value>
  void fill(const Value& value) {
    for_each([&](std::int64_t l, std::int64_t i, std::int64_t j) { set(l, i, j, value()); });
  }
  void fill(Random& random, Fill how) {
    std::normal_distribution<double> normal;
    const bool is_unsigned = facts(dtype_).kind == DTypeKind::unsigned_integer;
    if (how == Fill::nan) return;  // memory is NaN from the start
    if (how == Fill::normal && is_floating(dtype_)) return fill([&] { return normal(random); });
    const std::int64_t limit = is_floating(dtype_) ? 2 : 255;
    fill([&] { return static_cast<double>(pick(random, is_unsigned ? 0 : -limit, limit)); });
  }

  // The number of bytes outside of the view's elements that have changed.
  std::int64_t touched_gaps() const {
    std::vector<bool> is_element(bytes_.size());
    for_each([&](std::int64_t l, std::int64_t i, std::int64_t j) {
      const auto begin = static_cast<std::size_t>(index(l, i, j)) * byte_width(dtype_);
      for (std::size_t b = 0; b < byte_width(dtype_); ++b) is_element[begin + b] = true;
    });
    std::int64_t touched = 0;
    for (std::size_t b = 0; b < bytes_.size(); ++b)
      touched += !is_element[b] && bytes_[b] != std::byte{0xff};
    return touched;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t guard = 32;

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t l = 0; l < shape_[0]; ++l)
      for (std::int64_t i = 0; i < shape_[1]; ++i)
        for (std::int64_t j = 0; j < shape_[2]; ++j) visit(l, i, j);
  }

  void choose_strides(Random& random, Form form) {
    const auto [batches, rows, columns] = shape_;
    const std::int64_t pad = form == Form::row || form == Form::column ? 0 : pick(random, 0, 5);
    const std::int64_t step = form == Form::general ? pick(random, 1, 3) : 1;
    if (form == Form::column)
      strides_ = {rows * columns, 1, std::max<std::int64_t>(rows, 1)};
    else
      strides_ = {rows * (columns * step + pad) + pad, columns * step + pad, step};
    if (form == Form::padded && pick(random, 0, 1) == 1)
      strides_ = {columns * (rows + pad) + pad, 1, rows + pad};
    if (form == Form::negative)
      for (auto& stride : strides_) stride *= pick(random, 0, 1) == 0 ? 1 : -1;
    if (form == Form::broadcast_batch) strides_[0] = 0;
    if (form == Form::broadcast_rows) strides_[1] = 0;
    static_cast<void>(batches);
  }

  DType dtype_;
  std::array<std::int64_t, 3> shape_;
  std::array<std::int64_t, 3> strides_{};
  std::int64_t first_ = 0;
  mutable std::vector<std::byte> bytes_;
};

struct GemmTypes {
  DType a, b, out, accumulator;
};

inline GemmTypes random_types(Random& random) {
  using enum DType;
  if (pick(random, 0, 3) == 0)
    return {pick_from(random, {int8, uint8}), pick_from(random, {int8, uint8}),
            pick_from(random, {int32, float32, int8, uint8}), int32};
  if (pick(random, 0, 4) == 0)
    return {float64, float64, pick_from(random, {float64, float32}), float64};
  const DType a = pick_from(random, {float32, float16, bfloat16, float8_e4m3fn, float8_e5m2});
  const DType b = pick(random, 0, 2) == 0
                      ? pick_from(random, {float32, float16, bfloat16, float8_e4m3fn, float8_e5m2})
                      : a;
  return {a, b, pick_from(random, {float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, a}),
          pick(random, 0, 7) == 0 ? float64 : float32};
}

struct GemmShape {
  std::int64_t l = 1, m = 1, n = 1, k = 1;
};

inline GemmShape random_shape(Random& random) {
  const auto extent = [&] {
    return pick(random, 0, 9) == 0 ? pick(random, 0, 2) : pick(random, 1, 80);
  };
  GemmShape shape{pick(random, 0, 2) == 0 ? pick(random, 0, 3) : 1, extent(), extent(), extent()};
  if (pick(random, 0, 9) == 0) shape.k = pick(random, 250, 600);
  return shape;
}

// One random GEMM: its operands and arguments.
class RandomGemm {
 public:
  GemmTypes types;
  GemmShape shape;
  OwnedTensor a, b, out;
  std::optional<OwnedTensor> c;
  GemmOptions options;

  RandomGemm(Random& random, GemmTypes chosen_types, GemmShape chosen_shape, Fill how)
      : types(chosen_types),
        shape(chosen_shape),
        a(random, types.a, {shape.l, shape.m, shape.k}, input_form(random)),
        b(random, types.b, {shape.l, shape.k, shape.n}, input_form(random)),
        out(random, types.out, {shape.l, shape.m, shape.n}, output_form(random)) {
    a.fill(random, how);
    b.fill(random, how);
    if (pick(random, 0, 1) == 0) options.alpha = pick_from(random, {1.0, -2.0, 0.5, 0.1, 0.0});
    if (how != Fill::normal && options.alpha == 0.1) options.alpha = 3;
    if (pick(random, 0, 1) == 0) add_c(random, how);
  }

  // C is read if beta is not 0; otherwise it exists and is full of NaN.
  GemmArguments arguments() const {
    GemmOptions all = options;
    if (c) all.c = c->view();
    return GemmArguments(a.view(), b.view(), out.view(), types.accumulator, all);
  }
  std::string text() const {
    return to_string(ProblemLine{arguments().problem(), options.alpha, options.beta});
  }

 private:
  using Form = OwnedTensor::Form;
  static Form input_form(Random& random) {
    return pick_from(random,
                     {Form::row, Form::row, Form::column, Form::column, Form::padded, Form::general,
                      Form::negative, Form::broadcast_batch, Form::broadcast_rows});
  }
  static Form output_form(Random& random) {
    return pick_from(
        random, {Form::row, Form::row, Form::column, Form::padded, Form::general, Form::negative});
  }

  void add_c(Random& random, Fill how) {
    c.emplace(random,
              pick_from(random, {types.out, types.out,
                                 is_integer(types.a) ? DType::int32 : DType::float32}),
              std::array{shape.l, shape.m, shape.n}, input_form(random));
    if (pick(random, 0, 2) == 0) return;  // beta = 0: C stays NaN
    options.beta = pick_from(random, {1.0, -1.0, 2.0, 0.5, how == Fill::normal ? 0.3 : 4.0});
    c->fill(random, how);
  }
};

}  // namespace gemmery::host
