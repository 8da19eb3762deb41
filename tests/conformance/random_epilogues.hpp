// SPDX-License-Identifier: Apache-2.0
// Random epilogues for every kernel that discovery offers: a kernel that carries the program
// computes it within its interval, others refuse it.
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
  std::string family = {};              // whose kernels alone are run; empty for all
  std::string name_part = {};           // likewise those whose names hold it
  std::string family_on_few = "sm90";   // half of whose runs take few multiprocessors
  int programs = 0;                     // that run; what is refused comes on top
  std::size_t kernels_per_program = 1;  // the best and others at random
  std::uint64_t seed = 1;
  int threads = 1;
  int most_extent = 80;  // of M, N and K
  int most_rows = 0;     // of M or N, where not 0
  bool groups = false;   // grouped products
  tests::ProgramLimits limits = {};
};

struct EpilogueTally {
  std::int64_t programs = 0;
  std::int64_t runs = 0;
  std::int64_t elements = 0;
  std::int64_t without_bound = 0;  // of the elements
};

struct EpilogueReport {
  EpilogueTally all;
  std::map<std::string, EpilogueTally> of_family;
  std::int64_t refused = 0;  // by every family asked, each in words about the epilogue
  std::int64_t silent = 0;   // programs that ran, mostly without a bound; not in the tallies
  std::vector<std::string> failures;  // each with the words that replay it
};

EpilogueReport run_random_epilogues(const EpilogueOptions& options);
std::string to_string(const EpilogueReport& report);

}  // namespace gemmery::conformance
