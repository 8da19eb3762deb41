// SPDX-License-Identifier: Apache-2.0
// Handles of any framework's streams, and a framework's current stream.
#include "tensors.hpp"

#include <optional>
#include <string>

#include <gemmery/buffer.hpp>

#include "arguments.hpp"
#include "docs.hpp"

namespace gemmery::python {
namespace {

void* as_handle(nb::handle number) {
  const nb::object integer = nb::steal(PyNumber_Long(number.ptr()));
  if (!integer.is_valid()) nb::raise_python_error();
  return to_address(integer, "stream");
}

[[noreturn]] void refuse_stream(nb::handle object) {
  const std::string text =
      "stream: expected an int, a stream of torch, cupy, numba or cuda.core, or an object with "
      "__cuda_stream__, got " +
      class_name(object);
  throw nb::type_error(text.c_str());
}

nb::object attribute(nb::handle object, const char* name) {
  PyObject* const found = PyObject_GetAttrString(object.ptr(), name);
  if (found == nullptr) PyErr_Clear();
  return found == nullptr ? nb::object() : nb::steal(found);
}

// The value of an int attribute; nothing if it does not exist or is not an int.
std::optional<int> find_number(nb::handle object, const char* name) {
  const nb::object found = attribute(object, name);
  int number = 0;
  if (!found.is_valid() || !nb::try_cast(found, number)) return std::nullopt;
  return number;
}

// The GPU that a stream object reports: torch's, cupy's (-1 if it does not know), cuda.core's. A
// bare handle reports none; the driver refuses it when it is used on another device.
std::optional<Device> find_device(nb::handle object) {
  std::optional<int> index = find_number(object, "device_index");
  if (!index) index = find_number(object, "device_id");
  if (!index) {
    const nb::object device = attribute(object, "device");
    if (device.is_valid()) index = find_number(device, "device_id");
  }
  if (!index || *index < 0) return std::nullopt;
  return Device::cuda(*index);
}

void require_device(std::optional<Device> of_stream, Device device) {
  if (!of_stream || *of_stream == device || device.is_cpu()) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "stream",
               .expected = "a stream of " + to_string(device),
               .got = "a stream of " + to_string(*of_stream)});
}

// The protocol of CUDA's Python packages: (version, handle), by a method or a property.
void* read_protocol(nb::handle offered) {
  const nb::object pair = PyCallable_Check(offered.ptr()) != 0 ? offered() : nb::borrow(offered);
  if (nb::cast<int>(pair[0]) != 0) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "stream",
                 .expected = "version 0 of __cuda_stream__",
                 .got = "version " + std::to_string(nb::cast<int>(pair[0]))});
  }
  return as_handle(pair[1]);
}

void* torch_current_stream(Device device) {
  return as_handle(nb::module_::import_("torch")
                       .attr("cuda")
                       .attr("current_stream")(device.index)
                       .attr("cuda_stream"));
}

void* cupy_current_stream(Device device) {
  return as_handle(nb::module_::import_("cupy")
                       .attr("cuda")
                       .attr("get_current_stream")(device.index)
                       .attr("ptr"));
}

// A stream that the library creates, for users without a framework.
struct OwnStream {
  Device device;
  OwnedStream stream;
};

}  // namespace

void* to_stream_handle(nb::handle object) {
  if (PyBool_Check(object.ptr())) refuse_stream(object);
  if (PyLong_Check(object.ptr())) return as_handle(object);
  if (nb::isinstance<OwnStream>(object))
    return nb::cast<const OwnStream&>(object).stream.get().handle();
  if (const nb::object handle = attribute(object, "cuda_stream"); handle.is_valid())
    return as_handle(handle);  // torch
  if (const nb::object offered = attribute(object, "__cuda_stream__"); offered.is_valid())
    return read_protocol(offered);
  if (const nb::object handle = attribute(object, "ptr"); handle.is_valid())
    return as_handle(handle);  // cupy
  if (const nb::object handle = attribute(object, "handle"); handle.is_valid()) {
    const nb::object value = attribute(handle, "value");  // numba: a ctypes pointer, None for 0
    if (value.is_valid()) return value.is_none() ? nullptr : as_handle(value);
    return as_handle(handle);
  }
  if (attribute(object, "__int__").is_valid() && !PyFloat_Check(object.ptr()))
    return as_handle(object);  // cuda.bindings
  refuse_stream(object);
}

