// SPDX-License-Identifier: Apache-2.0
// Compiled kernels, their files, prepared launches, and parallel compilation.
#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>

#include <utility>

#include "docs.hpp"
#include "kernels.hpp"

namespace gemmery::python {
namespace {

// --- artifacts -----------------------------------------------------------------------------------

PyArtifact wrap(const Artifact& artifact) {
  return {artifact, nb::none(), nb::cast(PyKernel{artifact.kernel()})};
}

nb::object compiled_object(nb::handle self) {
  const auto& artifact = nb::cast<const PyArtifact&>(self);
  return artifact.native ? nb::borrow(self) : artifact.compiled_obj;
}

std::vector<std::string> targets_of_artifact(const PyArtifact& self) {
  std::vector<std::string> targets;
  for (const Target target : native_artifact(self, "targets").targets())
    targets.push_back(to_string(target));
  return targets;
}

// "CompiledArtifact(Kernel(simt1_…) for sm_90)"; without targets for a user's kernel.
std::string describe(const PyArtifact& self) {
  std::string targets;
  if (self.native) {
    for (const std::string& target : targets_of_artifact(self))
      targets += (targets.empty() ? " for " : ", ") + target;
  }
  return "CompiledArtifact(" + nb::cast<std::string>(nb::repr(self.kernel_obj)) + targets + ")";
}

nb::object resources_of(const PyArtifact& self) {
  const std::optional<CodeResources> found = native_artifact(self, "resources").resources();
  if (!found) return nb::none();
  nb::dict resources;
  resources["registers"] = found->registers;
  resources["static_shared_bytes"] = found->static_shared_bytes;
  resources["spill_store_bytes"] = found->spill_store_bytes;
  resources["spill_load_bytes"] = found->spill_load_bytes;
  resources["stack_bytes"] = found->stack_bytes;
  return resources;
}

// --- code ---

// The code for the first target. PTX is compiled if it is requested and missing.
KernelCode code_for_first_target(const PyArtifact& self, std::string_view call, bool with_ptx) {
  const Artifact& artifact = native_artifact(self, call);
  KernelCode code;
  with_nvrtc([&] {
    const WithoutGil released;
    code = std::move(code_of(artifact, with_ptx).front());
  });
  return code;
}

nb::bytes cubin_of(const PyArtifact& self) {
  const KernelCode code = code_for_first_target(self, "cubin", false);
  return nb::bytes(code.cubin.data(), code.cubin.size());
}

std::string sass_of(const PyArtifact& self) {
  const KernelCode code = code_for_first_target(self, "sass", false);
  const auto disassembled = [&] { return disassemble(code.cubin); };
  try {
    return without_gil(disassembled);
  } catch (const Error& error) {
    const bool is_missing = error.kind() == ErrorKind::unavailable && error.operand() == "nvdisasm";
    if (!is_missing || !offer_nvdisasm_wheel()) throw;
  }
  return without_gil(disassembled);
}

int visit_artifact(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* const artifact = nb::inst_ptr<PyArtifact>(self);
  Py_VISIT(artifact->compiled_obj.ptr());
  Py_VISIT(artifact->kernel_obj.ptr());
  return 0;
}

int clear_artifact(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto* const artifact = nb::inst_ptr<PyArtifact>(self);
  artifact->compiled_obj.reset();
  artifact->kernel_obj.reset();
  return 0;
}

PyType_Slot artifact_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_artifact)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_artifact)},
                                {0, nullptr}};

// --- prepared launches ---------------------------------------------------------------------------

PyPreparedLaunch bind(const PyArtifact& self, nb::handle args) {
  const auto& arguments = cast_for<PyGemmArguments>(args, "args", "GemmArguments");
  require_memory(arguments, "bind");
  const Artifact& artifact = native_artifact(self, "bind");
  const WithoutGil released;
  PreparedLaunch launch = artifact.bind(*arguments.native);
  const nb::gil_scoped_acquire gil;
  keep_for_launch(*nb::inst_ptr<PyGemmArguments>(args));
  return {
      std::move(launch), nb::borrow(args), arguments.native->device(), {}, arguments.must_finish};
}

void finish(Stream stream) {
  const WithoutGil released;
  synchronize(stream);
}

void launch(PyPreparedLaunch& self, nb::handle stream) {
  const auto* const arguments = nb::inst_ptr<PyGemmArguments>(self.arguments);
  void* const handle = stream_of(*arguments, stream);
  if (!self.device.is_cpu()) {
    // A launch on a GPU takes less time than releasing and reacquiring the GIL.
    const Stream where = Stream::of(handle, self.device);
    if (self.device.type == DeviceType::emulated) {
      run_on(self.device, [&] {
        self.launch.launch(where);
        if (self.must_finish) synchronize(where);
      });
      return;
    }
    self.launch.launch(where);
    if (self.must_finish) finish(where);
    return;
  }
  const WithoutGil released;
  self.launch.launch(Stream::cpu());
}

