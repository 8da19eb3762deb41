// SPDX-License-Identifier: Apache-2.0
// A grouped problem with given sizes on a device: operands of -1, 0 and 1, whose products every
// type holds exactly, NaN in what belongs to no group, a poisoned out, and a comparison with a loop
// in which all that is not to be written keeps its bits.
#pragma once

#include <gemmery/gemmery.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gemmery::tests {

// Where the numbers of a matrix lie: its contiguous index, elements of padding behind each line,
// and bytes before the first element.
struct Placement {
  bool is_column_major = false;
  std::int64_t padding = 0;
  std::size_t offset_bytes = 0;
};

// The extent that differs is the sum of `counts`, each rounded up to `alignment`, and `tail`; of
// masked groups it is that of every matrix.
struct GroupCase {
  std::vector<std::int32_t> counts = {};
  Ragged ragged = Ragged::m;
  std::int64_t m = 0, n = 0, k = 0;  // the two that do not differ; of masked groups all three
  std::int64_t tail = 0;
  GroupSizes form = GroupSizes::ends;
  int bits = 32;
  std::int32_t alignment = 1;
  std::int64_t expected = 0;
  DType dtype = DType::bfloat16;
  DType out_dtype = DType::float32;
  Placement a = {}, b = {}, out = {};
  double beta = 0;  // of C, which is out
  // D = relu(accum + bias) * factor; peak = max(D), with a bias of each group and a factor of each
  // row of all, and a peak of each group's columns.
  bool has_program = false;
};
std::string to_string(const GroupCase& groups);

// Where the sizes are when a kernel runs.
enum class SizesIn : std::uint8_t { device_memory, host_memory };

// What became of a case on a device.
struct GroupTrialResult {
  int kernels = 0;           // that ran
  std::string refusal = {};  // of the family, where none did
  std::string failure = {};  // the first wrong element, with the kernel; empty if all are right
};

// Runs the best kernel of each schedule of one family.
GroupTrialResult try_groups(const GroupCase& groups, const std::string& family, Device device,
                            SizesIn sizes);

}  // namespace gemmery::tests
