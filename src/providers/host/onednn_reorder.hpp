// SPDX-License-Identifier: Apache-2.0
// Reorders of weights: from the caller's format to the one that a primitive chooses, or back.
#pragma once

#include "providers/host/onednn_primitive.hpp"

namespace gemmery::host::onednn {

class Reorder {
 public:
  Reorder(const Library& library, MemoryDescriptor from, MemoryDescriptor to)
      : primitive_(library, library.describe_reorder(from, to)) {}

  void execute(const void* source, void* destination) const {
    static thread_local Scratch scratch;
    primitive_.execute({{argument_reorder_from, primitive_.query(query_source_md), source},
                        {argument_reorder_to, primitive_.query(query_destination_md), destination}},
                       scratch);
  }

 private:
  DescribedPrimitive primitive_;
};

}  // namespace gemmery::host::onednn