void set_launch_data(PyPreparedLaunch& self, const std::string& operand, nb::handle given) {
  const auto* const arguments = nb::inst_ptr<PyGemmArguments>(self.arguments);
  const std::string native = arguments->native_name(operand);
  if (PyLong_Check(given.ptr())) {
    self.launch.set_data(native, to_address(given, operand));
    self.patched.erase(operand);
    return;
  }
  ImportedTensor tensor = import_replacement(*arguments, operand, given);
  self.launch.set_data(native, tensor.view.data());
  self.must_finish = self.must_finish || tensor.is_reused_at_once;
  self.patched.insert_or_assign(operand, std::move(tensor));
}

int visit_launch(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* const launch = nb::inst_ptr<PyPreparedLaunch>(self);
  Py_VISIT(launch->arguments.ptr());
  for (const auto& [operand, tensor] : launch->patched) {
    if (const int result = tensor.visit_references(visit, arg); result != 0) return result;
  }
  return 0;
}

int clear_launch(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto* const launch = nb::inst_ptr<PyPreparedLaunch>(self);
  launch->arguments.reset();
  for (auto& [operand, tensor] : launch->patched) tensor.clear_references();
  return 0;
}

PyType_Slot launch_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_launch)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_launch)},
                              {0, nullptr}};

// --- files ---------------------------------------------------------------------------------------

void save(const std::string& path, const std::vector<StoredArtifact>& artifacts, bool with_ptx) {
  with_nvrtc([&] {
    const WithoutGil released;
    save_artifacts(path, artifacts, {.with_ptx = with_ptx});
  });
}

// The bytes of a path for system calls; names may be invalid UTF-8.
std::string path_text(nb::handle path) {
  const auto bytes = nb::cast<nb::bytes>(nb::module_::import_("os").attr("fsencode")(path));
  std::string text(bytes.c_str(), bytes.size());
  if (text.find('\0') == std::string::npos) return text;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "path",
               .expected = "a path without a null character",
               .got = nb::cast<std::string>(nb::repr(path))});
}

void save_one(const PyArtifact& self, nb::handle path, const std::vector<std::string>& problems,
              bool with_ptx) {
  save(path_text(path), {{native_artifact(self, "save"), problems}}, with_ptx);
}

void save_all(nb::handle path, nb::sequence artifacts, bool with_ptx) {
  std::vector<StoredArtifact> stored;
  for (const nb::handle artifact : artifacts) {
    const auto& compiled = cast_for<PyArtifact>(artifact, "artifacts", "CompiledArtifacts");
    stored.push_back({native_artifact(compiled, "save"), {}});
  }
  save(path_text(path), stored, with_ptx);
}

nb::list load_all(nb::handle path) {
  const std::string text = path_text(path);
  std::vector<StoredArtifact> stored;
  {
    const WithoutGil released;
    stored = load_artifacts(text);
  }
  nb::list artifacts;
  for (const StoredArtifact& one : stored) artifacts.append(nb::cast(wrap(one.artifact)));
  return artifacts;
}

// --- many compilations ---------------------------------------------------------------------------

nb::list compile_many(nb::sequence kernels, nb::handle cc, int jobs, nb::handle progress) {
  std::vector<CompileJob> work;
  for (const nb::handle kernel : kernels) {
    const Kernel& native = cast_for<PyKernel>(kernel, "kernels", "kernels of the library").kernel;
    work.push_back({native, compile_target(native, cc)});
  }
  std::vector<CompileResult> results;
  with_nvrtc([&] {
    run_interruptibly([&](std::stop_token stop) {
      CompileOptions options{.jobs = jobs, .stop = std::move(stop)};
      if (!progress.is_none()) {
        options.progress = [&](const CompileResult&, std::size_t done, std::size_t all) {
          const nb::gil_scoped_acquire gil;
          progress(done, all);
        };
      }
      results = compile_all(work, options);
    });
  });
  nb::list compiled;
  for (const CompileResult& result : results) {
    compiled.append(result.artifact ? nb::cast(wrap(*result.artifact))
                                    : make_exception(*result.error));
  }
  return compiled;
}

}  // namespace

const Artifact& native_artifact(const PyArtifact& artifact, std::string_view call) {
  if (artifact.native) return *artifact.native;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(call),
               .expected = "an artifact of a kernel of the library",
               .got = "one of a kernel of the user's own"});
}

