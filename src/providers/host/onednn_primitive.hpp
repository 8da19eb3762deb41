// SPDX-License-Identifier: Apache-2.0
// A primitive of oneDNN with its descriptor, and how it is run.
#pragma once

#include <initializer_list>
#include <mutex>
#include <string>

#include "providers/host/onednn_library.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host::onednn {

// Memory for a call, in one of a primitive's formats.
struct CallMemory {
  int argument;
  MemoryDescriptor descriptor;
  const void* data;
};

// Usable from many threads at a time, since memory and scratchpad belong to the call.
class DescribedPrimitive {
 public:
  // Owns the descriptor.
  DescribedPrimitive(const Library& library, PrimitiveDescriptor descriptor)
      : library_(library), descriptor_(descriptor) {}
  ~DescribedPrimitive();
  DescribedPrimitive(const DescribedPrimitive&) = delete;
  DescribedPrimitive& operator=(const DescribedPrimitive&) = delete;

  // One of its formats, valid as long as the primitive is.
  MemoryDescriptor query(int what) const {
    return library_.api().primitive_desc_query_md(descriptor_, what, 0);
  }
  std::string implementation_name() const {
    return std::string(library_.implementation_name(descriptor_));
  }
  // Compiles its code, at the latest in the first run. Throws Error (unsupported).
  void create() const;
  // Runs to the end, with `scratch` as oneDNN's scratchpad. Throws Error (launch).
  void execute(std::initializer_list<CallMemory> memory, Scratch& scratch) const;

 private:
  const Library& library_;
  PrimitiveDescriptor descriptor_;
  mutable std::once_flag is_created_;
  mutable Primitive primitive_ = nullptr;
};

// Uninitialised memory for a tensor.
void* reserve(const Library& library, MemoryDescriptor descriptor, Scratch& scratch,
              std::string_view operand, std::string_view content);

}  // namespace gemmery::host::onednn
