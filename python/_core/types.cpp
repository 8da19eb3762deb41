// SPDX-License-Identifier: Apache-2.0
// Element types, devices and targets.
#include "bindings.hpp"
#include "docs.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <gemmery/device_facts.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/version.hpp>

namespace gemmery::python {
namespace {

// --- element types -------------------------------------------------------------------------------

// A cache of Python objects and their DType objects; the module owns it.
nb::handle known_dtypes;

// "float16" of torch.float16, numpy.dtype("float16"), numpy.float16, ml_dtypes.bfloat16, …
std::optional<std::string> find_type_name(nb::handle object, std::string_view role) {
  if (nb::isinstance<nb::str>(object)) return to_text(object, role);
  if (nb::isinstance<nb::type_object>(object))
    return nb::cast<std::string>(nb::str(object.attr("__name__")));
  if (nb::hasattr(object, "name") && nb::isinstance<nb::str>(object.attr("name")))
    return nb::cast<std::string>(object.attr("name"));
  std::string text = nb::cast<std::string>(nb::str(object));
  if (text.starts_with("torch.")) return text.substr(6);
  return std::nullopt;
}

[[noreturn]] void refuse_dtype(std::string_view role, const std::string& got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(role),
               .expected = "an element type that gemmery knows",
               .got = got,
               .hint = "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int8 uint8 "
                       "int32 uint32"});
}

// CUDA tile languages have classes for element types: Float16, BFloat16, Float8E4M3FN.
std::optional<DType> find_dtype(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "float8e4m3fn") lower = "float8_e4m3fn";
  if (lower == "float8e5m2") lower = "float8_e5m2";
  const std::optional<DType> found = parse_dtype(name);
  return found ? found : parse_dtype(lower);
}

DType read_dtype(nb::handle object, std::string_view role) {
  const std::optional<std::string> name = find_type_name(object, role);
  if (!name) {
    throw nb::type_error(
        (std::string(role) + ": expected an element type, got " + class_name(object)).c_str());
  }
  if (const std::optional<DType> found = find_dtype(*name)) return *found;
  refuse_dtype(role, "\"" + *name + "\"");
}

// A DType equals the spellings of its type in other packages, as NumPy's dtypes equal their names.
// Their hashes differ: keys of a dict are converted with gemmery.dtype first.
nb::object equals_dtype(nb::handle self, nb::handle other) {
  if (self.is(other)) return nb::bool_(true);
  if (other.type().is(self.type())) return nb::bool_(false);
  std::optional<std::string> name;
  try {
    name = find_type_name(other, "dtype");
  } catch (const std::exception&) {  // text that is not valid UTF-8, an attribute that raises
    PyErr_Clear();
  }
  const std::optional<DType> found = name ? find_dtype(*name) : std::nullopt;
  if (!found) return nb::borrow(Py_NotImplemented);
  return nb::bool_(*found == nb::cast<DType>(self));
}

// --- targets -------------------------------------------------------------------------------------

const DeviceInfo* find_here(Target target) {
  for (const Device device : devices()) {
    const DeviceInfo& info = device_info(device);
    if (info.target.architecture == target.architecture) return &info;
  }
  return nullptr;
}

// The facts of an architecture that no device of this machine has. Called with the GIL held; never
// destroyed.
const DeviceInfo& typical_info(Target target) {
  static auto* const infos = new std::map<int, DeviceInfo>;
  return infos->try_emplace(target.architecture, typical_device_info(target)).first->second;
}

const DeviceInfo* find_named(nb::handle cc) {
  if (!nb::isinstance<nb::str>(cc)) return nullptr;
  const std::string text = to_text(cc, "cc");
  const std::span<const std::string_view> known = known_device_names();
  return std::ranges::find(known, text) == known.end() ? nullptr : &device_info(text);
}

}  // namespace

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(nb::str(object.type().attr("__name__")));
}

std::string to_text(nb::handle object, std::string_view role) {
  if (!nb::isinstance<nb::str>(object)) {
    throw nb::type_error(
        (std::string(role) + ": expected a str, got " + class_name(object)).c_str());
  }
  Py_ssize_t bytes = 0;
  const char* const words = PyUnicode_AsUTF8AndSize(object.ptr(), &bytes);
  if (words != nullptr) return {words, static_cast<std::size_t>(bytes)};
  PyErr_Clear();
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(role),
               .expected = "text that UTF-8 can hold",
               .got = nb::cast<std::string>(nb::repr(object)),
               .hint = "it has lone surrogates, which stand for bytes that are no UTF-8"});
}

DType to_dtype(nb::handle object, std::string_view role) {
  nb::handle known = PyDict_GetItemWithError(known_dtypes.ptr(), object.ptr());
  if (!known.is_valid()) {
    PyErr_Clear();  // not hashable, hence not an element type; reported below
    const nb::object read = nb::cast(read_dtype(object, role));
    if (PyDict_SetItem(known_dtypes.ptr(), object.ptr(), read.ptr()) != 0) PyErr_Clear();
    return nb::cast<DType>(read);
  }
  return nb::cast<DType>(known);
}

nb::object from_dtype(DType dtype) { return nb::cast(dtype); }

Device to_device(nb::handle object, std::string_view role) {
  if (PyLong_Check(object.ptr())) return Device::cuda(nb::cast<int>(object));
  std::string text = to_text(nb::str(object), role);
  if (text == "cuda") text = "cuda:0";
  if (const std::optional<Device> device = parse_device(text)) return *device;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(role),
               .expected = "a device: \"cpu\", \"cuda:0\", \"emulated:h200\"",
               .got = "\"" + text + "\""});
}

