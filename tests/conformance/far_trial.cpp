// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/far_trial.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace gemmery::conformance {
namespace {

constexpr FarCase all_cases[] = {
    {"rows of A", FarOperand::a, FarAlong::rows},
    {"columns of A", FarOperand::a, FarAlong::columns},
    {"batches of A", FarOperand::a, FarAlong::batches},
    {"strided rows of A", FarOperand::a, FarAlong::rows, true},
    {"rows of B", FarOperand::b, FarAlong::rows},
    {"columns of B", FarOperand::b, FarAlong::columns},
    {"batches of B", FarOperand::b, FarAlong::batches},
    {"strided columns of B", FarOperand::b, FarAlong::columns, true},
    {"rows of C", FarOperand::c, FarAlong::rows},
    {"columns of C", FarOperand::c, FarAlong::columns},
    {"batches of C", FarOperand::c, FarAlong::batches},
    {"strided rows of C", FarOperand::c, FarAlong::rows, true},
    {"rows of out", FarOperand::out, FarAlong::rows},
    {"columns of out", FarOperand::out, FarAlong::columns},
    {"batches of out", FarOperand::out, FarAlong::batches},
    {"strided rows of out", FarOperand::out, FarAlong::rows, true},
    {"rows of an input", FarOperand::input, FarAlong::rows},
    {"columns of an input", FarOperand::input, FarAlong::columns},
    {"batches of an input", FarOperand::input, FarAlong::batches},
    {"rows of an output", FarOperand::output, FarAlong::rows},
    {"columns of an output", FarOperand::output, FarAlong::columns},
    {"batches of an output", FarOperand::output, FarAlong::batches},
    {"elements of a vector", FarOperand::vector, FarAlong::columns},
    {"batches of a vector", FarOperand::vector, FarAlong::batches},
};

bool has_program(FarOperand operand) { return operand >= FarOperand::input; }

// A stride with which the extent spans more than 2^32 elements, aligned for TMA.
std::int64_t far_stride(std::int64_t extent) {
  constexpr std::int64_t all = (std::int64_t{1} << 32) + (std::int64_t{1} << 24);
  const std::int64_t steps = extent > 1 ? extent - 1 : 1;
  return (all / steps + 64) / 64 * 64;
}

struct Strides {
  std::int64_t batch;
  std::int64_t row;
  std::int64_t column;
};

Strides packed(std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = (columns + 15) / 16 * 16;
  return {rows * row, row, 1};
}

Strides far_strides(const FarCase& far, std::int64_t rows, std::int64_t columns) {
  const std::int64_t unit = far.is_strided ? 3 : 1;
  switch (far.along) {
    case FarAlong::rows:
      return {1024 * unit, far_stride(rows), unit};
    case FarAlong::columns:
      return {1024 * unit, unit, far_stride(columns)};
    case FarAlong::batches:
      break;
  }
  const Strides near = packed(rows, columns);
  return {far_stride(2), near.row, near.column};
}

std::uint16_t bfloat16_of(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

float value_of(const std::byte* element, DType dtype) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, element, byte_width(dtype));
  return std::bit_cast<float>(dtype == DType::bfloat16 ? bits << 16 : bits);
}

}  // namespace

std::span<const FarCase> far_cases() noexcept { return all_cases; }

FarTrial::FarTrial(const FarCase& far, const FarExtents& extents, DType dtype, Device device,
                   Choices& choices)
    : far_(far), extents_(extents), stream_(device) {
  const auto& [m, n, k, l] = extents;
  a_ = make(FarOperand::a, m, k, dtype);
  b_ = make(FarOperand::b, k, n, dtype);
  c_ = make(FarOperand::c, m, n, DType::float32);
  out_ = make(FarOperand::out, m, n, DType::float32);
  for (Matrix* const matrix : {&a_, &b_, &c_}) draw(*matrix, choices);
  if (has_program(far.operand)) {
    x_ = make(FarOperand::input, m, n, DType::float32);
    y_ = make(FarOperand::output, m, n, DType::float32);
    w_ = make(FarOperand::vector, 1, n, DType::float32);
    for (Matrix* const matrix : {&x_, &w_}) draw(*matrix, choices);
  }
  multiply();
  bind(dtype == DType::float32 && choices.percent(50) ? Math::tf32 : Math::native);
}

