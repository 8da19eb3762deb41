// SPDX-License-Identifier: Apache-2.0
// Reads tensors of any framework: by the framework's C exchange table if it has one, NumPy by the
// buffer protocol, others by DLPack's Python methods.
#include "tensors.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>

#include <gemmery/dlpack.hpp>

namespace gemmery::python {
namespace {

// --- what is known of a Python type --------------------------------------------------------------

enum class Producer : std::uint8_t {
  own,
  exchange_api,
  numpy,
  masked_numpy,
  torch,
  fake_torch,
  cupy,
  jax,
  jax_tracer,
  dlpack,
  none
};

struct TypeFacts {
  Producer producer = Producer::none;
  bool is_torch = false;
  const dlpack::ExchangeApi* exchange = nullptr;
};

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

// True if a type or one of its bases is `name` of a module that starts with `module`.
bool derives_from(nb::handle type, std::string_view module, std::string_view name) {
  for (const nb::handle base : nb::cast<nb::tuple>(type.attr("__mro__"))) {
    if (text_of(base.attr("__name__")) != name) continue;
    const nb::object where = nb::getattr(base, "__module__", nb::str(""));
    if (text_of(where).starts_with(module)) return true;
  }
  return false;
}

// A type's exchange table, in either form, if its major version is supported.
const dlpack::ExchangeApi* read_exchange_api(nb::handle type) {
  const nb::object offered = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  void* address = nullptr;
  if (PyLong_Check(offered.ptr())) {
    address = PyLong_AsVoidPtr(offered.ptr());
  } else if (PyCapsule_IsValid(offered.ptr(), dlpack::exchange_capsule_name)) {
    address = PyCapsule_GetPointer(offered.ptr(), dlpack::exchange_capsule_name);
  }
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  auto* table = static_cast<const dlpack::ExchangeApi*>(address);
  while (table != nullptr && table->version.major != 1) table = table->previous;
  const bool is_whole = table != nullptr && table->managed_from_object != nullptr;
  return is_whole ? table : nullptr;
}

TypeFacts inspect_type(nb::handle type) {
  TypeFacts facts;
  facts.is_torch = derives_from(type, "torch", "Tensor");
  facts.exchange = read_exchange_api(type);
  if (derives_from(type, "torch", "FakeTensor")) {
    facts.producer = Producer::fake_torch;
  } else if (derives_from(type, "numpy", "MaskedArray")) {
    facts.producer = Producer::masked_numpy;
  } else if (derives_from(type, "numpy", "ndarray")) {
    facts.producer = Producer::numpy;
  } else if (derives_from(type, "jax", "Array") || derives_from(type, "jaxlib", "ArrayImpl")) {
    facts.producer = Producer::jax;
  } else if (derives_from(type, "jax", "Tracer")) {
    facts.producer = Producer::jax_tracer;
  } else if (facts.exchange != nullptr) {
    facts.producer = Producer::exchange_api;
  } else if (facts.is_torch) {
    facts.producer = Producer::torch;
  } else if (derives_from(type, "cupy", "ndarray")) {
    facts.producer = Producer::cupy;
  } else if (nb::hasattr(type, "__dlpack__")) {
    facts.producer = Producer::dlpack;
  }
  return facts;
}

// Looked up once per type, which is then kept alive. Guarded by the GIL; never destroyed.
const TypeFacts& facts_of(nb::handle object) {
  static auto* const known = new std::unordered_map<PyObject*, TypeFacts>;
  const nb::handle type = object.type();
  const auto found = known->find(type.ptr());
  if (found != known->end()) return found->second;
  const TypeFacts facts = nb::isinstance<ImportedTensor>(object)
                              ? TypeFacts{.producer = Producer::own}
                              : inspect_type(type);
  type.inc_ref();
  return known->emplace(type.ptr(), facts).first->second;
}

// --- refusals ------------------------------------------------------------------------------------

[[noreturn]] void refuse_type(nb::handle object, std::string_view role) {
  const std::string text = std::string(role) +
                           ": expected a tensor (torch, numpy, cupy, jax or any with DLPack 1.x), "
                           "got " +
                           class_name(object);
  throw nb::type_error(text.c_str());
}

// A tracer represents arrays of future calls and has no memory.
[[noreturn]] void refuse_tracer(std::string_view role) {
  const std::string text =
      std::string(role) +
      ": expected an array with memory, got what jax traces a function with; call gemmery outside "
      "of jax.jit and jax.grad, or by jax.pure_callback";
  throw nb::type_error(text.c_str());
}

// Rethrows the error with the operand's name.
[[noreturn]] void rethrow_for(std::string_view role, const Error& error) {
  throw Error({.kind = error.kind(),
               .operand = std::string(role),
               .expected = error.expected(),
               .got = error.got(),
               .hint = error.hint(),
               .cause = error.cause()});
}

Tensor view_of(const dlpack::TensorLayout& layout, std::string_view role) {
  try {
    return from_dlpack(reinterpret_cast<const DLTensor&>(layout));
  } catch (const Error& error) {
    rethrow_for(role, error);
  }
}

// --- torch tensors without memory ----------------------------------------------------------------

// An address that is not in use, with the alignment of torch's allocator and apart from all others.
std::uintptr_t fake_address(std::uint64_t bytes) {
  static std::atomic<std::uint64_t> next{std::uint64_t{1} << 60};
  return next.fetch_add((bytes / 512 + 1) * 512);
}

std::vector<std::int64_t> read_integers(nb::handle sequence) {
  std::vector<std::int64_t> numbers;
  for (const nb::handle number : sequence) {
    // Symbolic sizes become numbers here, which torch notes as a guard.
    numbers.push_back(nb::cast<std::int64_t>(nb::int_(number)));
  }
  return numbers;
}

ImportedTensor import_fake(nb::handle object, std::string_view role) {
  ImportedTensor imported;
  imported.is_fake = true;
  imported.base = nb::borrow(object);
  const std::vector<std::int64_t> shape = read_integers(object.attr("shape"));
  const std::vector<std::int64_t> strides = read_integers(object.attr("stride")());
  const DType dtype = to_dtype(object.attr("dtype"), role);
  if (is_packed(dtype))
    refuse(role, "a tensor of whole bytes without memory", std::string(name(dtype)), "",
           ErrorKind::unsupported);
  const nb::object device = object.attr("device");
  imported.is_meta = text_of(device.attr("type")) == "meta";
  const auto offset = nb::cast<std::uint64_t>(nb::int_(object.attr("storage_offset")()));
  const Device where = imported.is_meta ? Device::cuda(0) : to_device(device, role);
  const Tensor shaped(nullptr, dtype, shape, strides, where);
  const ByteRange range =
      byte_range(shaped.with_data(reinterpret_cast<void*>(std::uintptr_t{1} << 60)));
  const std::uintptr_t address =
      fake_address(offset * byte_width(dtype) + (range.last - range.first));
  imported.view = shaped.with_data(reinterpret_cast<void*>(address + offset * byte_width(dtype)));
  return imported;
}

bool is_meta_tensor(nb::handle object) {
  return text_of(object.attr("device").attr("type")) == "meta";
}

// --- DLPack by C ---------------------------------------------------------------------------------

ImportedTensor import_by_exchange(nb::handle object, const TypeFacts& facts,
                                  std::string_view role) {
  dlpack::ManagedVersionedLayout* managed = nullptr;
  if (facts.exchange->managed_from_object(object.ptr(), &managed) != 0 || managed == nullptr) {
    // Clears the error first: while one is set, attribute lookups that are not cached fail.
    nb::python_error raised;
    if (facts.is_torch && is_meta_tensor(object)) return import_fake(object, role);
    throw raised;
  }
  ImportedTensor imported;
  imported.managed.reset(managed);
  if (managed->version.major != 1) {
    refuse(role, "DLPack of major version 1", "version " + std::to_string(managed->version.major),
           {}, ErrorKind::unsupported);
  }
  imported.view = view_of(managed->tensor, role);
  imported.base = nb::borrow(object);
  imported.exchange = facts.exchange;
  imported.is_read_only = (managed->flags & dlpack::flag_read_only) != 0;
  if (managed->tensor.device.type == dlpack::device_cuda && facts.exchange->current_stream)
    imported.stream_source = StreamSource::exchange_api;
  return imported;
}

// --- DLPack by Python ----------------------------------------------------------------------------

bool is_cuda(nb::handle object, std::string_view role) {
  if (!nb::hasattr(object, "__dlpack_device__")) return false;
  const nb::object device = object.attr("__dlpack_device__")();
  if (const std::optional<Pair> pair = find_pair(device))
    return pair->front() == dlpack::device_cuda;
  refuse(role, "a pair (device type, index) from __dlpack_device__",
         nb::cast<std::string>(nb::repr(device)));
}

// A capsule of `object.__dlpack__`, in DLPack 1.x if the producer supports it.
nb::object export_capsule(nb::handle object, nb::handle stream) {
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 1));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method(nb::arg("stream") = stream);  // written before DLPack 1.0
}

