// SPDX-License-Identifier: Apache-2.0
// The suite for every kernel of every provider: random trials, refusals, discovery, problem lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gemmery/kernel.hpp>

#include "tests/conformance/random_trials.hpp"

namespace gemmery::conformance {

struct SuiteOptions {
  std::vector<Kernel> kernels;  // for one device; families get equal shares of the cases
  std::int64_t cases = 0;       // cases that run, not counting refusals
  std::uint64_t seed = 1;
  int threads = 1;
  TrialLimits limits;
  bool asks_others = true;  // now and then, another kernel for the same problem: one that refuses
                            // it, or one that discovery offers
};

struct Tally {
  std::int64_t runs = 0;
  std::int64_t exact = 0;     // runs that were compared bit for bit
  std::int64_t refusals = 0;  // each has a reason, and `run` gives the same one
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;  // runs and refusals that failed
  double worst_ratio = 0;       // the largest ratio of error to bound
};

struct SuiteReport {
  std::uint64_t seed = 0;
  std::map<std::string, Tally> of_family;       // "host/reference"
  std::map<std::string, std::int64_t> of_form;  // runs: "parallel, array"
  std::vector<std::string> failures;  // the first ones, each with the command line that replays it

  std::int64_t mismatches() const;
};

SuiteReport run_suite(const SuiteOptions& options);
std::string to_string(const SuiteReport& report);

// At most `count` of the kernels, chosen at random.
std::vector<Kernel> choose_kernels(std::vector<Kernel> kernels, std::size_t count,
                                   Choices& choices);

// Discovery lists sm90's kernels for strided batches. Sometimes replaces such a kernel by the one
// for arrays of pointers, which is available by name.
Kernel with_pointers(const Kernel& kernel, Choices& choices);

}  // namespace gemmery::conformance
