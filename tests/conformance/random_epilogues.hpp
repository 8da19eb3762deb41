// SPDX-License-Identifier: Apache-2.0
// Random epilogues for every kernel that discovery offers: kernels with the program compute results
// within their intervals, others refuse it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "tests/support/random_programs.hpp"

namespace gemmery::conformance {

struct EpilogueOptions {
  Device device;
  std::string family = {};              // only kernels of this family; empty: all
  std::string name_part = {};           // only kernels whose names contain it; empty: all
  std::string family_on_few = "sm90";   // half of its runs use few multiprocessors
  int programs = 0;                     // programs that run, not counting refused ones
  std::size_t kernels_per_program = 1;  // the best and others at random
  std::uint64_t seed = 1;
  int threads = 1;
  int most_extent = 80;  // limit for M, N and K
  int most_rows = 0;     // if not 0: limit for M or N
  bool groups = false;   // grouped products
  tests::ProgramLimits limits = {};
};

struct EpilogueTally {
  std::int64_t programs = 0;
  std::int64_t runs = 0;
  std::int64_t elements = 0;
  std::int64_t without_bound = 0;  // elements without a bound
};

struct EpilogueReport {
  EpilogueTally all;
  std::map<std::string, EpilogueTally> of_family;
  std::int64_t refused = 0;  // refused by all families, each with a reason about the epilogue
  std::int64_t silent = 0;   // programs that ran, mostly without a bound; not in the tallies
  std::vector<std::string> failures;  // each with the command line that replays it
};

EpilogueReport run_random_epilogues(const EpilogueOptions& options);
std::string to_string(const EpilogueReport& report);

}  // namespace gemmery::conformance
