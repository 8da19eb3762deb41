// SPDX-License-Identifier: Apache-2.0
// What the files of the native module share: its parts, and small conversions between Python and
// C++.
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
void bind_grouped(nb::module_& module);
void bind_convolution(nb::module_& module);
void bind_artifacts(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_described_operations(nb::module_& module);
void bind_discovery(nb::module_& module);
void bind_checks(nb::module_& module);
void bind_emulation(nb::module_& module);
void bind_cache(nb::module_& module);
void bind_log(nb::module_& module);
void bind_user_kernels(nb::module_& module);

// Throws Error.
[[noreturn]] void refuse(std::string_view operand, std::string expected, std::string got,
                         std::string hint = {}, ErrorKind kind = ErrorKind::invalid_argument);

// --- conversions ---------------------------------------------------------------------------------

// The element type that a Python object stands for: DType, a name, a torch, NumPy or ml_dtypes
// dtype. Throws Error (invalid_argument) for a word, TypeError for an object that names none.
DType to_dtype(nb::handle object, std::string_view role);
nb::object from_dtype(DType dtype);

// "cuda:1", 1, torch.device("cuda", 1), …
Device to_device(nb::handle object, std::string_view role);

// 90, "90a", "sm_90a".
Target to_target(nb::handle cc);

// The facts of the architecture that `cc` names, from this machine's devices or the table of known
// ones; also of a device by name ("h200"). Throws Error (unavailable) where nothing is known of it.
const DeviceInfo& info_of_architecture(nb::handle cc);

// The exception that Python gets for an error, of the classes of gemmery.errors. Throws
// nb::python_error if a signal's handler raises meanwhile.
nb::object make_exception(const Error& error);

// Makes `error` the __context__ of an exception that is raised in its place, so that a traceback
// shows both. Does nothing if `error` is null or no Error.
void add_context(const nb::python_error& raised, const std::exception_ptr& error) noexcept;

// What a function of the user's raised to end the call that it was asked in, not to tell of a
// fault: KeyboardInterrupt, SystemExit and what else is no Exception. Comes out of the call as it
// is. Copied and destroyed with or without the GIL.
struct PythonInterruption : Interruption {
  // With the GIL.
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

// The UTF-8 of a str. Throws TypeError for another object, Error (invalid_argument) for a str that
// has none: one with lone surrogates, as os.fsdecode makes of bytes.
std::string to_text(nb::handle object, std::string_view role);

// What a Python object holds; TypeError for one of another class, or one whose __init__ has not
// run.
template <class Held>
const Held& cast_for(nb::handle object, std::string_view parameter, std::string_view expected) {
  if (nb::isinstance<Held>(object) && nb::inst_ready(object)) return *nb::inst_ptr<Held>(object);
  const std::string text = std::string(parameter) + ": expected " + std::string(expected) +
                           ", got " + class_name(object);
  throw nb::type_error(text.c_str());
}

// --- calls that take long ------------------------------------------------------------------------

// Lets other Python threads run while it lives.
using WithoutGil = nb::gil_scoped_release;

// What `ask` answers, asked while others run.
template <class Ask>
auto without_gil(const Ask& ask) {
  const WithoutGil released;
  return ask();
}

// Runs `work` so that Ctrl-C ends it. In Python's main thread `work` runs in a thread of its own,
// and `stop` is requested as soon as a signal's handler raises; compilations and launches on
// emulated devices end then. The handler's exception is thrown once `work` has ended; what `work`
// failed with is its context. Called with the GIL, which is released meanwhile.
void run_interruptibly(const std::function<void(std::stop_token)>& work);

// The same where `device` is emulated, so that launches take long. Elsewhere `work` runs in this
// thread, without the GIL.
void run_on(Device device, const std::function<void()>& work);

// Names the NVRTC of the wheel nvidia-cuda-nvrtc to the library; false where this Python has none.
bool offer_nvrtc_wheel();

// Runs `work`; where it fails because no NVRTC was found and there is one in a wheel, offers that
// and runs it once more.
void with_nvrtc(const std::function<void()>& work);

}  // namespace gemmery::python
