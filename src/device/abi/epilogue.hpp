// SPDX-License-Identifier: Apache-2.0
// What host and device agree on about an epilogue that was emitted: its operands as template
// arguments know them, and the run-time parameters, byte for byte.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

constexpr int most_epilogue_inputs = 16;
constexpr int most_epilogue_outputs = 8;  // beside D
constexpr int most_epilogue_numbers = 16;

enum class Reduction : unsigned char { none, sum, max, min, amax };

/// How a cast of a program narrows: the host's gemmery::epilogue::Rounding and Overflow.
enum class Rounding : unsigned char { nearest_even, toward_zero };
enum class Overflow : unsigned char { natural, saturate };

/// A tensor of the epilogue as the kernel sees it: m and n are rows and columns of the out that the
/// device computes (turned where the host turned the problem).
struct EpilogueTensor {
  DType dtype;
  bool varies_l;
  bool varies_m;
  bool varies_n;
  /// Bytes of the widest access to neighbours along n, 0 where they are not adjacent.
  unsigned char vector_bytes;
  /// Of an output: how elements that fall together are combined.
  Reduction reduction;

  bool operator==(const EpilogueTensor&) const = default;
};

/// Where a tensor lies. Strides count elements and are 0 along what it does not vary with.
struct EpiloguePlace {
  void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 column_stride;
};

/// The run-time parameters of an emitted epilogue with so many operands; numbers are in the type
/// that it computes in.
template <int inputs, int outputs, int numbers, class Compute>
struct EpilogueParams {
  EpiloguePlace input[inputs > 0 ? inputs : 1];
  EpiloguePlace output[outputs > 0 ? outputs : 1];
  Compute number[numbers > 0 ? numbers : 1];
  /// Scratch of reductions across tiles: partial results and arrival counters (schedule in
  /// device/epilogue).
  void* workspace;
};

}  // namespace gemmery::abi
