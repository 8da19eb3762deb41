// SPDX-License-Identifier: Apache-2.0
#include "operation/shapes.hpp"

#include <array>
#include <string>

#include <gemmery/error.hpp>

#include "operation/epilogue_operands.hpp"
#include "operation/matrix.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

Tensor with_batch_stride_zero(const Tensor& view, std::int64_t batches) {
  const std::array shape{batches, view.extent(1), view.extent(2)};
  const std::array strides{std::int64_t{0}, view.stride(1), view.stride(2)};
  return Tensor(view.data(), view.dtype(), shape, strides, view.device());
}

Tensor with_leading_batch(const Tensor& matrix) {
  const std::array shape{std::int64_t{1}, matrix.extent(0), matrix.extent(1)};
  const std::array strides{std::int64_t{0}, matrix.stride(0), matrix.stride(1)};
  return Tensor(matrix.data(), matrix.dtype(), shape, strides, matrix.device());
}

}  // namespace

std::string shape_text(const Tensor& tensor) {
  std::string text = "(";
  for (int d = 0; d < tensor.rank(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(tensor.extent(d));
  return text + ")";
}

void check_extents(const NamedOperand& operand) {
  for (int d = 0; d < operand.tensor.rank(); ++d) {
    if (operand.tensor.extent(d) > largest_extent) {
      refuse(operand.name, "extents of at most 2147483647", "shape " + shape_text(operand.tensor),
             "split the problem", ErrorKind::unsupported);
    }
  }
}

Tensor as_batch(const NamedOperand& operand, std::string_view form) {
  const Tensor& tensor = operand.tensor;
  if (tensor.rank() != 2 && tensor.rank() != 3) {
    refuse(operand.name, "a tensor of rank 2 or 3, " + std::string(form),
           "rank " + std::to_string(tensor.rank()) + " with shape " + shape_text(tensor));
  }
  check_extents(operand);
  return tensor.rank() == 3 ? tensor : with_leading_batch(tensor);
}

void require_extent(std::string_view operand, std::string_view what, std::int64_t expected,
                    std::string_view owner, std::int64_t got) {
  if (expected == got) return;
  refuse(
      operand,
      std::to_string(expected) + " " + std::string(what) + " (as " + std::string(owner) + " has)",
      std::to_string(got));
}

Tensor broadcast_batch(const NamedOperand& operand, std::int64_t batches) {
  const Tensor& view = operand.tensor;
  if (view.extent(0) == batches) return view;
  check_pointer_count(operand.name, view, batches);
  if (view.extent(0) == 1) return with_batch_stride_zero(view, batches);
  refuse(operand.name, std::to_string(batches) + " batches (as out has) or 1",
         std::to_string(view.extent(0)));
}

Tensor broadcast_c(const Tensor& c, const Tensor& domain) {
  if (c.rank() > 3) refuse("C", "a tensor of rank 3 or less", "rank " + std::to_string(c.rank()));
  check_pointer_count("C", c, domain.extent(0));
  std::array<std::int64_t, 3> shape{};
  std::array<std::int64_t, 3> strides{};
  for (int d = 0; d < 3; ++d) {
    const int source = d - (3 - c.rank());
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t extent = source < 0 ? 1 : c.extent(source);
    if (extent != domain.extent(d) && extent != 1) {
      refuse("C", "a shape that broadcasts to out's " + shape_text(domain), shape_text(c));
    }
    shape[at] = domain.extent(d);
    strides[at] = extent == 1 ? 0 : c.stride(source);
  }
  return with_strides(c, shape, strides);
}

}  // namespace gemmery::operation
