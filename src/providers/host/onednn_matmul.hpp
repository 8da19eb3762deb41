// SPDX-License-Identifier: Apache-2.0
// Matmul primitives of oneDNN.
#pragma once

#include <string>

#include "providers/host/onednn_library.hpp"

namespace gemmery::host::onednn {

// One primitive; usable from many threads at a time, since memory and scratchpad belong to the
// call.
class Matmul {
 public:
  Matmul(const Library& library, const MatmulShape& shape);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  void execute(const void* source, const void* weights, void* destination) const;
  std::string implementation_name() const;

 private:
  const ApiCommon& api() const { return library_.api(); }
  MemoryDescriptor query(int what) const {
    return api().primitive_desc_query_md(descriptor_, what, 0);
  }

  const Library& library_;
  PrimitiveDescriptor descriptor_;
  Primitive primitive_ = nullptr;
};

}  // namespace gemmery::host::onednn
