// SPDX-License-Identifier: Apache-2.0
// Tensors of any framework as the library's views, with the objects that keep their memory alive.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <gemmery/dlpack_abi.hpp>
#include <gemmery/tensor.hpp>

#include "bindings.hpp"

namespace gemmery::python {

// Calls the producer's deleter on destruction, with the GIL, since Python objects own these.
struct CallDeleter {
  void operator()(dlpack::ManagedVersionedLayout* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};
using ManagedTensor = std::unique_ptr<dlpack::ManagedVersionedLayout, CallDeleter>;

// The source of the current stream for a tensor's memory.
enum class StreamSource : std::uint8_t {
  none,          // none: the library's memory, NumPy's, a producer that was synchronised
  exchange_api,  // the framework's C table
  torch,         // torch.cuda.current_stream
  cupy           // cupy.cuda.get_current_stream
};

// An array's memory by the buffer protocol; keeps a reference to the array until destruction.
struct ReleaseBuffer {
  void operator()(Py_buffer* buffer) const noexcept {
    PyBuffer_Release(buffer);
    delete buffer;
  }
};
using HeldBuffer = std::unique_ptr<Py_buffer, ReleaseBuffer>;

struct ImportedTensor {
  Tensor view;
  nb::object base;  // the object that was imported
  // Keeps the memory alive in addition to `base`: one of these or none.
  ManagedTensor managed;
  HeldBuffer buffer;
  std::shared_ptr<void> owner;
  const dlpack::ExchangeApi* exchange = nullptr;
  StreamSource stream_source = StreamSource::none;
  bool is_read_only = false;
  // Once released, its memory is reused in the order of streams that are not known here, so work on
  // it must have ended by then.
  bool is_reused_at_once = false;
  bool is_launched = false;  // a prepared launch has its address
  bool is_fake = false;      // no memory: torch's meta tensors and FakeTensor
  bool is_meta = false;      // no memory and no device

  // For Python's garbage collector.
  int visit_references(visitproc visit, void* arg) const {
    Py_VISIT(base.ptr());
    if (buffer != nullptr) Py_VISIT(buffer->obj);
    return 0;
  }
  void clear_references() {
    base.reset();
    buffer.reset();
  }
};

// A view of `object`; nothing is copied. `role` names it in errors. Throws TypeError for objects
// that are not tensors, Error for tensors that are not supported.
ImportedTensor import_tensor(nb::handle object, std::string_view role);

// Whether `object` is a tensor rather than a number.
bool is_tensor_like(nb::handle object);

// The number of an object that is no tensor. Throws TypeError that names `role`.
double import_number(nb::handle object, std::string_view role);

// Allocates the library's memory, packed in the order of `strides` if they are given.
ImportedTensor allocate(std::span<const std::int64_t> shape, DType dtype, Device device,
                        std::span<const std::int64_t> strides = {});

// Whether the elements fill the memory without gaps, in any order.
bool is_packed_in_any_order(const Tensor& tensor);

// Copies elements between tensors of one shape and type, on any devices and with any strides, and
// waits for the end. On a GPU the copy runs in the order of its stream `handle`.
void copy_elements(const Tensor& destination, const Tensor& source, void* handle);

// --- DLPack --------------------------------------------------------------------------------------

// The two whole numbers of a device (type, index) or of a version (major, minor).
using Pair = std::array<long, 2>;
std::optional<Pair> find_pair(nb::handle object);

// Throws BufferError for memory that other libraries do not support.
dlpack::DeviceCode dlpack_device(const ImportedTensor& tensor);

// A capsule of `self`, a Tensor, or of a copy of it: `__dlpack__` of the Python array API standard.
nb::object export_tensor(nb::handle self, nb::handle stream, nb::handle max_version,
                         nb::handle dl_device, nb::handle copy);

// --- streams -------------------------------------------------------------------------------------

// The stream that frameworks report as current for the tensors' device; throws Error
// (invalid_argument), which names two tensors by `roles`, if their streams differ.
class CurrentStream {
 public:
  void consider(const ImportedTensor& tensor, std::string_view role);
  // nullptr, the legacy default stream, if no framework reports one.
  void* handle() const noexcept { return handle_; }

 private:
  void* handle_ = nullptr;
  bool is_known_ = false;
  std::string_view role_;
};

// The handle of a stream object of any framework (not None). Throws Error (invalid_argument) for a
// stream that reports another device than `device`.
void* to_stream_handle(nb::handle object, Device device);

// The same for a stream of any device.
void* to_stream_handle(nb::handle object);

}  // namespace gemmery::python
