// SPDX-License-Identifier: Apache-2.0
// The oracle: for every element of a result the exact value, how far a kernel may be from it, and
// whether it is.
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

// Of one matrix of a batch, row major and packed. Before the rounding to out's type.
struct OracleResult {
  std::vector<double> value;  // nearest double of alpha · sum + beta · C
  std::vector<double> low;    // what is missing to about 100 bits; empty where all are 0
  std::vector<double>
      bound;  // e of error_model.hpp with the oracle's own error; infinite where the kernel's sums
              // may overflow; 0 where every step of the epilogue is exact on integers
};

// Reads A, B, C of `arguments` (on the CPU); C as it was before the kernel ran.
OracleResult compute_oracle(const GemmArguments& arguments, const DeclaredMath& declared,
                            std::int64_t batch = 0);

// Whether elements are held against their bounds, or must be the exact value rounded once.
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
  std::int64_t open = 0;  // elements of programs that may be any number, or any of a sign
  double worst_ratio =
      0;  // of |got − exact| to what is allowed; infinite for a wrong infinity or NaN
  double worst_error = 0;  // largest finite |got − exact|
  std::optional<Mismatch> first;

  void merge(const Comparison& other);
};

// Holds every element of `arguments.out()`, as the default program computes it, against the oracle
// (program_oracle.hpp has the others). NaN and infinities must be where the
// exact result has them.
Comparison compare_with_oracle(const GemmArguments& arguments, const DeclaredMath& declared,
                               Criterion criterion = Criterion::bound);

// One element; `allowed` of the result is filled.
struct ElementVerdict {
  bool is_right;
  double ratio;
  double allowed;
};
ElementVerdict judge_element(DType out, DoubleDouble exact, double bound, double got);

// Whether `compare_with_oracle` takes seconds rather than minutes on two cores.
bool is_within_reach_of_oracle(const GemmProblem& problem);

// For larger problems: Freivalds' check out·r = alpha · A·(B·r) + beta · C·r with random signs r,
// `vectors` times, every row within the sum of its elements' bounds; and `rows` rows chosen at
// random element by element. Counts a failed row as one mismatch. Integer sums beyond 2^31, which
// wrap, and outputs that saturate or overflow are not linear: use the full comparison there.
struct FreivaldsOptions {
  int vectors = 3;
  int rows = 16;
  std::uint64_t seed = 1;
};
Comparison check_by_freivalds(const GemmArguments& arguments, const DeclaredMath& declared,
                              const FreivaldsOptions& options = {});

}  // namespace gemmery::host
