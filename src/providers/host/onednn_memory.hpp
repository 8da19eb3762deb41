// SPDX-License-Identifier: Apache-2.0
// The caller's memory in oneDNN's form, for one call.
#pragma once

#include "providers/host/onednn_library.hpp"

namespace gemmery::host::onednn {

class MemoryView {
 public:
  MemoryView(const Library& library, MemoryDescriptor descriptor, const void* data)
      : api_(library.api()) {
    require_success(
        api_.memory_create(&memory_, descriptor, library.engine(), const_cast<void*>(data)),
        "dnnl_memory_create");
  }
  ~MemoryView() { api_.memory_destroy(memory_); }
  MemoryView(const MemoryView&) = delete;
  MemoryView& operator=(const MemoryView&) = delete;
  Memory get() const { return memory_; }

 private:
  const ApiCommon& api_;
  Memory memory_ = nullptr;
};

}  // namespace gemmery::host::onednn
