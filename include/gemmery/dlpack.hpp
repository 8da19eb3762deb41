// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries through DLPack 1.x. Only names are declared here: the layout is
// DLPack's published ABI, so this header goes together with any copy of dlpack.h.
#pragma once

#include <memory>

#include <gemmery/export.hpp>
#include <gemmery/tensor.hpp>

struct DLTensor;
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace gemmery {

// A view of a DLTensor; nothing is owned and nothing is synchronised: the caller orders the
// producer's stream before ours. Missing strides mean row major; `byte_offset` is applied. Throws
// Error: invalid_argument for malformed tensors (rank, lanes, null data with elements, misaligned
// offset), unsupported for element types and devices that are not supported.
GEMMERY_API Tensor from_dlpack(const DLTensor& tensor);

// Owns a producer's tensor, and calls its deleter exactly once, on the thread that releases it
// last.
class GEMMERY_API DlpackTensor {
 public:
  // Takes ownership at once: when the constructor throws (another major version, a tensor that
  // `from_dlpack` refuses), the deleter has been called and nothing else was touched. A null
  // pointer is refused.
  explicit DlpackTensor(DLManagedTensorVersioned* managed);
  explicit DlpackTensor(DLManagedTensor* managed);

  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  std::shared_ptr<void> owner_;
  Tensor tensor_;
};

}  // namespace gemmery