void bind_artifacts(nb::module_& module) {
  nb::class_<PyArtifact>(module, "CompiledArtifact", nb::type_slots(artifact_slots),
                         doc("CompiledArtifact"))
      .def(
          "__init__",
          [](PyArtifact* self, nb::handle compiled_obj, nb::handle kernel_obj) {
            new (self) PyArtifact{std::nullopt, nb::borrow(compiled_obj), nb::borrow(kernel_obj)};
          },
          nb::arg("compiled_obj").none(), nb::arg("kernel_obj").none())
      .def_prop_ro("compiled_obj", &compiled_object, doc("CompiledArtifact.compiled_obj"))
      .def_prop_ro(
          "kernel_obj", [](const PyArtifact& self) { return self.kernel_obj; },
          doc("CompiledArtifact.kernel_obj"))
      .def_prop_ro(
          "is_native", [](const PyArtifact& self) { return self.native.has_value(); },
          doc("CompiledArtifact.is_native"))
      .def_prop_ro("targets", &targets_of_artifact, doc("CompiledArtifact.targets"))
      .def_prop_ro(
          "source", [](const PyArtifact& self) { return native_artifact(self, "source").source(); },
          doc("CompiledArtifact.source"))
      .def_prop_ro(
          "source_with_headers",
          [](const PyArtifact& self) {
            return with_headers(native_artifact(self, "source_with_headers").source());
          },
          doc("CompiledArtifact.source_with_headers"))
      .def_prop_ro(
          "ptx",
          [](const PyArtifact& self) { return code_for_first_target(self, "ptx", true).ptx; },
          doc("CompiledArtifact.ptx"))
      .def_prop_ro("cubin", &cubin_of, doc("CompiledArtifact.cubin"))
      .def("sass", &sass_of, doc("CompiledArtifact.sass"))
      .def_prop_ro(
          "log", [](const PyArtifact& self) { return native_artifact(self, "log").log(); },
          doc("CompiledArtifact.log"))
      .def_prop_ro(
          "compile_ms",
          [](const PyArtifact& self) { return native_artifact(self, "compile_ms").compile_ms(); },
          doc("CompiledArtifact.compile_ms"))
      .def_prop_ro("resources", &resources_of, doc("CompiledArtifact.resources"))
      .def(
          "load_on",
          [](const PyArtifact& self, nb::handle device) {
            const Device where = to_device(device, "device");
            const Artifact& artifact = native_artifact(self, "load_on");
            const WithoutGil released;
            artifact.load(where);
          },
          nb::arg("device"), doc("CompiledArtifact.load_on"))
      .def("__repr__", &describe)
      .def("bind", &bind, nb::arg("args"), doc("CompiledArtifact.bind"))
      .def("save", &save_one, nb::arg("path"), nb::kw_only(),
           nb::arg("problems") = std::vector<std::string>{}, nb::arg("with_ptx") = false,
           doc("CompiledArtifact.save"));

  nb::class_<PyPreparedLaunch>(module, "PreparedLaunch", nb::type_slots(launch_slots),
                               doc("PreparedLaunch"))
      .def("__call__", &launch, nb::arg("stream").none() = nb::none())
      .def("launch", &launch, nb::arg("stream").none() = nb::none(), doc("PreparedLaunch.launch"))
      .def("set_data", &set_launch_data, nb::arg("operand"), nb::arg("tensor"),
           doc("PreparedLaunch.set_data"))
      .def(
          "set_scalars",
          [](PyPreparedLaunch& self, double alpha, double beta) {
            self.launch.set_scalars(alpha, beta);
          },
          nb::arg("alpha"), nb::arg("beta"), doc("PreparedLaunch.set_scalars"))
      .def(
          "set_scalar",
          [](PyPreparedLaunch& self, std::string_view name, double value) {
            self.launch.set_scalar(name, value);
          },
          nb::arg("name"), nb::arg("value"), doc("PreparedLaunch.set_scalar"))
      .def_prop_ro(
          "args", [](const PyPreparedLaunch& self) { return self.arguments; },
          doc("PreparedLaunch.args"));

  module.def("save_artifacts", &save_all, nb::arg("path"), nb::arg("artifacts"), nb::kw_only(),
             nb::arg("with_ptx") = false);
  module.def("load_artifacts", &load_all, nb::arg("path"));
  module.def("compile_all", &compile_many, nb::arg("kernels"), nb::arg("cc"), nb::arg("jobs") = 0,
             nb::arg("progress").none() = nb::none());
}

}  // namespace gemmery::python