template <class Layout>
Layout* take_capsule(nb::handle capsule, const char* name, const char* used_name) {
  void* const content = PyCapsule_GetPointer(capsule.ptr(), name);
  if (content == nullptr || PyCapsule_SetName(capsule.ptr(), used_name) != 0)
    nb::raise_python_error();
  return static_cast<Layout*>(content);
}

ImportedTensor import_capsule(nb::handle capsule, std::string_view role) {
  ImportedTensor imported;
  try {
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
      auto* const managed = take_capsule<dlpack::ManagedVersionedLayout>(
          capsule, "dltensor_versioned", "used_dltensor_versioned");
      // With another major version only the deleter may be used; the library then refuses the
      // tensor.
      const bool is_known = managed->version.major == 1;
      imported.is_read_only = is_known && (managed->flags & dlpack::flag_read_only) != 0;
      auto owner =
          std::make_shared<DlpackTensor>(reinterpret_cast<DLManagedTensorVersioned*>(managed));
      imported.view = owner->tensor();
      imported.owner = std::move(owner);
      return imported;
    }
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
      auto* const managed =
          take_capsule<dlpack::ManagedLayout>(capsule, "dltensor", "used_dltensor");
      auto owner = std::make_shared<DlpackTensor>(reinterpret_cast<DLManagedTensor*>(managed));
      imported.view = owner->tensor();
      imported.owner = std::move(owner);
      return imported;
    }
  } catch (const Error& error) {
    rethrow_for(role, error);
  }
  refuse(role, "a DLPack capsule from __dlpack__", class_name(capsule));
}

