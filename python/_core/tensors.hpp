// SPDX-License-Identifier: Apache-2.0
// Tensors of any framework as views of the library, with what keeps their memory alive.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <gemmery/dlpack_abi.hpp>
#include <gemmery/tensor.hpp>

#include "bindings.hpp"

namespace gemmery::python {

// Calls the producer's deleter when it goes; with the GIL, as Python objects hold these.
struct CallDeleter {
  void operator()(dlpack::ManagedVersionedLayout* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};
using ManagedTensor = std::unique_ptr<dlpack::ManagedVersionedLayout, CallDeleter>;

// Who says which stream is current for a tensor's memory.
enum class StreamSource : std::uint8_t {
  none,          // nobody: memory of our own, NumPy's, a producer that was synchronised
  exchange_api,  // the framework's C table
  torch,         // torch.cuda.current_stream
  cupy           // cupy.cuda.get_current_stream
};

// An array's memory by the buffer protocol; refers to the array until it goes.
struct ReleaseBuffer {
  void operator()(Py_buffer* buffer) const noexcept {
    PyBuffer_Release(buffer);
    delete buffer;
  }
};
using HeldBuffer = std::unique_ptr<Py_buffer, ReleaseBuffer>;

struct ImportedTensor {
  Tensor view;
  nb::object base;  // the object that it was made of
  // What keeps the memory alive, beside `base`: one of these or none.
  ManagedTensor managed;
  HeldBuffer buffer;
  std::shared_ptr<void> owner;
  const dlpack::ExchangeApi* exchange = nullptr;
  StreamSource stream_source = StreamSource::none;
  bool is_read_only = false;
  // Once let go of, its memory is given out again in the order of streams that nobody tells us:
  // what works on it must have ended by then.
  bool is_reused_at_once = false;
  bool is_launched = false;  // a prepared launch has its address
  bool is_fake = false;      // no memory: torch's meta tensors and FakeTensor
  bool is_meta = false;      // nor a device

  // For Python's collector of cycles.
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

// A view of `object`; nothing is copied. `role` names it in errors. Throws TypeError for what is no
// tensor, Error for one that is not served.
ImportedTensor import_tensor(nb::handle object, std::string_view role);

// Whether `object` stands for a tensor, not for a number.
bool is_tensor_like(nb::handle object);

// Memory of our own, packed in the order of `strides` where these are given.
ImportedTensor allocate(std::span<const std::int64_t> shape, DType dtype, Device device,
                        std::span<const std::int64_t> strides = {});

// Whether the elements fill the memory from the first on without gaps, in whatever order.
bool is_packed_in_any_order(const Tensor& tensor);

// Copies elements between tensors of one shape and type, on any devices and with any strides; waits
// until it is done. On a GPU in the order of `handle`, a stream of it.
void copy_elements(const Tensor& destination, const Tensor& source, void* handle);

// --- DLPack --------------------------------------------------------------------------------------

// The two whole numbers of a device (type, index) or of a version (major, minor).
using Pair = std::array<long, 2>;
std::optional<Pair> find_pair(nb::handle object);

// Throws BufferError for memory that other libraries do not know.
dlpack::DeviceCode dlpack_device(const ImportedTensor& tensor);

// A capsule of `self`, a Tensor, or of a copy of it, as the Python array API standard has it for
// `__dlpack__`.
nb::object export_tensor(nb::handle self, nb::handle stream, nb::handle max_version,
                         nb::handle dl_device, nb::handle copy);

// --- streams -------------------------------------------------------------------------------------

// The stream that frameworks report as current for the tensors' device; throws Error
// (invalid_argument) where two differ, naming them by `roles`.
class CurrentStream {
 public:
  void consider(const ImportedTensor& tensor, std::string_view role);
  // nullptr, the legacy default stream, where nobody has said anything.
  void* handle() const noexcept { return handle_; }

 private:
  void* handle_ = nullptr;
  bool is_known_ = false;
  std::string_view role_;
};

// The handle of a stream object of any framework (not None). Throws Error (invalid_argument) for
// one that says it belongs to another device than the one where it is to be used.
void* to_stream_handle(nb::handle object, Device device);

// The same wherever it belongs to.
void* to_stream_handle(nb::handle object);

}  // namespace gemmery::python