// Which device was meant, and those that are known.
std::string device_hint(const std::string& text) {
  try {
    device_info(text);
  } catch (const Error& error) {
    return error.hint();
  }
  return {};
}

Target to_target(nb::handle cc) {
  if (const DeviceInfo* const named = find_named(cc)) return named->target;
  if (PyBool_Check(cc.ptr()) || !(PyLong_Check(cc.ptr()) || nb::isinstance<nb::str>(cc))) {
    throw nb::type_error(
        ("cc: expected an int such as 90 or a target such as \"sm_90a\", got " + class_name(cc))
            .c_str());
  }
  const std::string text = to_text(nb::str(cc), "cc");
  try {
    return parse_target(text);
  } catch (const Error& error) {
    const bool is_misspelled = error.hint().starts_with("did you mean ");
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "cc",
                 .expected = "a compute capability (90), a target (sm_90a) or a device (h200)",
                 .got = '"' + text + '"',
                 .hint = is_misspelled ? std::string(error.hint()) : device_hint(text)});
  }
}

const DeviceInfo& info_of_architecture(nb::handle cc) {
  if (const DeviceInfo* const named = find_named(cc)) return *named;
  const Target target = to_target(cc);
  if (target.is_cpu()) return device_info(Device::cpu());
  if (const DeviceInfo* const here = find_here(target)) return *here;
  return typical_info(target);
}

nb::tuple to_tuple(std::span<const std::int64_t> numbers) {
  nb::list list;
  for (const std::int64_t number : numbers) list.append(number);
  return nb::tuple(list);
}

void bind_types(nb::module_& module) {
  nb::dict dtypes_by_object;
  known_dtypes = dtypes_by_object;
  module.attr("_known_dtypes") = dtypes_by_object;

  auto dtypes = nb::enum_<DType>(module, "DType", doc("DType"));
  for (const DTypeFacts& facts : dtype_table) dtypes.value(facts.name.data(), facts.dtype);
  dtypes
      .def_prop_ro(
          "bits", [](DType dtype) { return bit_width(dtype); }, doc("DType.bits"))
      .def_prop_ro(
          "alias", [](DType dtype) { return alias(dtype); }, doc("DType.alias"))
      .def_prop_ro(
          "is_floating", [](DType dtype) { return is_floating(dtype); }, doc("DType.is_floating"))
      .def("__eq__", &equals_dtype, nb::arg("other").none())
      .def("__str__", [](DType dtype) { return name(dtype); })
      .def("__repr__", [](DType dtype) { return "gemmery." + std::string(name(dtype)); });

  module.def(
      "dtype", [](nb::handle of) { return to_dtype(of, "dtype"); }, nb::arg("of").none(),
      "The element type that an object stands for: a name, a torch, NumPy or ml_dtypes dtype.");

  nb::class_<DeviceInfo>(module, "DeviceInfo", doc("DeviceInfo"))
      .def("__repr__",
           [](const DeviceInfo& info) {
             return "DeviceInfo(" + info.name + ", " + to_string(info.target) + ", " +
                    std::to_string(info.multiprocessors) +
                    (info.target.is_cpu() ? " cores)" : " multiprocessors)");
           })
      .def_ro("name", &DeviceInfo::name, doc("DeviceInfo.name"))
      .def_prop_ro(
          "target", [](const DeviceInfo& info) { return to_string(info.target); },
          doc("DeviceInfo.target"))
      .def_prop_ro(
          "cc", [](const DeviceInfo& info) { return int{info.target.architecture}; },
          doc("DeviceInfo.cc"))
      .def_ro("multiprocessors", &DeviceInfo::multiprocessors, doc("DeviceInfo.multiprocessors"))
      .def_ro("shared_bytes_per_block", &DeviceInfo::shared_bytes_per_block,
              doc("DeviceInfo.shared_bytes_per_block"))
      .def_ro("l2_bytes", &DeviceInfo::l2_bytes, doc("DeviceInfo.l2_bytes"))
      .def_ro("memory_bytes", &DeviceInfo::memory_bytes, doc("DeviceInfo.memory_bytes"))
      .def_ro("clock_ghz", &DeviceInfo::clock_ghz, doc("DeviceInfo.clock_ghz"))
      .def_ro("bandwidth_bytes_per_second", &DeviceInfo::bandwidth_bytes_per_second,
              doc("DeviceInfo.bandwidth_bytes_per_second"))
      .def_prop_ro(
          "unconfirmed_facts", [](const DeviceInfo& info) { return unconfirmed_facts(info); },
          doc("DeviceInfo.unconfirmed_facts"));

  module.def(
      "devices",
      [] {
        std::vector<std::string> names;
        for (const Device device : devices()) names.push_back(to_string(device));
        return names;
      },
      doc("devices"));
  module.def(
      "device_info",
      [](nb::handle device) -> DeviceInfo {
        if (nb::isinstance<nb::str>(device)) {
          const std::string name = to_text(device, "device");
          if (name != "cuda") return device_info(name);
        }
        return device_info(to_device(device, "device"));
      },
      nb::arg("device"), doc("device_info"));
  module.def("known_device_names", [] {
    return std::vector<std::string>(known_device_names().begin(), known_device_names().end());
  });
  module.def(
      "parse_target", [](nb::handle cc) { return to_string(to_target(cc)); }, nb::arg("cc"),
      "\"sm_90a\" of \"90a\" or \"sm_90a\", \"sm_90\" of 90.");
  module.def(
      "version", [] { return std::string(version()); }, doc("version"));
}

}  // namespace gemmery::python
