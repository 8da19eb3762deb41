// SPDX-License-Identifier: Apache-2.0
// Runs a grouped problem with given sizes on a device: operands of -1, 0 and 1, whose products are
// exact in every type, NaN in elements of no group, a poisoned out. The result is compared with a
// loop; elements that must not be written must keep their bits.
#pragma once

#include <gemmery/gemmery.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gemmery::tests {

// The layout of a matrix: its contiguous index, elements of padding after each line, and bytes
// before the first element.
struct Placement {
  bool is_column_major = false;
  std::int64_t padding = 0;
  std::size_t offset_bytes = 0;
};

// The extent that differs is the sum of `counts`, each rounded up to `alignment`, and `tail`. For
// masked groups it is the extent of every matrix.
struct GroupCase {
  std::vector<std::int32_t> counts = {};
  Ragged ragged = Ragged::m;
  std::int64_t m = 0, n = 0, k = 0;  // the two that do not differ; for masked groups all three
  std::int64_t tail = 0;
  GroupSizes form = GroupSizes::ends;
  int bits = 32;
  std::int32_t alignment = 1;
  std::int64_t expected = 0;
  DType dtype = DType::bfloat16;
  DType out_dtype = DType::float32;
  Placement a = {}, b = {}, out = {};
  double beta = 0;  // factor of C, which is out
  // D = relu(accum + bias) * factor; peak = max(D), with a bias per group, a factor per row of all
  // groups, and a peak per group and column.
  bool has_program = false;
};
std::string to_string(const GroupCase& groups);

// The memory of the sizes when a kernel runs.
enum class SizesIn : std::uint8_t { device_memory, host_memory };

// The result of a case on a device.
struct GroupTrialResult {
  int kernels = 0;           // number of kernels that ran
  std::string refusal = {};  // the family's reason if none ran
  std::string failure = {};  // the first wrong element, with the kernel; empty if all are correct
};

// Runs the best kernel of each schedule of one family.
GroupTrialResult try_groups(const GroupCase& groups, const std::string& family, Device device,
                            SizesIn sizes);

}  // namespace gemmery::tests
