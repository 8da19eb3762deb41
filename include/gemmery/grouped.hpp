// SPDX-License-Identifier: Apache-2.0
// Grouped GEMM: one GEMM per group. Its extents differ along M, N or K and may be known only on the
// device. It uses the same calls and checks as a GEMM.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/device.hpp>
#include <gemmery/export.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/scales.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// Sizes in memory: packed integers of 32 or 64 bits. The caller owns the memory.
struct GroupIndices {
  const void* data = nullptr;
  int bits = 32;
  std::int64_t count = 0;
  Device device = Device::cpu();

  GroupIndices() = default;
  GroupIndices(const std::int32_t* values, std::int64_t length, Device where = Device::cpu())
      : data(values), bits(32), count(length), device(where) {}
  GroupIndices(const std::int64_t* values, std::int64_t length, Device where = Device::cpu())
      : data(values), bits(64), count(length), device(where) {}
  GroupIndices(std::span<const std::int32_t> values)  // NOLINT: the same values
      : GroupIndices(values.data(), static_cast<std::int64_t>(values.size())) {}
  GroupIndices(std::span<const std::int64_t> values)  // NOLINT: the same values
      : GroupIndices(values.data(), static_cast<std::int64_t>(values.size())) {}
};

// The sizes of groups and what is promised about them.
struct GroupOffsets {
  GroupIndices sizes = {};
  GroupSizes form = GroupSizes::ends;
  // For masked groups. For tensors that groups share, the ranks determine it; n or k here must not
  // contradict them.
  Ragged ragged = Ragged::m;
  OutsideGroups outside = OutsideGroups::untouched;
  std::int32_t alignment = 1;  // Groups::alignment
  std::int64_t expected = 0;   // Groups::expected
  // Reads the sizes when the arguments are made and keeps a copy; later changes have no effect.
  // This is always so if operands are on a GPU and sizes in host memory. Otherwise sizes are read
  // only when the work runs.
  bool read_now = false;
  // Checks the sizes when the arguments are made: they must be in host memory. On the CPU every run
  // checks them.
  bool check = false;
  // Rows by index, in any order (columns where N differs): row t of all groups is row gather[t] /
  // gather_divide of A, which may have any number of rows, and is stored to row scatter[t] of out.
  // Each array has T indices, in the same memory as out, and is read when the work runs. A gather
  // index of -1 reads a row of zeros; a scatter index of -1 stores nothing. Indices of rows in no
  // group are not read. An epilogue, C included, applies to out's rows: its operands have as many
  // rows as out has.
  //
  // Several rows may be gathered from one, but each row of out must get at most one. On the CPU
  // every run checks this and the range of each index before it writes anything; with `check` it is
  // checked when the arguments are made. On a GPU an index out of range is treated like -1, and
  // which of several rows is stored is unspecified.
  std::optional<GroupIndices> gather = {};
  std::int32_t gather_divide = 1;
  std::optional<GroupIndices> scatter = {};
};

// One problem of a list, with its own extents, strides, C, alpha and beta.
struct GroupedProblem {
  Tensor A, B, out;  // of rank 2
  GemmOptions options = {};
};

// For a group g with elements [s, e) along the extent that differs:
//
//   M differs   A (T, K), B (G, K, N), out (T, N)      out[s:e] = epilogue( A[s:e] B[g] )
//   N differs   A (G, M, K), B (K, T), out (M, T)      out[:, s:e] = epilogue( A[g] B[:, s:e] )
//   K differs   A (M, T), B (T, N), out (G, M, N)      out[g] = epilogue( A[:, s:e] B[s:e] )
//   masked      A (G, M, K), B (G, K, N), out (G, M, N), of which the sizes say how many rows (or
//               columns, or k: `ragged`) are used
//   a list      every problem has its own tensors
//
// Rows of A and out (columns of B and out where N differs) may lie in any order, by indices
// (GroupOffsets::gather, scatter).
//
// The ranks of A, B and out determine the form. Groups may be empty: one without rows writes
// nothing, one with K = 0 gives epilogue(0). Elements of out in no group are left untouched or set
// to 0 (`outside`); those of A and B are not read. Further results of an epilogue are treated like
// out.
//
// An epilogue's operands broadcast to (G, M, N) by NumPy's rule, with T for the extent that
// differs: bias (G, 1, N) is a row per group, scale (G, 1, 1) a number per group, (T, 1) a number
// for every row of all groups. An operand varies with the group or with T, not with both. A
// reduction is over one group ((G, 1, N), (G, 1, 1)) or over one row or column; a reduction over
// several groups is refused.
//
// It converts to GemmArguments, which `get_kernels`, `explain`, `supports`, `compile`, `run`,
// `bind` and artifacts take.
class GEMMERY_API GroupedGemmArguments {
 public:
  // Throws Error like GemmArguments, and for sizes that have a wrong count, width or place, or that
  // overlap out unless they are read now.
  GroupedGemmArguments(const Tensor& A, const Tensor& B, const Tensor& out, DType accumulator_type,
                       const GroupOffsets& offsets, const GemmOptions& options = {});
  // With scales that do not vary along k: one for each row of A (T, 1) or (G, M, 1), for each
  // column of B, or for a whole tensor, (1, 1), or (G, 1, 1) with a value for each group. Where K
  // differs, A's are (G, M, 1) and B's (G, 1, N), or the same for all groups.
  GroupedGemmArguments(const ScaledOperand& A, const ScaledOperand& B, const Tensor& out,
                       DType accumulator_type, const GroupOffsets& offsets,
                       const GemmOptions& options = {});
  // A list of problems with the same types, layouts and math. Each may have its own C, alpha and
  // beta; epilogues other than the default program are refused. The caller promises that no
  // problem's out overlaps the inputs of another.
  GroupedGemmArguments(const std::vector<GroupedProblem>& problems, DType accumulator_type);

  const GemmArguments& as_gemm() const noexcept { return gemm_; }
  operator const GemmArguments&() const noexcept { return gemm_; }  // NOLINT: is one
  const GemmProblem& problem() const noexcept { return gemm_.problem(); }
  Device device() const noexcept { return gemm_.device(); }

  // Replaces memory or scalars of the same problem, as GemmArguments does. "sizes", "gather" and
  // "scatter" are other arrays with as many sizes or indices. A list cannot be changed: this throws
  // Error (unsupported).
  void set_data(std::string_view operand, const void* data) { gemm_.set_data(operand, data); }
  void set_scalar(std::string_view name, double value) { gemm_.set_scalar(name, value); }
  void set_scalars(double alpha, double beta) { gemm_.set_scalars(alpha, beta); }

 private:
  GemmArguments gemm_;
};

}  // namespace gemmery
