// SPDX-License-Identifier: Apache-2.0
// Convolution primitives of oneDNN. Filters given by strides would select its slow reference, so
// they are reordered at each call into the format that a primitive chooses.
#pragma once

#include <mutex>
#include <string>

#include "providers/host/onednn_library.hpp"

namespace gemmery::host::onednn {

// Usable from many threads at a time, since memory and scratchpad belong to the call.
class ConvolutionPrimitive {
 public:
  ConvolutionPrimitive(const Library& library, const ConvolutionShape& shape);
  ~ConvolutionPrimitive();
  ConvolutionPrimitive(const ConvolutionPrimitive&) = delete;
  ConvolutionPrimitive& operator=(const ConvolutionPrimitive&) = delete;

  void execute(const ConvolutionMemory& memory) const;
  std::string implementation_name() const;

 private:
  const ApiCommon& api() const { return library_.api(); }
  MemoryDescriptor query(int what) const {
    return api().primitive_desc_query_md(descriptor_, what, 0);
  }
  // Code is compiled at the first run, not when discovery asks for an implementation.
  void create_primitives() const;
  void reorder(MemoryDescriptor from, const void* source, MemoryDescriptor to,
               void* destination) const;

  const Library& library_;
  ConvolutionShape shape_;
  PrimitiveDescriptor descriptor_;
  OwnedDescriptor stored_filters_;  // in the caller's format
  mutable std::once_flag is_created_;
  mutable Primitive primitive_ = nullptr;
  mutable PrimitiveDescriptor reorder_descriptor_ = nullptr;
  mutable Primitive reorder_ = nullptr;
};

}  // namespace gemmery::host::onednn
