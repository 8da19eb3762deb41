// SPDX-License-Identifier: Apache-2.0
// The groups of a problem: the extents of its tensors, the memory of the sizes, and each group as a
// GEMM.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/grouped.hpp>
#include <gemmery/problem.hpp>

#include "operation/matrix.hpp"

namespace gemmery::operation {

// The extents of A, B and out: batches of l, or of 1 for a tensor that groups share.
struct ProductExtents {
  MatrixExtents a, b, out;
};
ProductExtents product_extents(const GemmProblem& problem) noexcept;

// The extents of a tensor of the epilogue (or C) with this matrix. If groups share out, a tensor
// that does not vary with the group has a batch of 1.
MatrixExtents addend_extents(const GemmProblem& problem, const MatrixType& matrix) noexcept;

// True if out is one tensor of several groups.
bool is_out_shared(const GemmProblem& problem) noexcept;

// The extent of out that differs from group to group; nullopt if it is K, and in lists.
std::optional<Ragged> ragged_of_out(const GemmProblem& problem) noexcept;

// The extent that differs from group to group.
std::int64_t ragged_extent(const GemmProblem& problem) noexcept;

// The number of sizes of a form; 0 for a list.
std::int64_t size_count(const Groups& groups, std::int64_t group_count,
                        std::int64_t ragged_extent) noexcept;

// Throws Error (invalid_argument, unsupported) if these groups cannot have the requested indices.
void check_indexable(const Groups& groups);

// Throws Error (invalid_argument, unsupported) for groups that no arguments can have, and for
// tensors of an epilogue that have no meaning with them.
void check_groups(const GemmProblem& problem);

// Throws Error (invalid_argument) for a null pointer or an address that is not aligned to the
// sizes' width.
void check_group_memory(const GroupIndices& sizes, std::string_view operand = "sizes");

// Throws Error (invalid_argument) if out shares memory with the sizes: a run would overwrite them
// while it reads them.
void check_sizes_apart(const GroupIndices& sizes, const Tensor& out,
                       std::string_view operand = "sizes");

// The memory of groups that arguments hold.
struct GroupMemory {
  GroupIndices sizes, gather, scatter;
  std::shared_ptr<const std::vector<std::int64_t>> kept;  // a copy of sizes that were read early
  std::vector<GemmArguments> list;                        // the problems of a list
  std::vector<const void*> a, b, c, out;                  // their addresses
};

// Elements [begin, begin + size) along the extent that differs. `group` is the matrix if every
// group has its own. With labels a group may have several slices.
struct GroupSlice {
  std::int64_t group;
  std::int64_t begin;
  std::int64_t size;
};

// Reads the sizes, which must be in host memory, and checks them. Throws Error (invalid_argument)
// with the first invalid size: a negative one, an end before the previous end, one beyond T, an
// unknown label, a label that changes within the alignment.
std::vector<GroupSlice> read_groups(const GemmArguments& arguments);

// The same for sizes that belong to this problem.
std::vector<GroupSlice> read_groups(const GemmProblem& problem, const GroupIndices& sizes);

// Checks the indices of elements in groups, which must be in host memory. Throws Error
// (invalid_argument) with the first invalid one: it is neither -1 nor within the tensor, or it is
// the second one for an element of out.
void check_indices(const GemmArguments& arguments, const std::vector<GroupSlice>& slices);

// A range [first, last) of elements in no group along the extent that differs. Ranges are in
// increasing order; `slices` are those of one matrix.
struct Gap {
  std::int64_t first;
  std::int64_t last;
};
std::vector<Gap> find_gaps(std::vector<GroupSlice> slices, std::int64_t extent);

// Makes GEMMs of parts: of groups, and of rows.
class GroupSlicer {
 public:
  // A range in M, N and K.
  struct Box {
    std::int64_t row = 0, column = 0, depth = 0;
    std::int64_t m = 0, n = 0, k = 0;
  };

  explicit GroupSlicer(const GemmArguments& arguments) : arguments_(arguments) {}

  // The GEMM of one group: l = 1, the group's extents, its part of every tensor.
  GemmArguments operator()(const GroupSlice& slice) const;

  // The GEMM of one row of one matrix of a batch. Results that reduce rows keep their tensors.
  static GemmArguments row_of(const GemmArguments& arguments, std::int64_t batch, std::int64_t row);

 private:
  static void take_box(GemmArguments& own, const Box& box, std::int64_t batch);

  const GemmArguments& arguments_;
};

// The GEMM of a group with gather or scatter indices, on copies of its elements. Elements with a
// scatter index of -1 are left out.
class IndexedGroup {
 public:
  // The initial contents of the copies of out and of other results: undefined, or the current
  // values.
  enum class Results : bool { undefined, present };

  IndexedGroup(const GemmArguments& arguments, const GroupSlice& slice, Results results);

  const GemmArguments& gemm() const noexcept { return *gemm_; }
  // Stores the copies of results to the destinations of their elements.
  void store() const;

 private:
  // A copy of elements of a tensor of all groups, and the tensor.
  struct Copy {
    std::shared_ptr<std::byte[]> memory;
    Tensor view, source;
  };
  Tensor copy_of(const Tensor& source, const std::vector<std::int64_t>& elements, bool is_read);

  Ragged ragged_;
  std::vector<std::int64_t> read_;     // elements of A or B; -1: zeros
  std::vector<std::int64_t> written_;  // elements of out
  std::vector<std::shared_ptr<std::byte[]>> memory_;
  std::vector<Copy> results_;
  std::optional<GemmArguments> gemm_;
};

}  // namespace gemmery::operation