void* to_stream_handle(nb::handle object, Device device) {
  void* const handle = to_stream_handle(object);
  if (PyLong_Check(object.ptr())) return handle;
  require_device(nb::isinstance<OwnStream>(object)
                     ? std::optional(nb::cast<const OwnStream&>(object).device)
                     : find_device(object),
                 device);
  return handle;
}

void CurrentStream::consider(const ImportedTensor& tensor, std::string_view role) {
  if (tensor.stream_source == StreamSource::none) return;
  void* handle = nullptr;
  const Device device = tensor.view.device();
  if (tensor.stream_source == StreamSource::exchange_api) {
    if (tensor.exchange->current_stream(dlpack::device_cuda, device.index, &handle) != 0)
      nb::raise_python_error();
  } else {
    handle = tensor.stream_source == StreamSource::torch ? torch_current_stream(device)
                                                         : cupy_current_stream(device);
  }
  // Both 0 and 1 mean the legacy default stream.
  if (handle == reinterpret_cast<void*>(1)) handle = nullptr;
  if (is_known_ && handle != handle_) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "stream",
                 .expected = "an explicit stream, because the frameworks of " + std::string(role_) +
                             " and " + std::string(role) + " have different current streams",
                 .got = "none",
                 .hint = "pass stream="});
  }
  handle_ = handle;
  role_ = role;
  is_known_ = true;
}

void bind_streams(nb::module_& module) {
  nb::class_<OwnStream>(module, "Stream", doc("Stream"))
      .def(
          "__init__",
          [](OwnStream* self, nb::handle device) {
            const Device where = to_device(device, "device");
            new (self) OwnStream{where, OwnedStream(where)};
          },
          nb::arg("device") = "cuda:0")
      .def_prop_ro(
          "device", [](const OwnStream& self) { return to_string(self.device); },
          doc("Stream.device"))
      .def("__cuda_stream__",
           [](const OwnStream& self) {
             return nb::make_tuple(0, reinterpret_cast<std::uintptr_t>(self.stream.get().handle()));
           })
      .def(
          "synchronize",
          [](const OwnStream& self) {
            const WithoutGil released;
            synchronize(self.stream);
          },
          doc("Stream.synchronize"));
  module.def(
      "resolve_stream",
      [](nb::handle stream, const PyGemmArguments* args) {
        void* handle = nullptr;
        if (args != nullptr) {
          handle = stream_of(*args, stream);
        } else if (!stream.is_none()) {
          handle = to_stream_handle(stream);
        }
        return reinterpret_cast<std::uintptr_t>(handle);
      },
      nb::arg("stream").none(), nb::arg("args").none() = nb::none(),
      "The handle of a stream of any framework; None: what is current for args' operands.");
  module.def(
      "is_capturing",
      [](nb::handle stream, nb::handle device) {
        const Device where = to_device(device, "device");
        return !where.is_cpu() && is_capturing(Stream::of(to_stream_handle(stream, where), where));
      },
      nb::arg("stream"), nb::arg("device"),
      "True if work put on a stream of a device is captured.");
  module.def(
      "call_beside_captures",
      [](nb::handle device, nb::callable work) -> nb::object {
        const BesideCaptures relaxed(to_device(device, "device"));
        return work();
      },
      nb::arg("device"), nb::arg("work"),
      "Calls a function that may reserve memory and load code although other streams are being "
      "captured.");
  module.def(
      "synchronize",
      [](nb::handle stream, nb::handle device) {
        const Device where = to_device(device, "device");
        void* const handle = stream.is_none() ? nullptr : to_stream_handle(stream, where);
        const WithoutGil released;
        synchronize(where.is_cpu() ? Stream::cpu() : Stream::of(handle, where));
      },
      nb::arg("stream") = nb::none(), nb::arg("device") = "cuda:0", doc("synchronize"));
}

}  // namespace gemmery::python
