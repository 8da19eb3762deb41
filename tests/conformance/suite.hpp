// SPDX-License-Identifier: Apache-2.0
// The suite that every kernel of every provider goes through: random trials, refusals, discovery,
// problem lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gemmery/kernel.hpp>

#include "tests/conformance/random_trials.hpp"

namespace gemmery::conformance {

struct SuiteOptions {
  std::vector<Kernel> kernels;  // of one device; families get equal shares of the cases
  std::int64_t cases = 0;       // that run; refusals come on top
  std::uint64_t seed = 1;
  int threads = 1;
  TrialLimits limits;
  bool asks_others = true;  // now and then, another kernel for the same problem: one that refuses
                            // it, or one that discovery offers
};

struct Tally {
  std::int64_t runs = 0;
  std::int64_t exact = 0;     // of the runs: compared bit for bit
  std::int64_t refusals = 0;  // each checked as such: a reason, and the same from `run`
  std::int64_t elements = 0;
  std::int64_t mismatches = 0;  // runs and refusals with any fault
  double worst_ratio = 0;       // of error to bound
};

struct SuiteReport {
  std::uint64_t seed = 0;
  std::map<std::string, Tally> of_family;       // "host/reference"
  std::map<std::string, std::int64_t> of_form;  // runs: "parallel, array"
  std::vector<std::string> failures;  // the first of them, each with the words that replay it

  std::int64_t mismatches() const;
};

SuiteReport run_suite(const SuiteOptions& options);
std::string to_string(const SuiteReport& report);

// At most `count` of the kernels, chosen at random.
std::vector<Kernel> choose_kernels(std::vector<Kernel> kernels, std::size_t count,
                                   Choices& choices);

// Discovery lists sm90's kernels for strided batches; others are reached by name. Now and then the
// one for arrays of pointers in place of such a kernel.
Kernel with_pointers(const Kernel& kernel, Choices& choices);

}  // namespace gemmery::conformance