ImportedTensor import_by_dlpack(nb::handle object, nb::handle stream, std::string_view role) {
  ImportedTensor imported = import_capsule(export_capsule(object, stream), role);
  imported.base = nb::borrow(object);
  return imported;
}

// For torch without the exchange table. No synchronisation: its current stream is read when needed.
ImportedTensor import_torch(nb::handle object, std::string_view role) {
  if (is_meta_tensor(object)) return import_fake(object, role);
  const bool on_cuda = nb::cast<bool>(object.attr("is_cuda"));
  ImportedTensor imported = import_by_dlpack(object.attr("detach")(),
                                             on_cuda ? nb::object(nb::int_(-1)) : nb::none(), role);
  imported.base = nb::borrow(object);
  if (on_cuda) imported.stream_source = StreamSource::torch;
  return imported;
}

ImportedTensor import_cupy(nb::handle object, std::string_view role) {
  ImportedTensor imported = import_by_dlpack(object, nb::int_(-1), role);
  imported.stream_source = StreamSource::cupy;
  return imported;
}

// JAX has no current stream, so this waits for the computation of the array, and runs wait for
// their end.
ImportedTensor import_jax(nb::handle object, std::string_view role) {
  object.attr("block_until_ready")();
  ImportedTensor imported = import_by_dlpack(object, nb::none(), role);
  imported.is_read_only = true;
  imported.is_reused_at_once = !imported.view.device().is_cpu();
  return imported;
}

// On CUDA the producer makes the legacy default stream wait for it, so that stream is used.
ImportedTensor import_other(nb::handle object, std::string_view role) {
  const bool on_cuda = is_cuda(object, role);
  return import_by_dlpack(object, on_cuda ? nb::object(nb::int_(1)) : nb::none(), role);
}

// --- NumPy ---------------------------------------------------------------------------------------

