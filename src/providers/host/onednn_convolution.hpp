// SPDX-License-Identifier: Apache-2.0
// Convolution primitives of oneDNN. Filters given by strides would select its slow reference, so
// they are reordered into the format that a primitive chooses: at each call, or, where that would
// be a large part of it, once for the same contents (kept_weights.hpp).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "providers/host/onednn_reorder.hpp"

namespace gemmery::host::onednn {

// Usable from many threads at a time, since memory and scratchpad belong to the call.
class ConvolutionPrimitive {
 public:
  ConvolutionPrimitive(const Library& library, const ConvolutionShape& shape);

  void execute(const ConvolutionMemory& memory) const;
  std::string implementation_name() const { return primitive_.implementation_name(); }

 private:
  // The reorder is described at the first run, not when discovery asks for an implementation.
  const Reorder& reorder() const;
  void execute(const ConvolutionMemory& memory, void* filters) const;
  void execute_with_kept_filters(const ConvolutionMemory& memory) const;

  const Library& library_;
  ConvolutionShape shape_;
  DescribedPrimitive primitive_;
  std::uint64_t format_;            // of the filters that it reads: its own
  OwnedDescriptor stored_filters_;  // in the caller's format
  mutable std::once_flag is_described_;
  mutable std::optional<Reorder> reorder_;
};

}  // namespace gemmery::host::onednn
