// SPDX-License-Identifier: Apache-2.0
// The oracle: for every element of a result the exact value, the allowed error of a kernel, and a
// verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gemmery/arguments.hpp>

#include "providers/host/error_model.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {

// For one matrix of a batch, row major and packed. Before rounding to out's type.
struct OracleResult {
  std::vector<double> value;  // nearest double of alpha · sum + beta · C
  std::vector<double> low;    // the rest, to about 100 bits; empty if all are 0
  std::vector<double>
      bound;  // e of error_model.hpp with the oracle's own error; infinite where the kernel's sums
              // may overflow; 0 where every step of the epilogue is exact on integers
  std::vector<std::uint8_t> may_be_nan;  // as in ExactSums
};

// Reads A, B and C of `arguments` (on the CPU); C as it was before the kernel ran.
OracleResult compute_oracle(const GemmArguments& arguments, const DeclaredMath& declared,
                            std::int64_t batch = 0);

// The requirement: elements within their bounds, or equal to the exact value rounded once.
enum class Criterion : std::uint8_t { bound, exact };

struct Mismatch {
  std::int64_t batch, row, column;
  double got;
  double exact;
  double allowed;
  std::string output = "out";  // or the name of another result of a program
};

struct Comparison {
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;
  std::int64_t without_bound = 0;  // elements that may be any number, or any of a sign
  double worst_ratio =
      0;  // |got − exact| relative to the bound; infinite for a wrong infinity or NaN
  double worst_error = 0;  // largest finite |got − exact|
  std::optional<Mismatch> first;

  void merge(const Comparison& other);
};

// Checks every element of `arguments.out()`, computed by the default program, against the oracle
// (program_oracle.hpp checks other programs). NaN and infinities must be where the exact result has
// them.
Comparison compare_with_oracle(const GemmArguments& arguments, const DeclaredMath& declared,
                               Criterion criterion = Criterion::bound);

// One element; sets `allowed` of the result.
struct ElementVerdict {
  bool is_right;
  double ratio;
  double allowed;
};
ElementVerdict judge_element(DType out, DoubleDouble exact, double bound, double got);

// True if `compare_with_oracle` takes seconds rather than minutes on two cores.
bool is_within_reach_of_oracle(const GemmProblem& problem);

// For larger convolutions with the default program: checks a number of random elements, each by
// its definition. It does not check int32 sums that wrap or saturate.
Comparison compare_sampled_elements(const GemmArguments& arguments, const DeclaredMath& declared,
                                    int count, std::uint64_t seed);

// For larger problems: Freivalds' check out·r = alpha · A·(B·r) + beta · C·r with random signs r,
// `vectors` times, every row within the sum of its elements' bounds; and `rows` random rows element
// by element. A failed row counts as one mismatch. Integer sums beyond 2^31, which wrap, and
// outputs that saturate or overflow are not linear: they need the full comparison.
struct FreivaldsOptions {
  int vectors = 3;
  int rows = 16;
  std::uint64_t seed = 1;
};
Comparison check_by_freivalds(const GemmArguments& arguments, const DeclaredMath& declared,
                              const FreivaldsOptions& options = {});

}  // namespace gemmery::host
