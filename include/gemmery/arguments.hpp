// SPDX-License-Identifier: Apache-2.0
// An operation with its operands bound to memory. The constructor validates them once; accepted
// arguments can be run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/scales.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

class GroupedGemmArguments;
namespace operation {
class ConvolutionBinder;
struct GroupMemory;
class GroupSlicer;
class IndexedGroup;
class ScaleBinder;
}  // namespace operation

// The memory of an operand's companions, in the problem's order: views of rank 3 (batch, blocks of
// rows, blocks of k), or (batch, 1, values) if they are swizzled.
struct BoundCompanions {
  std::vector<Tensor> scales;
  std::optional<Tensor> zero_point;
  // In arguments of one group: the first of its rows (columns of B) and of its k among those of all
  // groups, which share blocks; and the k of all groups, 0 in other arguments.
  std::int64_t first_row = 0, first_k = 0;
  std::int64_t all_k = 0;
  // The tensors and numbers of the program, in the order of its rules: views of rank 3 of the
  // operand's shape, with strides of 0 along broadcast dimensions.
  std::vector<EpilogueOperand> program_operands = {};
};

// The lines of results in the layout swizzled_128x4. In arguments of one group they count among
// those of all groups; rows that a group's indices name have lines by index.
struct ResultLines {
  std::int64_t first = 0;
  std::shared_ptr<const std::vector<std::int64_t>> by_index = nullptr;

  std::int64_t operator[](std::int64_t line) const {
    return by_index ? (*by_index)[static_cast<std::size_t>(line)] : first + line;
  }
};

// The options of a GEMM besides A, B, out and the accumulator type.
struct GemmOptions {
  // Its shape broadcasts to out's by NumPy's rule. Whether there is a C is part of the problem;
  // with beta = 0, C is not read.
  std::optional<Tensor> c = std::nullopt;
  double alpha = 1;  // with alpha = 0, A and B are not read (BLAS rule)
  double beta = 0;   // another value needs a C
  Math math = Math::native;
  // A program in place of alpha * accum + beta * C, with all tensors and numbers that it reads and
  // stores; c, alpha and beta must then keep their defaults. A program for exactly this formula,
  // with numbers alpha and beta and a tensor C, is the default program.
  std::optional<EpilogueArguments> epilogue = std::nullopt;
};

// out[l,m,n] = alpha * ( sum over k of A[l,m,k] * B[l,k,n] ) + beta * C[l,m,n]
//
// or, with an epilogue, the D that its program computes from the accumulators.
//
// A is (M,K) or (L,M,K), B (K,N) or (L,K,N), out (M,N) or (L,M,N). Batches of A and B broadcast: a
// missing batch dimension, an extent of 1 or a stride of 0. A, B and C may have any strides; out's
// elements must not overlap each other, nor those of an input, except that C may be exactly out.
// Zero extents are legal; K = 0 gives alpha * 0 + beta * C. The caller owns the tensors' memory.
// All operands are on one device.
//
// A, B, C, out and the tensors of an epilogue, except results of reductions, may each be a batch by
// pointers (PointerArray), with as many pointers as out has matrices. Kernels read the pointers
// when they run, so work may be captured into a graph and the addresses changed between its
// launches. The caller promises their alignment, and that matrices overlap only as described above;
// on the CPU a run checks for null, alignment and equal addresses in out.
//
// Tensors that an epilogue reads broadcast to (L, M, N) by NumPy's rule: leading dimensions may be
// absent, and extents of 1 are repeated. Its other results have out's shape; the reduced dimensions
// of a reduction have extent 1 or are absent. Results must not overlap other tensors, except that a
// tensor that is read may be exactly out, or exactly another result of out's shape.
//
// A and B may have scales and a zero point (scales.hpp), which may be of any strides and share
// nothing with a result. An operand with scales may be of integers while the other one is of
// floats. Scales that do not vary along k multiply the sums, in an epilogue that every family with
// epilogues runs; alpha, beta and C are then read as by any epilogue, and the sum, or C, still
// counts as 0 if its factor is 0.
//
// A program of A or B (operand_program.hpp) is applied to the elements that scales and zero points
// have decoded. Its tensors share nothing with a result; scales of its operand stay with the
// elements.
class GEMMERY_API GemmArguments {
 public:
  // Throws Error (invalid_argument, or unsupported for types that no kernel supports) naming
  // operand, expected and got.
  GemmArguments(const Tensor& A, const Tensor& B, const Tensor& out, DType accumulator_type,
                const GemmOptions& options = {});
  // The accumulator type is `default_accumulator`.
  GemmArguments(const Tensor& A, const Tensor& B, const Tensor& out,
                const GemmOptions& options = {});
  // The same with scales, of one operand or of both.
  GemmArguments(const ScaledOperand& A, const ScaledOperand& B, const Tensor& out,
                DType accumulator_type, const GemmOptions& options = {});
  GemmArguments(const ScaledOperand& A, const ScaledOperand& B, const Tensor& out,
                const GemmOptions& options = {});

