// SPDX-License-Identifier: Apache-2.0
// Validates GEMM operands once and turns them into views of rank 3 and a problem.
#include <gemmery/arguments.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "operation/epilogue_operands.hpp"
#include "operation/integer_results.hpp"
#include "operation/matrix.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"
#include "operation/types.hpp"

namespace gemmery {
namespace {

using operation::check_device;
using operation::check_memory;
using operation::check_operand_type;
using operation::check_products;
using operation::has_self_overlap;
using operation::is_same_view;
using operation::matrix_type;
using operation::may_overlap;
using operation::refuse;

// Kernels use 32-bit indices within an extent and 64-bit addresses.
constexpr std::int64_t largest_extent = (std::int64_t{1} << 31) - 1;

std::string shape_text(const Tensor& tensor) {
  std::string text = "(";
  for (int d = 0; d < tensor.rank(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(tensor.extent(d));
  return text + ")";
}

struct NamedOperand {
  std::string_view name;
  const Tensor& tensor;
};

// --- shapes -------------------------------------------------------------------------------------

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

Tensor as_batch(const NamedOperand& operand, std::string_view form) {
  const Tensor& tensor = operand.tensor;
  if (tensor.rank() != 2 && tensor.rank() != 3) {
    refuse(operand.name, "a tensor of rank 2 or 3, " + std::string(form),
           "rank " + std::to_string(tensor.rank()) + " with shape " + shape_text(tensor));
  }
  for (int d = 0; d < tensor.rank(); ++d) {
    if (tensor.extent(d) > largest_extent) {
      refuse(operand.name, "extents of at most 2147483647", "shape " + shape_text(tensor),
             "split the problem", ErrorKind::unsupported);
    }
  }
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
  operation::check_pointer_count(operand.name, view, batches);
  if (view.extent(0) == 1) return with_batch_stride_zero(view, batches);
  refuse(operand.name, std::to_string(batches) + " batches (as out has) or 1",
         std::to_string(view.extent(0)));
}

// C broadcasts by NumPy's rule: missing leading dimensions and extents of 1 are repeated.
Tensor broadcast_c(const Tensor& c, const Tensor& out) {
  if (c.rank() > 3) refuse("C", "a tensor of rank 3 or less", "rank " + std::to_string(c.rank()));
  operation::check_pointer_count("C", c, out.extent(0));
  std::array<std::int64_t, 3> shape{};
  std::array<std::int64_t, 3> strides{};
  for (int d = 0; d < 3; ++d) {
    const int source = d - (3 - c.rank());
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t extent = source < 0 ? 1 : c.extent(source);
    if (extent != out.extent(d) && extent != 1) {
      refuse("C", "a shape that broadcasts to out's " + shape_text(out), shape_text(c));
    }
    shape[at] = out.extent(d);
    strides[at] = extent == 1 ? 0 : c.stride(source);
  }
  return operation::with_strides(c, shape, strides);
}

// --- memory -------------------------------------------------------------------------------------

void check_input_overlap(const NamedOperand& input, const Tensor& out) {
  if (!may_overlap(out, input.tensor)) return;
  refuse("out", "memory that shares nothing with " + std::string(input.name), "overlapping memory",
         "write to another tensor");
}

void check_c_overlap(const Tensor& c, const Tensor& out) {
  if (is_same_view(c, out) || !may_overlap(out, c)) return;
  refuse("out", "memory that is exactly C or shares nothing with it", "partly overlapping memory",
         "write to another tensor, or to C itself");
}

GemmProblem describe(const Tensor& a, const Tensor& b, const Tensor& out,
                     const std::optional<Tensor>& c, DType accumulator,
                     const GemmOptions& options) {
  GemmProblem problem{.m = out.extent(1),
                      .n = out.extent(2),
                      .k = a.extent(2),
                      .l = out.extent(0),
                      .a = matrix_type(a),
                      .b = matrix_type(b),
                      .out = matrix_type(out),
                      .c = std::nullopt,
                      .accumulator = accumulator,
                      .math = options.math};
  if (c) problem.c = matrix_type(*c);
  return problem;
}

// A program names all its operands.
void check_no_linear_combination(const GemmOptions& options) {
  const char* const given = options.c            ? "C"
                            : options.alpha != 1 ? "alpha"
                            : options.beta != 0  ? "beta"
                                                 : nullptr;
  if (given == nullptr) return;
  refuse(given, "none beside an epilogue, whose program names what it reads", "both",
         "bind it as an operand of the epilogue");
}

// The options of the default path that compute the same as this program.
GemmOptions as_linear_combination(const GemmOptions& options) {
  const auto value_of = [&](std::string_view name) {
    return operation::find_operand(options.epilogue->operands(), name)->value;
  };
  return {.c = std::get<Tensor>(value_of("C")),
          .alpha = std::get<double>(value_of("alpha")),
          .beta = std::get<double>(value_of("beta")),
          .math = options.math};
}

GemmOptions simplified(const GemmOptions& options) {
  if (!options.epilogue) return options;
  check_no_linear_combination(options);
  return operation::is_linear_combination(*options.epilogue) ? as_linear_combination(options)
                                                             : options;
}

}  // namespace

GemmArguments::GemmArguments(const Tensor& A, const Tensor& B, const Tensor& out,
                             const GemmOptions& options)
    : GemmArguments(A, B, out, default_accumulator(A.dtype(), B.dtype()), options) {}

GemmArguments::GemmArguments(const Tensor& A, const Tensor& B, const Tensor& out,
                             DType accumulator_type, const GemmOptions& given)
    : a_(as_batch({"A", A}, "(M, K) or (L, M, K)")),
      b_(as_batch({"B", B}, "(K, N) or (L, K, N)")),
      out_(as_batch({"out", out}, "(M, N) or (L, M, N)")),
      alpha_(given.alpha),
      beta_(given.beta) {
  // Copied only if there is an epilogue.
  std::optional<GemmOptions> without_default;
  if (given.epilogue) without_default.emplace(simplified(given));
  const GemmOptions& options = without_default ? *without_default : given;
  alpha_ = options.alpha;
  beta_ = options.beta;
  if (out.rank() == 2 && (A.rank() == 3 || B.rank() == 3)) {
    refuse("out", "rank 3, (L, M, N), where A or B is a batch", "shape " + shape_text(out));
  }
  require_extent("B", "rows (K)", a_.extent(2), "A columns", b_.extent(1));
  require_extent("out", "rows (M)", a_.extent(1), "A rows", out_.extent(1));
  require_extent("out", "columns (N)", b_.extent(2), "B columns", out_.extent(2));
  a_ = broadcast_batch({"A", a_}, out_.extent(0));
  b_ = broadcast_batch({"B", b_}, out_.extent(0));

  check_operand_type("A", a_.dtype());
  check_operand_type("B", b_.dtype());
  check_operand_type("out", out_.dtype());
  check_products(
      {.a = a_.dtype(), .b = b_.dtype(), .accumulator = accumulator_type, .math = options.math});

  if (beta_ != 0 && !options.c) {
    refuse("C", "a tensor, because beta is " + std::to_string(beta_), "none",
           "pass C, or beta = 0");
  }
  if (options.c) {
    c_ = broadcast_c(*options.c, out_);
    check_operand_type("C", c_->dtype());
  }
  check_device("A", a_, out_.device());
  check_device("B", b_, out_.device());
  if (c_) check_device("C", *c_, out_.device());

  check_memory("A", a_);
  check_memory("B", b_);
  check_memory("out", out_);
  if (c_) check_memory("C", *c_);
  if (has_self_overlap(out_)) {
    refuse("out", "strides under which no two elements share memory", to_string(out));
  }
  check_overlaps();
  problem_ = describe(a_, b_, out_, c_, accumulator_type, options);
  if (options.epilogue) bind_epilogue(*options.epilogue);
  operation::check_integer_results(problem_);
}

void GemmArguments::bind_epilogue(const EpilogueArguments& epilogue) {
  epilogue_operands_ = operation::view_operands(epilogue, out_);
  operation::check_epilogue_overlaps(epilogue_operands_, epilogue.program(), {a_, b_, out_});
  operation::DescribedEpilogue described = operation::describe_epilogue(
      epilogue.program(), operation::matrices_of(epilogue_operands_, epilogue.program()),
      {out_.extent(0), out_.extent(1), out_.extent(2)});
  problem_.epilogue = described.id;
  problem_.epilogue_operands = std::move(described.operands);
}

namespace {

// An operand's memory as it is bound now.
struct BoundMemory {
  Tensor* view = nullptr;
  const MatrixType* type = nullptr;  // of the problem, not of the memory bound last
};

void check_moved(std::string_view operand, const Tensor& moved, const MatrixType& bound) {
  check_memory(operand, moved);
  const std::uint8_t alignment = matrix_type(moved).alignment;
  if (alignment >= bound.alignment) return;
  refuse(operand,
         "memory aligned to " + std::to_string(bound.alignment) + " bytes, as it was bound",
         "an alignment of " + std::to_string(alignment) + " bytes",
         "make new arguments for this memory");
}

// "epilogue.A" names the epilogue's A.
std::string_view without_prefix(std::string_view name) {
  constexpr std::string_view prefix = "epilogue.";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::string list_names(const std::vector<EpilogueOperand>& operands, bool numbers) {
  std::string text;
  for (const EpilogueOperand& operand : operands) {
    if (std::holds_alternative<double>(operand.value) == numbers)
      text += ", \"" + operand.name + "\"";
  }
  return text;
}

}  // namespace

void GemmArguments::set_data(std::string_view operand, const void* data) {
  const auto find = [&]() -> BoundMemory {
    if (operand == "A") return {&a_, &problem_.a};
    if (operand == "B") return {&b_, &problem_.b};
    if (operand == "out") return {&out_, &problem_.out};
    if (operand == "C" && c_) return {&*c_, &*problem_.c};
    for (std::size_t i = 0; i < epilogue_operands_.size(); ++i) {
      auto* const tensor = std::get_if<Tensor>(&epilogue_operands_[i].value);
      if (tensor != nullptr && epilogue_operands_[i].name == without_prefix(operand))
        return {tensor, &problem_.epilogue_operands[i]};
    }
    return {};
  };
  const BoundMemory bound = find();
  if (bound.view == nullptr) {
    refuse(
        "set_data",
        "\"A\", \"B\", \"out\"" + std::string(c_ ? ", \"C\"" : "") +
            list_names(epilogue_operands_, false),
        "\"" + std::string(operand) + "\"",
        operand == "C" && epilogue_operands_.empty() ? "pass C when the arguments are made" : "");
  }
  const Tensor before = *bound.view;
  check_moved(operand, before.with_data(data), *bound.type);
  *bound.view = before.with_data(data);
  try {
    check_overlaps();
  } catch (...) {
    *bound.view = before;
    throw;
  }
}

void GemmArguments::check_overlaps() const {
  check_input_overlap({"A", a_}, out_);
  check_input_overlap({"B", b_}, out_);
  if (c_) check_c_overlap(*c_, out_);
  if (epilogue_operands_.empty()) return;
  operation::check_epilogue_overlaps(epilogue_operands_, rules_of(problem_.epilogue).program,
                                     {a_, b_, out_});
}

void GemmArguments::set_scalar(std::string_view name, double value) {
  for (EpilogueOperand& operand : epilogue_operands_) {
    auto* const number = std::get_if<double>(&operand.value);
    if (number == nullptr || operand.name != without_prefix(name)) continue;
    *number = value;
    return;
  }
  const std::string known = list_names(epilogue_operands_, true);
  refuse("set_scalar",
         known.empty() ? "an epilogue with numbers" : "one of its numbers: " + known.substr(2),
         "\"" + std::string(name) + "\"",
         problem_.epilogue == default_epilogue
             ? "set_scalars sets alpha and beta of the default program"
             : "");
}

void GemmArguments::set_scalars(double alpha, double beta) {
  if (problem_.epilogue != default_epilogue) {
    refuse("set_scalars", "the default program", "\"" + std::string(text(problem_.epilogue)) + "\"",
           "set_scalar sets a number of an epilogue by its name");
  }
  if (beta != 0 && !c_) {
    refuse("beta", "0, since no C is bound", std::to_string(beta),
           "make new arguments with a C: whether there is one is part of the problem");
  }
  alpha_ = alpha;
  beta_ = beta;
}

}  // namespace gemmery
