// SPDX-License-Identifier: Apache-2.0
// One row for each known fault, with its source.
//
// Of faults in what is not used here there is no row: products of NVFP4 that ignored the scale of
// a tensor (13.4.0, CUDA's release notes of 13.2 Update 1); partial sums of a split k in out's type
// (TransformerEngine's pull request 3440), which `answers.cpp` never asks for; `relu` of NaN, which
// `epilogue_form.cpp` does not take.
#include "providers/cublaslt/known_faults.hpp"

#include <array>
#include <limits>

#include <fmt/format.h>

namespace gemmery::cublaslt {
namespace {

constexpr int any_algorithm = -1;
constexpr std::int64_t any_span = 0;
constexpr Version no_end{std::numeric_limits<int>::max(), 0, 0};

struct FaultRow {
  Version first;
  Version end;  // the first version without it
  int least_architecture;
  int most_architecture;
  int algorithm;
  std::int64_t least_span;
  const char* what;
  const char* source;
};

constexpr std::int64_t beyond_int32 = std::int64_t{1} << 31;

// The fault of tensor memory is mended in 13.1.1; of 13.2 no source says so.
constexpr std::array rows{
    FaultRow{{12, 8, 0},
             {13, 1, 1},
             100,
             119,
             66,
             any_span,
             "algorithm 66 beside another kernel that uses tensor memory gives wrong results",
             "release notes of cuBLAS's patches, issues 5807900 and 5943783"},
    FaultRow{{13, 2, 0},
             {13, 3, 0},
             100,
             119,
             66,
             any_span,
             "algorithm 66 beside another kernel that uses tensor memory gives wrong results",
             "release notes of cuBLAS's patches, issues 5807900 and 5943783"},
    FaultRow{{13, 5, 0},
             {13, 6, 0},
             120,
             129,
             any_algorithm,
             any_span,
             "kernels access memory outside of operands",
             "issue 521 of conda-forge/pytorch-cpu-feedstock"},
    FaultRow{{13, 6, 0},
             no_end,
             0,
             std::numeric_limits<int>::max(),
             68,
             beyond_int32,
             "algorithm 68 fails on operands of 2^31 elements",
             "pull request 3098 of NVIDIA/raft"},
};

bool applies(const FaultRow& row, const FaultQuestion& question) {
  const int architecture = question.device.architecture;
  return row.first <= question.version && question.version < row.end &&
         row.least_architecture <= architecture && architecture <= row.most_architecture &&
         (row.algorithm == any_algorithm || row.algorithm == question.algorithm) &&
         question.largest_span >= row.least_span;
}

}  // namespace

Status check_known_faults(const FaultQuestion& question) {
  for (const FaultRow& row : rows) {
    if (!applies(row, question)) continue;
    return Status::fail(fmt::format("version: cuBLASLt {} on {} is not used: {} ({})",
                                    to_string(question.version), to_string(question.device),
                                    row.what, row.source));
  }
  return Status::success();
}

}  // namespace gemmery::cublaslt
