// SPDX-License-Identifier: Apache-2.0
// Exports Tensor to other libraries by DLPack capsules, in the version that the consumer
// understands.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <gemmery/buffer.hpp>

#include "tensors.hpp"

namespace gemmery::python {
namespace {

// --- capsules ------------------------------------------------------------------------------------

constexpr bool has_version(const dlpack::ManagedVersionedLayout*) { return true; }
constexpr bool has_version(const dlpack::ManagedLayout*) { return false; }

// Layout: that of DLPack 1.x, or the one before it, which has no version and no flags.
template <class Layout>
constexpr bool is_versioned = has_version(static_cast<const Layout*>(nullptr));

template <class Layout>
constexpr const char* capsule_name = is_versioned<Layout> ? "dltensor_versioned" : "dltensor";

// An exported tensor until its consumer releases it. It keeps the Python object alive that owns the
// memory.
template <class Layout>
struct Exported {
  Layout managed;
  std::array<std::int64_t, Tensor::max_rank> shape;
  std::array<std::int64_t, Tensor::max_rank> strides;
  PyObject* owner;
};

// May be called on any thread, and after the interpreter has exited; then it must not use Python.
template <class Layout>
void delete_exported(Layout* managed) {
  auto* const exported = static_cast<Exported<Layout>*>(managed->context);
  if (Py_IsInitialized() != 0) {
    const nb::gil_scoped_acquire gil;
    Py_DECREF(exported->owner);
  }
  delete exported;
}

template <class Layout>
void delete_capsule(PyObject* capsule) {
  const char* const name = capsule_name<Layout>;
  if (!PyCapsule_IsValid(capsule, name)) return;  // a consumer took it
  auto* const managed = static_cast<Layout*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class Layout>
void fill_layout(Exported<Layout>& exported, const ImportedTensor& tensor) {
  const Tensor& view = tensor.view;
  const auto rank = static_cast<std::size_t>(view.rank());
  std::copy_n(view.shape().begin(), rank, exported.shape.begin());
  std::copy_n(view.strides().begin(), rank, exported.strides.begin());
  const DTypeFacts& type = facts(view.dtype());
  exported.managed.tensor = {.data = view.data(),
                             .device = dlpack_device(tensor),
                             .rank = view.rank(),
                             .dtype = {.code = static_cast<std::uint8_t>(type.dlpack_code),
                                       .bits = static_cast<std::uint8_t>(type.bits),
                                       .lanes = 1},
                             .shape = exported.shape.data(),
                             .strides = exported.strides.data(),
                             .byte_offset = 0};
}

template <class Layout>
nb::object make_capsule(nb::handle owner, [[maybe_unused]] std::uint64_t flags) {
  auto filled = std::make_unique<Exported<Layout>>();
  fill_layout(*filled, nb::cast<const ImportedTensor&>(owner));
  Exported<Layout>* const exported = filled.release();  // owned by the capsule from here on
  exported->owner = owner.inc_ref().ptr();
  exported->managed.context = exported;
  exported->managed.deleter = delete_exported<Layout>;
  if constexpr (is_versioned<Layout>) {
    exported->managed.version = {1, 1};
    exported->managed.flags = flags;
  }
  PyObject* const capsule =
      PyCapsule_New(&exported->managed, capsule_name<Layout>, delete_capsule<Layout>);
  if (capsule == nullptr) {
    delete_exported(&exported->managed);
    nb::raise_python_error();
  }
  return nb::steal(capsule);
}

// --- requests of the consumer --------------------------------------------------------------------

Pair read_pair(nb::handle object, const std::string& name, const std::string& meaning) {
  if (const std::optional<Pair> pair = find_pair(object)) return *pair;
  throw nb::type_error((name + ": expected None or a pair (" + meaning + "), got " +
                        nb::cast<std::string>(nb::repr(object)))
                           .c_str());
}

// A consumer that passes no version predates versions.
bool is_version_1_understood(nb::handle max_version) {
  return !max_version.is_none() && read_pair(max_version, "max_version", "major, minor")[0] >= 1;
}

// The requested device: copies are made to the CPU only.
Device target_of(const ImportedTensor& tensor, nb::handle dl_device) {
  const Device own = tensor.view.device();
  if (dl_device.is_none()) return own;
  const Pair asked = read_pair(dl_device, "dl_device", "device type, index");
  const dlpack::DeviceCode code = dlpack_device(tensor);
  if (asked == Pair{code.type, code.index}) return own;
  if (asked == Pair{dlpack::device_cpu, 0}) return Device::cpu();
  throw nb::buffer_error(("a tensor on " + to_string(own) +
                          ": expected its own device or the CPU, (1, 0), got dl_device=(" +
                          std::to_string(asked[0]) + ", " + std::to_string(asked[1]) + ")")
                             .c_str());
}

bool must_copy(const ImportedTensor& tensor, Device target, nb::handle copy) {
  const bool is_elsewhere = target != tensor.view.device();
  if (copy.is_none()) return is_elsewhere;
  const int is_wanted = PyObject_IsTrue(copy.ptr());
  if (is_wanted < 0) nb::raise_python_error();
  if (is_elsewhere && is_wanted == 0) {
    throw nb::buffer_error(
        ("a tensor on " + to_string(tensor.view.device()) + " is not on the CPU without a copy")
            .c_str());
  }
  return is_wanted != 0;
}

// --- the exported tensor -------------------------------------------------------------------------

nb::object copy_to(Device target, const Tensor& source) {
  ImportedTensor made = allocate(source.shape(), source.dtype(), target);
  {
    const WithoutGil released;
    copy_elements(made.view, source, nullptr);
  }
  return nb::cast(std::move(made));
}

// The consumer's stream must wait for the legacy default stream, on which a Tensor's memory is used
// by default. That stream is synchronised, since the consumer's cannot wait for its handle.
void wait_for_default_stream(Device device, nb::handle stream) {
  if (device.is_cpu()) return;
  if (PyLong_Check(stream.ptr()) && nb::cast<long>(stream) == -1) return;  // no order is wanted
  const WithoutGil released;
  synchronize(Stream::of(nullptr, device));
}

}  // namespace

std::optional<Pair> find_pair(nb::handle object) {
  if (!nb::isinstance<nb::tuple>(object) && !nb::isinstance<nb::list>(object)) return std::nullopt;
  if (nb::len(object) != 2) return std::nullopt;
  Pair pair{};
  for (std::size_t i = 0; i < pair.size(); ++i) {
    const nb::object number = nb::steal(PyNumber_Index(nb::object(object[i]).ptr()));
    if (number.is_valid()) pair.at(i) = PyLong_AsLong(number.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return std::nullopt;
    }
  }
  return pair;
}

dlpack::DeviceCode dlpack_device(const ImportedTensor& tensor) {
  if (tensor.view.has_pointers())
    throw nb::buffer_error("a batch by pointers has no memory that other libraries know");
  const Device device = tensor.view.device();
  if (device.type == DeviceType::cpu) return {dlpack::device_cpu, 0};
  if (device.type == DeviceType::cuda) return {dlpack::device_cuda, device.index};
  throw nb::buffer_error(("a tensor on " + to_string(device) +
                          " is in no memory that other libraries know: copy it to the CPU first")
                             .c_str());
}

nb::object export_tensor(nb::handle self, nb::handle stream, nb::handle max_version,
                         nb::handle dl_device, nb::handle copy) {
  const auto& tensor = nb::cast<const ImportedTensor&>(self);
  if (tensor.is_fake) throw nb::buffer_error("a tensor without memory");
  dlpack_device(tensor);
  const bool is_versioned_capsule = is_version_1_understood(max_version);
  const Device target = target_of(tensor, dl_device);
  if (must_copy(tensor, target, copy)) {
    const nb::object copied = copy_to(target, tensor.view);
    return is_versioned_capsule
               ? make_capsule<dlpack::ManagedVersionedLayout>(copied, dlpack::flag_copied)
               : make_capsule<dlpack::ManagedLayout>(copied, 0);
  }
  if (tensor.is_read_only && !is_versioned_capsule) {
    throw nb::buffer_error(
        "a tensor that may not be written, which DLPack before 1.0 cannot say: "
        "ask with max_version=(1, 0), or for a copy");
  }
  wait_for_default_stream(tensor.view.device(), stream);
  if (!is_versioned_capsule) return make_capsule<dlpack::ManagedLayout>(self, 0);
  return make_capsule<dlpack::ManagedVersionedLayout>(
      self, tensor.is_read_only ? dlpack::flag_read_only : 0);
}

}  // namespace gemmery::python
