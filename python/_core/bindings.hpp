// SPDX-License-Identifier: Apache-2.0
// Declarations that the files of the native module share: its parts, and small conversions between
// Python and C++.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gemmery/device.hpp>
#include <gemmery/dtype.hpp>
#include <gemmery/error.hpp>
#include <gemmery/target.hpp>

namespace gemmery::python {

namespace nb = nanobind;

// --- the parts of the module, in the order in which they are bound -------------------------------

void bind_errors(nb::module_& module);
void bind_types(nb::module_& module);
void bind_tensors(nb::module_& module);
void bind_pointer_arrays(nb::module_& module);
void bind_streams(nb::module_& module);
void bind_epilogues(nb::module_& module);
void bind_arguments(nb::module_& module);
void bind_scales(nb::module_& module);
void bind_checkpoints(nb::module_& module);
void bind_grouped(nb::module_& module);
void bind_convolution(nb::module_& module);
void bind_artifacts(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_described_operations(nb::module_& module);
void bind_discovery(nb::module_& module);
void bind_checks(nb::module_& module);
void bind_emulation(nb::module_& module);
void bind_tuning(nb::module_& module);
void bind_cache(nb::module_& module);
void bind_log(nb::module_& module);
void bind_user_kernels(nb::module_& module);
void bind_program(nb::module_& module);
// The last one: it changes what is bound.
void bind_call_errors(nb::module_& module);

// Throws Error.
[[noreturn]] void refuse(std::string_view operand, std::string expected, std::string got,
                         std::string hint = {}, ErrorKind kind = ErrorKind::invalid_argument);

// The value of a word; `expected` says which words there are if `parse` knows it not.
template <class Value>
Value read_word(std::string_view word, std::optional<Value> (*parse)(std::string_view) noexcept,
                std::string_view name, std::string expected) {
  if (const std::optional<Value> value = parse(word)) return *value;
  refuse(name, std::move(expected), "\"" + std::string(word) + "\"");
}

// --- conversions ---------------------------------------------------------------------------------

// The element type for a Python object: DType, a name, a torch, NumPy or ml_dtypes dtype. Throws
// Error (invalid_argument) for an unknown name, TypeError for other objects.
DType to_dtype(nb::handle object, std::string_view role);
nb::object from_dtype(DType dtype);

// "cuda:1", 1, torch.device("cuda", 1), …
Device to_device(nb::handle object, std::string_view role);

// 90, "90a", "sm_90a".
Target to_target(nb::handle cc);

// The facts of the architecture that `cc` names, from this machine's devices or the table of known
// ones; also those of a device by name ("h200"). Throws Error (unavailable) for unknown ones.
const DeviceInfo& info_of_architecture(nb::handle cc);

// The Python exception for an error, of a class in gemmery.errors. Throws nb::python_error if a
// signal handler raises meanwhile.
nb::object make_exception(const Error& error);

// Makes `error` the __context__ of an exception that is raised in its place, so that a traceback
// shows both. Does nothing if `error` is null or not an Error.
void add_context(const nb::python_error& raised, const std::exception_ptr& error) noexcept;

// An exception of a user's function that ends the current call and is not an error:
// KeyboardInterrupt, SystemExit and others that do not derive from Exception. It leaves the call
// unchanged. Copied and destroyed with or without the GIL.
struct PythonInterruption : Interruption {
  // Requires the GIL.
  explicit PythonInterruption(nb::handle raised) : raised_(raised.inc_ref().ptr(), let_go) {}
  nb::handle exception() const { return raised_.get(); }

 private:
  static void let_go(PyObject* raised) {
    const nb::gil_scoped_acquire gil;
    Py_DECREF(raised);
  }
  std::shared_ptr<PyObject> raised_;
};

nb::tuple to_tuple(std::span<const std::int64_t> numbers);

// The name of an object's class.
std::string class_name(nb::handle object);

// The UTF-8 of a str. Throws TypeError for other objects, Error (invalid_argument) for a str with
// lone surrogates, which os.fsdecode may produce.
std::string to_text(nb::handle object, std::string_view role);

// The C++ object in a Python object. Throws TypeError for another class, or if __init__ has not
// run.
template <class Held>
const Held& cast_for(nb::handle object, std::string_view parameter, std::string_view expected) {
  if (nb::isinstance<Held>(object) && nb::inst_ready(object)) return *nb::inst_ptr<Held>(object);
  const std::string text = std::string(parameter) + ": expected " + std::string(expected) +
                           ", got " + class_name(object);
  throw nb::type_error(text.c_str());
}

// --- calls that take long ------------------------------------------------------------------------

// While it exists, other Python threads may run.
using WithoutGil = nb::gil_scoped_release;

// Calls `ask` without the GIL and returns its result.
template <class Ask>
auto without_gil(const Ask& ask) {
  const WithoutGil released;
  return ask();
}

// Runs `work` so that Ctrl-C ends it. If called in Python's main thread, `work` runs in a separate
// thread, and a stop is requested as soon as a signal handler raises; compilations and launches on
// emulated devices end then. The handler's exception is thrown when `work` has ended; the error of
// `work` is its context. Called with the GIL, which is released meanwhile.
void run_interruptibly(const std::function<void(std::stop_token)>& work);

// The same if `device` is emulated, since its launches take long. For other devices `work` runs in
// this thread, without the GIL.
void run_on(Device device, const std::function<void()>& work);

// Passes the path of NVRTC in the wheel nvidia-cuda-nvrtc to the library; false if this Python has
// no such wheel.
bool offer_nvrtc_wheel();

// The same of nvdisasm and the wheel nvidia-cuda-nvdisasm.
bool offer_nvdisasm_wheel();

// Runs `work`. If it fails because no NVRTC was found and a wheel has one, uses that and runs
// `work` once more.
void with_nvrtc(const std::function<void()>& work);

}  // namespace gemmery::python
