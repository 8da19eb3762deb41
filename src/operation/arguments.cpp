// SPDX-License-Identifier: Apache-2.0
// Validates GEMM operands once and turns them into views of rank 3 and a problem.
#include <gemmery/arguments.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "operation/block_results.hpp"
#include "operation/companions.hpp"
#include "operation/convolution.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"
#include "operation/integer_results.hpp"
#include "operation/matrix.hpp"
#include "operation/operand_programs.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"
#include "operation/scaled_sums.hpp"
#include "operation/shapes.hpp"
#include "operation/types.hpp"

namespace gemmery {
namespace {

using operation::as_batch;
using operation::broadcast_batch;
using operation::broadcast_c;
using operation::check_device;
using operation::check_memory;
using operation::check_operand_type;
using operation::has_self_overlap;
using operation::is_same_view;
using operation::matrix_type;
using operation::may_overlap;
using operation::NamedOperand;
using operation::refuse;
using operation::require_extent;
using operation::shape_text;

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

// A matrix that groups share becomes a batch of one; a tensor that varies with the group does not.
void drop_groups(Tensor& view, const Tensor& out) {
  if (view.has_pointers() || view.stride(0) != 0 || view.extent(0) == out.extent(0)) return;
  if (out.extent(0) != 1) return;
  view = operation::with_strides(view, {1, view.extent(1), view.extent(2)},
                                 {0, view.stride(1), view.stride(2)});
}

// With a program, all operands are the program's: c, alpha and beta must have their defaults.
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
                             DType accumulator_type, const GemmOptions& options) {
  bind_product(A, B, out);
  bind(accumulator_type, options, out_);
}

GemmArguments::GemmArguments(const ScaledOperand& A, const ScaledOperand& B, const Tensor& out,
                             DType accumulator_type, const GemmOptions& options) {
  bind_product(A.quantized, B.quantized, out);
  bind_companions(A, B);
  bind(accumulator_type, options, out_);
}

GemmArguments::GemmArguments(const ScaledOperand& A, const ScaledOperand& B, const Tensor& out,
                             const GemmOptions& options) {
  bind_product(A.quantized, B.quantized, out);
  bind_companions(A, B);
  problem_.a.dtype = a_.dtype();
  problem_.b.dtype = b_.dtype();
  bind(default_accumulator(problem_), options, out_);
}

void GemmArguments::bind_product(const Tensor& A, const Tensor& B, const Tensor& out) {
  a_ = as_batch({"A", A}, "(M, K) or (L, M, K)");
  b_ = as_batch({"B", B}, "(K, N) or (L, K, N)");
  out_ = as_batch({"out", out}, "(M, N) or (L, M, N)");
  if (out.rank() == 2 && (A.rank() == 3 || B.rank() == 3)) {
    refuse("out", "rank 3, (L, M, N), where A or B is a batch", "shape " + shape_text(out));
  }
  require_extent("B", "rows (K)", a_.extent(2), "A columns", b_.extent(1));
  require_extent("out", "rows (M)", a_.extent(1), "A rows", out_.extent(1));
  require_extent("out", "columns (N)", b_.extent(2), "B columns", out_.extent(2));
  a_ = broadcast_batch({"A", a_}, out_.extent(0));
  b_ = broadcast_batch({"B", b_}, out_.extent(0));
  problem_.l = out_.extent(0);
}

void GemmArguments::bind_companions(const ScaledOperand& A, const ScaledOperand& B) {
  const auto bind_one = [&](const ScaledOperand& operand, bool is_a, BoundCompanions& memory,
                            OperandCompanions& types) {
    if (!operand.is_scaled()) return;
    operation::CompanionViews views = operation::view_companions(
        operand, is_a,
        {.batch = problem_.l,
         .rows = is_a ? a_.extent(1) : b_.extent(2),
         .k = a_.extent(2),
         .are_rows_ragged = operation::are_rows_ragged(problem_.groups, is_a),
         .is_k_ragged = operation::is_k_ragged(problem_.groups)},
        out_.device());
    memory = std::move(views.memory);
    types = std::move(views.types);
  };
  bind_one(A, true, a_companions_, problem_.a_companions);
  bind_one(B, false, b_companions_, problem_.b_companions);
}

void GemmArguments::bind(DType accumulator_type, const GemmOptions& given, const Tensor& domain) {
  // Copied only if there is an epilogue.
  std::optional<GemmOptions> without_default;
  if (given.epilogue) without_default.emplace(simplified(given));
  const GemmOptions& options = without_default ? *without_default : given;
  alpha_ = options.alpha;
  beta_ = options.beta;
  check_operand_type("A", a_.dtype());
  check_operand_type("B", b_.dtype());
  check_operand_type("out", out_.dtype());
  problem_.a.dtype = a_.dtype();
  problem_.b.dtype = b_.dtype();
  problem_.accumulator = accumulator_type;
  problem_.math = options.math;
  operation::check_product_types(problem_);

  if (beta_ != 0 && !options.c) {
    refuse("C", "a tensor, because beta is " + std::to_string(beta_), "none",
           "pass C, or beta = 0");
  }
  if (options.c) {
    c_ = broadcast_c(*options.c, domain);
    drop_groups(*c_, out_);
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
    refuse("out", "strides under which no two elements share memory", to_string(out_));
  }
  check_overlaps();
  if (problem_.convolution) {
    operation::describe_convolution(a_, b_, problem_);
  } else {
    problem_.m = out_.extent(1);
    problem_.n = out_.extent(2);
    problem_.k = a_.extent(2);
    problem_.l = domain.extent(0);
    problem_.a = matrix_type(a_);
    problem_.b = matrix_type(b_);
  }
  problem_.out = matrix_type(out_);
  if (c_) problem_.c = matrix_type(*c_);
  if (options.epilogue) bind_epilogue(*options.epilogue, domain);
  operation::check_integer_results(problem_);
  operation::check_packed_operands(problem_);
  operation::check_companions(problem_);
  operation::check_scale_words(problem_);
  if (operation::has_companions(problem_)) scaled_sums_ = operation::ScaleBinder::bind(*this);
}

void GemmArguments::bind_epilogue(const EpilogueArguments& epilogue, const Tensor& domain) {
  operation::check_block_form(epilogue.program(), problem_);
  epilogue_operands_ = operation::view_operands(epilogue, {domain, out_.extent(0)});
  for (EpilogueOperand& operand : epilogue_operands_) {
    if (auto* const tensor = std::get_if<Tensor>(&operand.value)) drop_groups(*tensor, out_);
  }
  operation::check_epilogue_overlaps(epilogue_operands_, epilogue.program(), {a_, b_, out_});
  operation::DescribedEpilogue described = operation::describe_epilogue(
      epilogue.program(), operation::matrices_of(epilogue_operands_, epilogue.program()),
      {out_.extent(0), domain.extent(1), domain.extent(2)}, operation::ragged_of_out(problem_));
  problem_.epilogue = described.id;
  problem_.epilogue_operands = std::move(described.operands);
}

namespace {

// An operand's memory as it is bound now.
struct BoundMemory {
  Tensor* view = nullptr;
  const MatrixType* type = nullptr;  // the problem's, not that of the current memory
};

void check_moved(std::string_view operand, const Tensor& moved, const BoundMemory& memory,
                 const GemmProblem& problem) {
  check_memory(operand, moved);
  const MatrixType& bound = *memory.type;
  const std::uint8_t alignment = problem.convolution && moved.rank() == 5
                                     ? operation::conv_alignment(moved, problem, operand == "A")
                                     : matrix_type(moved).alignment;
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

std::string list_names(const std::vector<EpilogueOperand>& operands, bool numbers,
                       std::string_view prefix = {}) {
  std::string text;
  for (const EpilogueOperand& operand : operands) {
    if (std::holds_alternative<double>(operand.value) == numbers)
      text += ", \"" + std::string(prefix) + operand.name + "\"";
  }
  return text;
}

std::string names_of(const std::vector<operation::NamedCompanion>& companions) {
  std::string text;
  for (const operation::NamedCompanion& one : companions) text += ", \"" + one.name + "\"";
  return text;
}

// Binds indices of the groups' elements, if the problem has them.
bool is_set_by_indices(std::string_view operand, const void* data, const Tensor& out,
                       std::shared_ptr<const operation::GroupMemory>& groups) {
  operation::GroupMemory moved = *groups;
  GroupIndices* const indices = operand == "gather"    ? &moved.gather
                                : operand == "scatter" ? &moved.scatter
                                                       : nullptr;
  if (indices == nullptr || indices->data == nullptr) return false;
  indices->data = data;
  operation::check_group_memory(*indices, operand);
  operation::check_sizes_apart(*indices, out, operand);
  groups = std::make_shared<const operation::GroupMemory>(std::move(moved));
  return true;
}

// Binds the sizes of groups. A list cannot be bound again.
bool is_set_by_groups(std::string_view operand, const void* data, const Tensor& out,
                      std::shared_ptr<const operation::GroupMemory>& groups) {
  if (!groups->list.empty())
    refuse("set_data", "arguments that hold one tensor for an operand", "a list of problems",
           "make new arguments", ErrorKind::unsupported);
  if (is_set_by_indices(operand, data, out, groups)) return true;
  if (operand != "sizes") return false;
  if (groups->kept != nullptr)
    refuse("set_data", "sizes that are read when work runs", "sizes that were read and kept",
           "make new arguments", ErrorKind::unsupported);
  operation::GroupMemory moved = *groups;
  moved.sizes.data = data;
  operation::check_group_memory(moved.sizes);
  operation::check_sizes_apart(moved.sizes, out);
  groups = std::make_shared<const operation::GroupMemory>(std::move(moved));
  return true;
}

}  // namespace

template <class Change>
void GemmArguments::change_scaled_sums(const Change& change) {
  if (scaled_sums_ == nullptr) return;
  auto changed = std::make_shared<GemmArguments>(*scaled_sums_);
  change(*changed);
  scaled_sums_ = std::move(changed);
}

void GemmArguments::set_data(std::string_view operand, const void* data) {
  set_own_data(operand, data);
  change_scaled_sums([&](GemmArguments& scaled) { scaled.set_own_data(operand, data); });
}

void GemmArguments::set_own_data(std::string_view operand, const void* data) {
  if (groups_ != nullptr && is_set_by_groups(operand, data, out_, groups_)) return;
  std::vector<operation::NamedCompanion> companions;
  for (const bool is_a : {true, false})
    operation::append_companions(is_a, is_a ? a_companions_ : b_companions_,
                                 is_a ? problem_.a_companions : problem_.b_companions, companions);
  const auto find = [&]() -> BoundMemory {
    if (operand == "A") return {&a_, &problem_.a};
    if (operand == "B") return {&b_, &problem_.b};
    if (operand == "out") return {&out_, &problem_.out};
    if (operand == "C" && c_) return {&*c_, &*problem_.c};
    for (const operation::NamedCompanion& one : companions)
      if (operand == one.name) return {one.view, one.type};
    std::string word(without_prefix(operand));
    if (is_with_scaled_sums_) std::ranges::replace(word, '.', '_');  // "scale_a.1"
    for (std::size_t i = 0; i < epilogue_operands_.size(); ++i) {
      auto* const tensor = std::get_if<Tensor>(&epilogue_operands_[i].value);
      if (tensor != nullptr && epilogue_operands_[i].name == word)
        return {tensor, &problem_.epilogue_operands[i]};
    }
    return {};
  };
  const BoundMemory bound = find();
  if (bound.view == nullptr) {
    refuse(
        "set_data",
        "\"A\", \"B\", \"out\"" + std::string(c_ ? ", \"C\"" : "") +
            std::string(groups_ != nullptr ? ", \"sizes\"" : "") + names_of(companions) +
            list_names(epilogue_operands_, false),
        "\"" + std::string(operand) + "\"",
        operand == "C" && epilogue_operands_.empty() ? "pass C when the arguments are made" : "");
  }
  const Tensor before = *bound.view;
  check_moved(operand, before.with_data(data), bound, problem_);
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
  for (const bool is_a : {true, false})
    operation::check_companion_overlaps(is_a, is_a ? a_companions_ : b_companions_, *this);
  if (groups_ != nullptr) {
    operation::check_sizes_apart(groups_->sizes, out_);
    operation::check_sizes_apart(groups_->gather, out_, "gather");
    operation::check_sizes_apart(groups_->scatter, out_, "scatter");
  }
  if (epilogue_operands_.empty()) return;
  operation::check_epilogue_overlaps(epilogue_operands_, rules_of(problem_.epilogue).program,
                                     {a_, b_, out_});
}

void GemmArguments::set_scalar(std::string_view name, double value) {
  set_own_scalar(name, value);
  change_scaled_sums([&](GemmArguments& scaled) { scaled.set_own_scalar(name, value); });
}

void GemmArguments::set_own_scalar(std::string_view name, double value) {
  for (const bool is_a : {true, false})
    for (EpilogueOperand& operand : (is_a ? a_companions_ : b_companions_).program_operands) {
      auto* const number = std::get_if<double>(&operand.value);
      if (number == nullptr || operation::program_operand_name(is_a, operand.name) != name)
        continue;
      *number = value;
      return;
    }
  for (EpilogueOperand& operand : epilogue_operands_) {
    auto* const number = std::get_if<double>(&operand.value);
    if (number == nullptr || operand.name != without_prefix(name)) continue;
    *number = value;
    return;
  }
  std::string known = list_names(epilogue_operands_, true);
  for (const bool is_a : {true, false})
    known += list_names((is_a ? a_companions_ : b_companions_).program_operands, true,
                        is_a ? "a." : "b.");
  refuse("set_scalar",
         known.empty() ? "a program with numbers" : "one of the numbers: " + known.substr(2),
         "\"" + std::string(name) + "\"",
         problem_.epilogue == default_epilogue
             ? "set_scalars sets alpha and beta of the default program"
             : "");
}

void GemmArguments::set_scalars(double alpha, double beta) {
  if (groups_ != nullptr && !groups_->list.empty())
    refuse("set_scalars", "one alpha and one beta", "a list of problems, each with its own",
           "make new arguments", ErrorKind::unsupported);
  if (is_with_scaled_sums_ && operation::find_operand(epilogue_operands_, "alpha") != nullptr) {
    set_own_scalar("alpha", alpha);
    if (operation::find_operand(epilogue_operands_, "beta") != nullptr)
      set_own_scalar("beta", beta);
    return;
  }
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
  change_scaled_sums([&](GemmArguments& scaled) { scaled.set_scalars(alpha, beta); });
}

}  // namespace gemmery
