// SPDX-License-Identifier: Apache-2.0
// The oneDNN that was found, of either major version.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <gemmery/error.hpp>

#include "providers/host/onednn.hpp"
#include "providers/host/onednn_api.hpp"

namespace gemmery::host::onednn {

// Throw Error for the status of a function.
[[noreturn]] void fail(ErrorKind kind, const char* function, Status status);
void require_success(Status status, const char* function);

// True if an implementation, by oneDNN's name, multiplies correctly in a version.
bool is_trusted(const Version& version, std::string_view implementation);

// A memory descriptor of ours, of either version.
using OwnedDescriptor = std::shared_ptr<const void>;

// A version of oneDNN: its functions, its engine for the CPU, and how it describes a product.
class Library {
 public:
  virtual ~Library() = default;
  // For the first trusted implementation. Throws Error if oneDNN refuses the shape.
  virtual PrimitiveDescriptor describe_matmul(const MatmulShape& shape) const = 0;
  // The same, with filters in a format of its choice. Never its reference.
  virtual PrimitiveDescriptor describe_convolution(const ConvolutionShape& shape) const = 0;
  // Filters packed as (K, taps, C/g).
  virtual OwnedDescriptor describe_filters(const ConvolutionShape& shape) const = 0;
  PrimitiveDescriptor describe_reorder(MemoryDescriptor from, MemoryDescriptor to) const;
  std::string_view implementation_name(PrimitiveDescriptor descriptor) const;

  const ApiCommon& api() const { return *api_; }
  Engine engine() const { return engine_; }
  Stream stream() const { return stream_; }
  const std::string& text() const { return text_; }

 protected:
  void open(const ApiCommon& api, const std::string& path);
  bool is_trusted(PrimitiveDescriptor descriptor) const;
  bool is_fast(PrimitiveDescriptor descriptor) const;
  Attributes attributes() const { return attributes_; }

 private:
  const ApiCommon* api_ = nullptr;
  Engine engine_ = nullptr;
  Stream stream_ = nullptr;
  Attributes attributes_ = nullptr;
  std::string text_;
};

struct FoundLibrary {
  std::unique_ptr<const Library> library;
  std::string reason;  // why it was not found
};

// Searched for once per process.
const FoundLibrary& found_library();

}  // namespace gemmery::host::onednn