FarTrial::Matrix FarTrial::make(FarOperand operand, std::int64_t rows, std::int64_t columns,
                                DType dtype) const {
  const Strides strides =
      operand == far_.operand ? far_strides(far_, rows, columns) : packed(rows, columns);
  const std::int64_t last =
      (extents_.l - 1) * strides.batch + (rows - 1) * strides.row + (columns - 1) * strides.column;
  Matrix matrix;
  const auto elements = static_cast<std::size_t>(std::max<std::int64_t>(last + 1, 1));
  matrix.memory = Buffer(elements * byte_width(dtype), stream_);
  matrix.view = Tensor(matrix.memory.data(), dtype, {extents_.l, rows, columns},
                       {strides.batch, strides.row, strides.column}, stream_.get().device());
  matrix.values.resize(static_cast<std::size_t>(extents_.l * rows * columns));
  return matrix;
}

namespace {

std::byte* place_of(const Tensor& view, std::int64_t l, std::int64_t row, std::int64_t column) {
  const std::int64_t element = l * view.stride(0) + row * view.stride(1) + column * view.stride(2);
  return static_cast<std::byte*>(view.data()) +
         element * static_cast<std::int64_t>(byte_width(view.dtype()));
}

template <class Visit>
void for_each_element(const Tensor& view, Visit&& visit) {
  for (std::int64_t l = 0; l < view.extent(0); ++l)
    for (std::int64_t row = 0; row < view.extent(1); ++row)
      for (std::int64_t column = 0; column < view.extent(2); ++column) visit(l, row, column);
}

}  // namespace

void FarTrial::draw(Matrix& matrix, Choices& choices) const {
  const DType dtype = matrix.view.dtype();
  for_each_element(matrix.view, [&](std::int64_t l, std::int64_t row, std::int64_t column) {
    const auto value = static_cast<float>(choices.between(1, 7));
    matrix.at(l, row, column) = value;
    const std::uint16_t half = bfloat16_of(value);
    const void* const bits = dtype == DType::bfloat16 ? static_cast<const void*>(&half) : &value;
    copy(place_of(matrix.view, l, row, column), stream_.get().device(), bits, Device::cpu(),
         byte_width(dtype), stream_);
  });
  synchronize(stream_);
}

void FarTrial::multiply() {
  for_each_element(out_.view, [&](std::int64_t l, std::int64_t row, std::int64_t column) {
    float sum = 0;
    for (std::int64_t k = 0; k < extents_.k; ++k) sum += a_.at(l, row, k) * b_.at(l, k, column);
    if (!has_program(far_.operand)) {
      out_.at(l, row, column) = sum + c_.at(l, row, column);
      return;
    }
    const float x = x_.at(l, row, column);
    out_.at(l, row, column) = sum + x * w_.at(l, 0, column);
    y_.at(l, row, column) = sum - x;
  });
}

void FarTrial::bind(Math math) {
  GemmOptions options;
  options.math = math;
  if (has_program(far_.operand)) {
    options.epilogue = EpilogueArguments("D = accum + x * w; y = accum - x",
                                         {{"x", x_.view}, {"w", w_.view}, {"y", y_.view}});
  } else {
    options.c = c_.view;
    options.beta = 1;
  }
  arguments_.emplace(a_.view, b_.view, out_.view, options);
}

std::string FarTrial::run(const Kernel& kernel) const try {
  for (const Matrix* const matrix : {&out_, &y_}) {
    if (matrix->values.empty()) continue;
    constexpr float poison = -1e30F;
    for_each_element(matrix->view, [&](std::int64_t l, std::int64_t row, std::int64_t column) {
      copy(place_of(matrix->view, l, row, column), stream_.get().device(), &poison, Device::cpu(),
           sizeof poison, stream_);
    });
  }
  synchronize(stream_);
  kernel.run(*arguments_, {.stream = stream_});
  synchronize(stream_);
  std::string wrong = compare(out_, "out");
  return wrong.empty() && !y_.values.empty() ? compare(y_, "y") : wrong;
} catch (const Error& error) {
  return fmt::format("threw: {}", error.what());
}

std::string FarTrial::compare(const Matrix& matrix, const char* name) const {
  std::string wrong;
  auto expected = matrix.values.begin();
  for_each_element(matrix.view, [&](std::int64_t l, std::int64_t row, std::int64_t column) {
    std::byte element[4] = {};
    copy(element, Device::cpu(), place_of(matrix.view, l, row, column), stream_.get().device(),
         byte_width(matrix.view.dtype()), stream_);
    synchronize(stream_);
    const float got = value_of(element, matrix.view.dtype());
    if (wrong.empty() && got != *expected)
      wrong =
          fmt::format("{}[{}, {}, {}] is {}, expected {}", name, l, row, column, got, *expected);
    ++expected;
  });
  return wrong;
}

}  // namespace gemmery::conformance