  const GemmProblem& problem() const noexcept { return problem_; }
  Device device() const noexcept { return out_.device(); }
  double alpha() const noexcept { return alpha_; }
  double beta() const noexcept { return beta_; }

  // Views of rank 3: (L,M,K), (L,K,N), (L,M,N), broadcast dimensions with stride 0; for a
  // convolution, A and B have rank 5 (conv_arguments.hpp). `c` is empty if there is no C.
  const Tensor& a() const noexcept { return a_; }
  const Tensor& b() const noexcept { return b_; }
  const Tensor& out() const noexcept { return out_; }
  const std::optional<Tensor>& c() const noexcept { return c_; }

  // The scales and zero points of A and B; empty for operands without.
  const BoundCompanions& a_companions() const noexcept { return a_companions_; }
  const BoundCompanions& b_companions() const noexcept { return b_companions_; }

  // The tensors and numbers that the epilogue reads, and its results other than out, in the order
  // of its rules; empty for the default program. Tensors are views of rank 3: of (L, M, N) with
  // strides of 0 along broadcast dimensions, and with extents of 1 along reduced dimensions.
  const std::vector<EpilogueOperand>& epilogue_operands() const noexcept {
    return epilogue_operands_;
  }

  const ResultLines& result_lines() const noexcept { return result_lines_; }

  // New memory or scalars for the same problem. Throws Error (invalid_argument) if the problem
  // would change: a null or less aligned pointer, an overlap, a beta other than 0 without a C. For
  // a batch by pointers, `data` is another array. Operands are "A", "B", "C", "out", "scale_a",
  // "scale_a.1" (the second scale of A), "zero_a", "a.gate" (the tensor gate of A's program),
  // likewise of B, "sizes" of groups, and the names of the epilogue's tensors; an epilogue tensor
  // called A, B or out is "epilogue.A", …
  void set_data(std::string_view operand, const void* data);
  void set_scalars(double alpha, double beta);  // of the default program
  // A number of the epilogue, or of a program of A or B ("a.slope").
  void set_scalar(std::string_view name, double value);

  // The sizes of a grouped problem (grouped.hpp); nullptr for others. Tensors that groups share
  // have a batch of 1 in the views above.
  const operation::GroupMemory* group_memory() const noexcept { return groups_.get(); }

 private:
  friend class GroupedGemmArguments;
  friend class operation::ConvolutionBinder;
  friend class operation::GroupSlicer;
  friend class operation::IndexedGroup;
  friend class operation::ScaleBinder;

  GemmArguments() = default;
  // Validates the views and describes the problem. `domain` has out's shape, with the groups of a
  // grouped problem as its batch.
  void bind(DType accumulator_type, const GemmOptions& options, const Tensor& domain);
  void bind_epilogue(const EpilogueArguments& epilogue, const Tensor& domain);
  void check_overlaps() const;
  void bind_product(const Tensor& A, const Tensor& B, const Tensor& out);
  void bind_companions(const ScaledOperand& A, const ScaledOperand& B);
  void set_own_data(std::string_view operand, const void* data);
  void set_own_scalar(std::string_view name, double value);
  // Applies a change to the arguments that families see.
  template <class Change>
  void change_scaled_sums(const Change& change);

  Tensor a_, b_, out_;
  BoundCompanions a_companions_, b_companions_;
  std::optional<Tensor> c_;
  double alpha_ = 1;
  double beta_ = 0;
  std::vector<EpilogueOperand> epilogue_operands_;
  ResultLines result_lines_;
  GemmProblem problem_;
  std::shared_ptr<const operation::GroupMemory> groups_;
  // The same work with scales as a part of the epilogue, if some do not vary along k: what families
  // see. nullptr otherwise.
  std::shared_ptr<const GemmArguments> scaled_sums_;
  bool is_with_scaled_sums_ = false;  // these arguments are such
};

// The arguments' problem with their numbers, and as text: `parse_problem(to_string(arguments))`.
GEMMERY_API ProblemLine problem_line(const GemmArguments& arguments);
GEMMERY_API std::string to_string(const GemmArguments& arguments);

}  // namespace gemmery
