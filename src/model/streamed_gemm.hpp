// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a GEMM of few rows whose large operand is streamed once from memory to
// registers. Arithmetic only.
#pragma once

#include <gemmery/device.hpp>

namespace gemmery::model {

// The facts of a launch that a prediction needs.
struct StreamedDesign {
  double streamed_bytes = 0;             // of the large operand, in all
  double other_bytes = 0;                // of all other operands and results
  double units = 1;                      // of work, one block of threads each
  double bytes_under_way = 0;            // of a block: loads in flight
  double blocks_per_multiprocessor = 1;  // resident blocks
  bool is_along_columns = false;         // true if the large operand is read along columns
  double panels = 0;                     // of the other operand; a block waits for each
  double late_loads = 0;                 // of each panel: loads that are waited for one by one
  double instructions_per_byte = 0;      // of a thread, for each byte that it streams
  double slices = 1;                     // of k, by blocks that add up their parts
  double exchanged_bytes = 0;            // of the parts: written and read
};

struct StreamedParts {
  double fixed_us = 0;     // launch, first loads, last stores
  double memory_us = 0;    // all operands through device memory
  double latency_us = 0;   // the same, limited by the bytes in flight
  double busiest_us = 0;   // instructions and waits of the multiprocessor with most units
  double exchange_us = 0;  // of parts between blocks

  double total_us() const noexcept;
};

StreamedParts predict_streamed(const StreamedDesign& design, const DeviceInfo& device) noexcept;

}  // namespace gemmery::model
