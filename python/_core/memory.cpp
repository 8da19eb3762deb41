// SPDX-License-Identifier: Apache-2.0
// Memory of the library, copies between devices, and the Python class Tensor.
#include "docs.hpp"
#include "tensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include <gemmery/buffer.hpp>

namespace gemmery::python {
namespace {

Stream default_stream(Device device) {
  return device.is_cpu() ? Stream::cpu() : Stream::of(nullptr, device);
}

// Elements that share bytes are copied with all others of their memory.
std::size_t width_of(const Tensor& tensor) {
  if (!is_packed(tensor.dtype())) return byte_width(tensor.dtype());
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "dtype",
               .expected = "a type of whole bytes, or dense tensors of equal strides",
               .got = std::string(name(tensor.dtype()))});
}

// --- copies --------------------------------------------------------------------------------------

// True if the elements fill the memory from `data` on without gaps, in any order.
bool is_dense(const Tensor& tensor) {
  if (tensor.has_pointers()) return false;
  std::int64_t expected = 1;
  int counted = 0;  // dimensions that are contiguous so far, and those of extent 1
  for (int d = 0; d < tensor.rank(); ++d) counted += tensor.extent(d) == 1 ? 1 : 0;
  while (counted < tensor.rank()) {
    int next = 0;
    while (next < tensor.rank() && (tensor.extent(next) == 1 || tensor.stride(next) != expected)) {
      ++next;
    }
    if (next == tensor.rank()) return false;
    expected *= tensor.extent(next);
    ++counted;
  }
  return true;
}

bool has_same_strides(const Tensor& a, const Tensor& b) {
  for (int d = 0; d < a.rank(); ++d) {
    if (a.extent(d) > 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

void copy_on_host(const Tensor& destination, const Tensor& source, int dimension, std::byte* to,
                  const std::byte* from, std::size_t width) {
  if (dimension == source.rank()) {
    std::memcpy(to, from, width);
    return;
  }
  const auto bytes = static_cast<std::int64_t>(width);
  for (std::int64_t at = 0; at < source.extent(dimension); ++at) {
    copy_on_host(destination, source, dimension + 1,
                 to + at * destination.stride(dimension) * bytes,
                 from + at * source.stride(dimension) * bytes, width);
  }
}

// The memory of a tensor on a device, copied to the host under the same strides.
struct HostImage {
  std::vector<std::byte> bytes;
  Tensor view;
};

HostImage image_of(const Tensor& tensor, void* handle) {
  const ByteRange range = byte_range(tensor);
  HostImage image{std::vector<std::byte>(range.last - range.first), {}};
  copy(image.bytes.data(), Device::cpu(), reinterpret_cast<const void*>(range.first),
       tensor.device(), image.bytes.size(), Stream::of(handle, tensor.device()));
  synchronize(Stream::of(handle, tensor.device()));
  const auto offset = reinterpret_cast<std::uintptr_t>(tensor.data()) - range.first;
  image.view = Tensor(image.bytes.data() + offset, tensor.dtype(), tensor.shape(), tensor.strides(),
                      Device::cpu());
  return image;
}

void copy_raw(const Tensor& destination, const Tensor& source, void* handle) {
  const auto bytes =
      static_cast<std::size_t>(storage_bytes(source.dtype(), source.element_count()));
  const Device gpu = destination.device().is_cpu() ? source.device() : destination.device();
  if (gpu.is_cpu()) {
    std::memcpy(destination.data(), source.data(), bytes);
    return;
  }
  copy(destination.data(), destination.device(), source.data(), source.device(), bytes,
       Stream::of(handle, gpu));
  synchronize(Stream::of(handle, gpu));
}

void copy_strided(const Tensor& destination, const Tensor& source, void* handle) {
  const std::size_t width = width_of(source);
  const auto copy_host = [&](const Tensor& to, const Tensor& from) {
    copy_on_host(to, from, 0, static_cast<std::byte*>(to.data()),
                 static_cast<const std::byte*>(from.data()), width);
  };
  if (!source.device().is_cpu()) {
    const HostImage image = image_of(source, handle);
    copy_elements(destination, image.view, handle);
    return;
  }
  if (destination.device().is_cpu()) {
    copy_host(destination, source);
    return;
  }
  HostImage image = image_of(destination, handle);  // gaps between elements keep their contents
  copy_host(image.view, source);
  const ByteRange range = byte_range(destination);
  copy(reinterpret_cast<void*>(range.first), destination.device(), image.bytes.data(),
       Device::cpu(), image.bytes.size(), Stream::of(handle, destination.device()));
  synchronize(Stream::of(handle, destination.device()));
}

[[noreturn]] void refuse_copy(const Tensor& destination, const Tensor& source) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "source",
               .expected = "a tensor like " + to_string(destination),
               .got = to_string(source)});
}

[[noreturn]] void refuse_pointers() {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "tensor",
               .expected = "elements in one piece of memory",
               .got = "a batch by pointers",
               .hint = "copy its matrices one by one"});
}

}  // namespace

ImportedTensor allocate(std::span<const std::int64_t> shape, DType dtype, Device device,
                        std::span<const std::int64_t> strides) {
  // Checks the shape before its extents are multiplied.
  const Tensor shaped(nullptr, dtype, shape, device);
  const auto bytes = static_cast<std::size_t>(storage_bytes(dtype, shaped.element_count()));
  auto buffer = std::make_shared<Buffer>(std::max<std::size_t>(bytes, 1), default_stream(device));
  ImportedTensor tensor;
  tensor.view = strides.empty() ? shaped.with_data(buffer->data())
                                : Tensor(buffer->data(), dtype, shape, strides, device);
  tensor.base = nb::none();
  tensor.owner = std::move(buffer);
  return tensor;
}