HeldBuffer try_buffer(nb::handle object) {
  auto* const buffer = new Py_buffer{};
  if (PyObject_GetBuffer(object.ptr(), buffer, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    delete buffer;
    return nullptr;
  }
  return HeldBuffer(buffer);
}

std::optional<DType> dtype_of_format(std::string_view format, Py_ssize_t width) {
  if (!format.empty() && (format.front() == '<' || format.front() == '=' || format.front() == '@'))
    format.remove_prefix(1);
  if (format.size() != 1) return std::nullopt;
  switch (format.front()) {
    case 'd':
      return DType::float64;
    case 'f':
      return DType::float32;
    case 'e':
      return DType::float16;
    case 'b':
      return DType::int8;
    case 'B':
      return DType::uint8;
    case 'i':
    case 'l':
      return width == 4 ? std::optional(DType::int32) : std::nullopt;
    case 'I':
    case 'L':
      return width == 4 ? std::optional(DType::uint32) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// Types of ml_dtypes have no format letter: their bytes are read, and the name gives the type.
struct NumpyBytes {
  HeldBuffer buffer;
  DType dtype;
};

NumpyBytes read_numpy(nb::handle object, std::string_view role) {
  if (HeldBuffer buffer = try_buffer(object)) {
    const char* const format = buffer->format == nullptr ? "B" : buffer->format;
    if (const std::optional<DType> dtype = dtype_of_format(format, buffer->itemsize))
      return {std::move(buffer), *dtype};
    refuse(role, "elements of a type that gemmery knows, in this machine's byte order",
           "numpy." + text_of(object.attr("dtype").attr("str")),
           "convert it: array.astype(\"float32\")", ErrorKind::unsupported);
  }
  PyErr_Clear();
  const std::string name = text_of(object.attr("dtype").attr("name"));
  const std::optional<DType> dtype = parse_dtype(name);
  const auto width = nb::cast<std::size_t>(object.attr("dtype").attr("itemsize"));
  if (!dtype || is_packed(*dtype) || width != byte_width(*dtype)) {
    const bool has_padding = dtype && is_packed(*dtype);
    refuse(role, "elements of a type that gemmery knows",
           "numpy dtype " + name + (has_padding ? ", a byte for each element" : ""),
           has_padding ? "pack the codes into bytes and view them as gemmery.Tensor"
                       : "convert it: array.astype(\"float32\")",
           ErrorKind::unsupported);
  }
  HeldBuffer bytes = try_buffer(object.attr("view")(width == 1 ? "u1" : "u2"));
  if (!bytes) nb::raise_python_error();
  return {std::move(bytes), *dtype};
}

ImportedTensor import_numpy(nb::handle object, std::string_view role) {
  NumpyBytes read = read_numpy(object, role);
  const Py_buffer& buffer = *read.buffer;
  if (buffer.ndim > Tensor::max_rank) {
    refuse(role, "a rank from 0 to 5", "rank " + std::to_string(buffer.ndim));
  }
  const auto rank = static_cast<std::size_t>(buffer.ndim);
  std::array<std::int64_t, Tensor::max_rank> shape{};
  std::array<std::int64_t, Tensor::max_rank> strides{};
  bool is_empty = false;
  for (std::size_t d = 0; d < rank; ++d) {
    shape[d] = buffer.shape[d];
    is_empty = is_empty || shape[d] == 0;
    strides[d] = buffer.strides[d] / buffer.itemsize;
    if (buffer.shape[d] > 1 && buffer.strides[d] % buffer.itemsize != 0) {
      refuse(role, "strides of whole elements",
             std::to_string(buffer.strides[d]) + " bytes in dimension " + std::to_string(d),
             "copy it: numpy.ascontiguousarray(array)");
    }
  }
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.buf);
  if (!is_empty && address % static_cast<std::uintptr_t>(buffer.itemsize) != 0) {
    refuse(role, "elements at multiples of their size", "a misaligned array",
           "copy it: numpy.ascontiguousarray(array)");
  }
  ImportedTensor imported;
  imported.view = Tensor(buffer.buf, read.dtype, std::span<const std::int64_t>(shape.data(), rank),
                         std::span<const std::int64_t>(strides.data(), rank));
  imported.is_read_only = buffer.readonly != 0;
  imported.buffer = std::move(read.buffer);
  imported.base = nb::borrow(object);
  return imported;
}

// A masked array is refused, since its mask would be ignored.
[[noreturn]] void refuse_masked(std::string_view role) {
  refuse(role, "an array without a mask", "a numpy.ma.MaskedArray",
         "array.filled(0) gives what is masked a value, array.data leaves the mask away",
         ErrorKind::unsupported);
}

// --- our own -------------------------------------------------------------------------------------

// The Python object keeps the memory alive.
ImportedTensor import_own(nb::handle object) {
  const auto& own = nb::cast<const ImportedTensor&>(object);
  ImportedTensor imported;
  imported.view = own.view;
  imported.base = nb::borrow(object);
  imported.exchange = own.exchange;
  imported.stream_source = own.stream_source;
  imported.is_read_only = own.is_read_only;
  imported.is_reused_at_once = own.is_reused_at_once;
  imported.is_fake = own.is_fake;
  imported.is_meta = own.is_meta;
  return imported;
}

}  // namespace

ImportedTensor import_tensor(nb::handle object, std::string_view role) {
  const TypeFacts& facts = facts_of(object);
  switch (facts.producer) {
    case Producer::own:
      return import_own(object);
    case Producer::exchange_api:
      return import_by_exchange(object, facts, role);
    case Producer::numpy:
      return import_numpy(object, role);
    case Producer::masked_numpy:
      refuse_masked(role);
    case Producer::torch:
      return import_torch(object, role);
    case Producer::fake_torch:
      return import_fake(object, role);
    case Producer::cupy:
      return import_cupy(object, role);
    case Producer::jax:
      return import_jax(object, role);
    case Producer::jax_tracer:
      refuse_tracer(role);
    case Producer::dlpack:
      return import_other(object, role);
    case Producer::none:
      break;
  }
  refuse_type(object, role);
}

bool is_tensor_like(nb::handle object) { return facts_of(object).producer != Producer::none; }

double import_number(nb::handle object, std::string_view role) {
  const double number = PyFloat_AsDouble(object.ptr());
  if (number != -1 || PyErr_Occurred() == nullptr) return number;
  const bool is_too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
  PyErr_Clear();
  throw nb::type_error((std::string(role) + ": expected a tensor or a number" +
                        (is_too_large ? " that float64 holds, got a larger " : ", got ") +
                        class_name(object))
                           .c_str());
}

}  // namespace gemmery::python
