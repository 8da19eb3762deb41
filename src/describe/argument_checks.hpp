// SPDX-License-Identifier: Apache-2.0
// Checks that the arguments of all described operations share. They throw Error naming the operand
// or the field.
#pragma once

#include <gemmery/describe.hpp>

#include <cstdint>
#include <string_view>

namespace gemmery::describe {

// The extent of a packed operand along which elements are contiguous.
struct Adjacent {
  const char* extent_name;
  std::int64_t extent;
};

// Checks that the extent is a multiple of the operand's alignment.
void check_multiple(std::string_view operand, const TensorDescription& tensor,
                    const Adjacent& adjacent);

// Checks the address's alignment. It may be null only if there are no elements.
void check_pointer(std::string_view operand, const TensorDescription& tensor, const void* data,
                   bool has_elements);

// The alignment of C applies to a matrix; a bias needs only that of an element.
TensorDescription without_alignment(TensorDescription tensor);

// Checks that the device is a GPU, possibly emulated, of at least this capability.
void check_device(int compute_capability, Device device);

void check_slices(int split_k_slices);

}  // namespace gemmery::describe