void copy_elements(const Tensor& destination, const Tensor& source, void* handle) {
  const bool has_same_shape = std::equal(destination.shape().begin(), destination.shape().end(),
                                         source.shape().begin(), source.shape().end());
  if (!has_same_shape || destination.dtype() != source.dtype()) refuse_copy(destination, source);
  if (source.has_pointers() || destination.has_pointers()) refuse_pointers();
  if (source.element_count() == 0) return;
  if (is_dense(source) && is_dense(destination) && has_same_strides(destination, source)) {
    copy_raw(destination, source, handle);
  } else {
    copy_strided(destination, source, handle);
  }
}

bool is_packed_in_any_order(const Tensor& tensor) { return is_dense(tensor); }

// --- Tensor --------------------------------------------------------------------------------------

namespace {

ImportedTensor from_address(std::uint64_t data, const std::vector<std::int64_t>& shape,
                            nb::handle dtype, std::optional<std::vector<std::int64_t>> strides,
                            nb::handle device, nb::handle owner) {
  ImportedTensor tensor;
  const void* const address = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(data));
  const DType type = to_dtype(dtype, "dtype");
  const Device where = to_device(device, "device");
  tensor.view =
      strides ? Tensor(address, type, shape, *strides, where) : Tensor(address, type, shape, where);
  tensor.base = nb::borrow(owner);
  return tensor;
}

void copy_into(ImportedTensor& destination, nb::handle source, nb::handle stream) {
  const ImportedTensor from = import_tensor(source, "source");
  if (destination.is_fake || from.is_fake) refuse_copy(destination.view, from.view);
  const Device gpu =
      destination.view.device().is_cpu() ? from.view.device() : destination.view.device();
  CurrentStream current;
  current.consider(from, "source");
  current.consider(destination, "destination");
  void* const handle = stream.is_none() ? current.handle() : to_stream_handle(stream, gpu);
  const WithoutGil released;
  copy_elements(destination.view, from.view, handle);
}

int visit_tensor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  return nb::inst_ptr<ImportedTensor>(self)->visit_references(visit, arg);
}

int clear_tensor(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::inst_ptr<ImportedTensor>(self)->clear_references();
  return 0;
}

PyType_Slot tensor_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_tensor)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_tensor)},
                              {0, nullptr}};

}  // namespace

void bind_tensors(nb::module_& module) {
  nb::class_<ImportedTensor>(module, "Tensor", nb::is_final(), nb::type_slots(tensor_slots),
                             doc("Tensor"))
      .def(
          "__init__",
          [](ImportedTensor* self, std::uint64_t data, const std::vector<std::int64_t>& shape,
             nb::handle dtype, std::optional<std::vector<std::int64_t>> strides, nb::handle device,
             nb::handle owner) {
            new (self)
                ImportedTensor(from_address(data, shape, dtype, std::move(strides), device, owner));
          },
          nb::arg("data"), nb::arg("shape"), nb::arg("dtype"), nb::arg("strides") = nb::none(),
          nb::arg("device") = "cuda:0", nb::arg("owner") = nb::none())
      .def_prop_ro(
          "data_ptr",
          [](const ImportedTensor& tensor) {
            return reinterpret_cast<std::uintptr_t>(tensor.view.data());
          },
          doc("Tensor.data_ptr"))
      .def_prop_ro(
          "shape", [](const ImportedTensor& t) { return to_tuple(t.view.shape()); },
          doc("Tensor.shape"))
      .def_prop_ro(
          "strides",
          [](const ImportedTensor& t) {
            return to_tuple(t.view.strides().subspan(t.view.has_pointers() ? 1 : 0));
          },
          doc("Tensor.strides"))
      .def_prop_ro(
          "has_pointers", [](const ImportedTensor& t) { return t.view.has_pointers(); },
          doc("Tensor.has_pointers"))
      .def_prop_ro(
          "dtype", [](const ImportedTensor& t) { return t.view.dtype(); }, doc("Tensor.dtype"))
      .def_prop_ro(
          "device",
          [](const ImportedTensor& t) {
            return t.is_meta ? std::string("meta") : to_string(t.view.device());
          },
          doc("Tensor.device"))
      .def_ro("is_fake", &ImportedTensor::is_fake, doc("Tensor.is_fake"))
      .def_ro("is_read_only", &ImportedTensor::is_read_only, doc("Tensor.is_read_only"))
      .def_prop_ro(
          "base", [](const ImportedTensor& t) { return t.base; }, doc("Tensor.base"))
      .def("copy_from", &copy_into, nb::arg("source"), nb::arg("stream") = nb::none(),
           doc("Tensor.copy_from"))
      .def("__dlpack__", &export_tensor, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def("__dlpack_device__",
           [](const ImportedTensor& tensor) {
             const dlpack::DeviceCode device = dlpack_device(tensor);
             return nb::make_tuple(static_cast<int>(device.type), device.index);
           })
      .def("__repr__", [](const ImportedTensor& tensor) {
        return "gemmery.Tensor(" + to_string(tensor.view) + ")";
      });
  module.def(
      "as_tensor",
      [](nb::handle of) -> nb::object {
        if (nb::isinstance<ImportedTensor>(of)) return nb::borrow(of);
        return nb::cast(import_tensor(of, "tensor"));
      },
      nb::arg("of"), doc("as_tensor"));
  module.def(
      "empty",
      [](const std::vector<std::int64_t>& shape, nb::handle dtype, nb::handle device) {
        return allocate(shape, to_dtype(dtype, "dtype"), to_device(device, "device"));
      },
      nb::arg("shape"), nb::arg("dtype"), nb::arg("device") = "cpu", doc("empty"));
}

}  // namespace gemmery::python
