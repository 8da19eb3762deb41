// SPDX-License-Identifier: Apache-2.0
// A row for each kernel of this folder: how it is launched, what goes in, what has to come out, and
// what its planted fault is reported as.
#pragma once

#include <gemmery/emulate.hpp>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace gemmery::tests {

struct ExpectedOutput {
  std::size_t argument;
  std::vector<std::byte> bytes;  // exactly these, unless it has `values`
  std::vector<double> values = {};
  double tolerance = 0;       // of `values`, absolute
  bool is_unordered = false;  // the elements of 4 bytes in any order
};

struct SampleCase {
  std::vector<EmulationArgument> arguments;
  std::vector<ExpectedOutput> expected;
};

struct Sample {
  const char* name;  // of the kernel and of its file
  EmulatedLaunch launch;
  const char* fault;  // the kind
  SampleCase (*make)(std::mt19937_64& random);
};

const std::vector<Sample>& all_samples();

// Says where the bytes are not as expected; "" if they are.
std::string difference(const ExpectedOutput& expected, const std::vector<std::byte>& bytes);

}  // namespace gemmery::tests
