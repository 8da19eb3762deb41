// SPDX-License-Identifier: Apache-2.0
// The class Kernel: metadata, support for arguments, compiling, running.
#include "kernels.hpp"
#include "docs.hpp"

#include <array>
#include <cstring>
#include <utility>

#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/family.hpp>

namespace gemmery::python {
namespace {

// --- what it is ----------------------------------------------------------------------------------

nb::dict describe_operand(const OperandRule& rule) {
  nb::dict operand;
  operand["dtype"] = rule.dtype;
  operand["layout"] = name(rule.layout);
  operand["alignment"] = int{rule.alignment};
  return operand;
}

nb::dict operand_rules(const PyKernel& self) {
  const OperandRules& rules = self.kernel.operands();
  nb::dict described;
  described["A"] = describe_operand(rules.a);
  described["B"] = describe_operand(rules.b);
  described["out"] = describe_operand(rules.out);
  if (rules.has_c) described["C"] = describe_operand(rules.c);
  described["accumulator_type"] = rules.accumulator;
  described["math"] = name(rules.math);
  return described;
}

nb::bytes rules_key(const PyKernel& self) {
  const OperandRules& rules = self.kernel.operands();
  std::array<std::uint8_t, 15> key{};
  std::size_t at = 0;
  for (const OperandRule& rule :
       {rules.a, rules.b, rules.out, rules.has_c ? rules.c : OperandRule{}})
    for (const auto part : {static_cast<std::uint8_t>(rule.dtype),
                            static_cast<std::uint8_t>(rule.layout), rule.alignment})
      key[at++] = part;
  key[at++] = static_cast<std::uint8_t>(rules.accumulator);
  key[at++] = static_cast<std::uint8_t>(rules.math);
  key[at++] = rules.has_c ? 1 : 0;
  return nb::bytes(key.data(), at);
}

nb::dict design_of(const PyKernel& self) {
  nb::dict design;
  for (const DesignField& field : self.kernel.family().design_fields(self.kernel))
    design[field.name.c_str()] = field.value;
  return design;
}

std::vector<std::string> targets_of(const PyKernel& self) {
  std::vector<std::string> targets;
  for (const Target target : self.kernel.family().targets(self.kernel))
    targets.push_back(to_string(target));
  return targets;
}

// gemmery.metadata builds it from the kernel's properties.
nb::object metadata_of(nb::handle self) {
  auto& kernel = nb::cast<PyKernel&>(self);
  if (!kernel.metadata.is_valid()) {
    // Never destroyed, since the interpreter may have exited by then.
    static auto* const make = new nb::object(
        nb::module_::import_("gemmery.metadata").attr("KernelMetadata").attr("_of_kernel"));
    kernel.metadata = (*make)(self);
  }
  return kernel.metadata;
}

std::size_t hash_of(const PyKernel& self) {
  const auto& bytes = self.kernel.design().bytes();
  const std::string_view design(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::hash<std::string_view>{}(design) ^
         (reinterpret_cast<std::uintptr_t>(&self.kernel.family()) >> 4) ^
         (static_cast<std::size_t>(self.kernel.epilogue()) << 32);
}

// --- whether it serves ---------------------------------------------------------------------------

Status check_performance(const Kernel& kernel, const PyGemmArguments& arguments) {
  if (!arguments.wants_deterministic || kernel.family().is_deterministic(kernel))
    return Status::success();
  return Status::fail("equal inputs need not give equal bits; PerformanceControls asked for that");
}

Status check(const PyKernel& self, const PyGemmArguments& arguments, nb::handle cc) {
  if (const Status status = check_performance(self.kernel, arguments); !status) return status;
  if (cc.is_none() && !arguments.is_meta) return self.kernel.supports(*arguments.native);
  return self.kernel.supports(arguments.native->problem(), info_for(arguments, cc));
}

nb::object supports(const PyKernel& self, nb::handle args, nb::handle cc) {
  if (!nb::isinstance<PyGemmArguments>(args) || !nb::inst_ready(args)) {
    return to_status(Status::fail("expected GemmArguments, got " + class_name(args)));
  }
  return to_status(check(self, nb::cast<const PyGemmArguments&>(args), cc));
}

[[noreturn]] void refuse_arguments(const Status& status) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "arguments",
               .expected = "arguments that the kernel supports",
               .got = status.error()});
}

// --- compiling -----------------------------------------------------------------------------------

Artifact compile_for(const Kernel& kernel, Target target, std::stop_token stop) {
  const CompileJob job{kernel, target};
  std::vector<CompileResult> results =
      compile_all(std::span(&job, 1), {.jobs = 1, .stop = std::move(stop)});
  CompileResult& result = results.front();
  if (result.error) throw *result.error;
  return *result.artifact;
}

bool runs_here(const PyGemmArguments& arguments, nb::handle cc) {
  return cc.is_none() && !arguments.is_fake;
}

// Compiles for the arguments' device and loads the code there.
Artifact compile_and_load(const Kernel& kernel, const GemmArguments& arguments) {
  std::optional<Artifact> artifact;
  if (!arguments.device().is_cpu()) {
    const Target target =
        kernel.family().target_for(kernel, *kernel.family().device_info(arguments.device()));
    run_interruptibly([&](const std::stop_token& stop) { compile_for(kernel, target, stop); });
  }
  const WithoutGil released;
  return kernel.compile(arguments);
}

PyArtifact compile(nb::handle self_object, nb::handle args, nb::handle cc) {
  const auto& self = nb::cast<const PyKernel&>(self_object);
  const Kernel kernel = self.kernel;
  PyArtifact compiled{std::nullopt, nb::none(), nb::borrow(self_object)};
  if (args.is_none()) {
    if (cc.is_none()) throw nb::type_error("compile: expected arguments, a cc, or both");
  } else {
    const auto& arguments = cast_for<PyGemmArguments>(args, "args", "GemmArguments");
    if (const Status status = check(self, arguments, cc); !status) refuse_arguments(status);
    if (runs_here(arguments, cc)) {
      with_nvrtc([&] { compiled.native = compile_and_load(kernel, *arguments.native); });
      return compiled;
    }
    if (cc.is_none()) {
      const Target target = kernel.family().target_for(kernel, info_for(arguments, cc));
      with_nvrtc([&] {
        run_interruptibly([&](const std::stop_token& stop) {
          compiled.native = compile_for(kernel, target, stop);
        });
      });
      return compiled;
    }
  }
  const Target target = compile_target(kernel, cc);
  with_nvrtc([&] {
    run_interruptibly(
        [&](const std::stop_token& stop) { compiled.native = compile_for(kernel, target, stop); });
  });
  return compiled;
}

// --- running -------------------------------------------------------------------------------------

Workspace to_workspace(nb::handle workspace, const PyGemmArguments& arguments,
                       std::optional<ImportedTensor>& held) {
  if (workspace.is_none()) return {};
  held.emplace(import_tensor(workspace, "workspace"));
  const Tensor& memory = held->view;
  const bool is_usable = memory.device() == arguments.native->device() && !held->is_read_only &&
                         is_packed_in_any_order(memory);
  if (!is_usable) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "workspace",
                 .expected = "packed memory on " + to_string(arguments.native->device()) +
                             " that may be written",
                 .got = to_string(memory)});
  }
  return {memory.data(),
          static_cast<std::size_t>(memory.element_count()) * byte_width(memory.dtype())};
}

// A first run without an artifact compiles, which Ctrl-C must end. No device is used, so a stream
// that is being captured stays valid.
void compile_before_first_run(PyKernel& self, const GemmArguments& arguments,
                              bool assume_supported) {
  if (!assume_supported) {
    if (const Status status = self.kernel.supports(arguments); !status) refuse_arguments(status);
  }
  const Kernel kernel = self.kernel;
  const Target target =
      kernel.family().target_for(kernel, *kernel.family().device_info(arguments.device()));
  with_nvrtc([&] {
    run_interruptibly([&](const std::stop_token& stop) { compile_for(kernel, target, stop); });
  });
  self.has_run = true;
}

void start(PyKernel& self, const GemmArguments& arguments, const RunOptions& options,
           bool must_finish) {
  if (options.artifact == nullptr && !self.has_run && !arguments.device().is_cpu())
    compile_before_first_run(self, arguments, options.assume_supported);
  run_on(arguments.device(), [&] {
    self.kernel.run(arguments, options);
    if (must_finish) synchronize(options.stream);
  });
}

void require_right_result(const PyGemmArguments& arguments, const Kernel& kernel, void* handle) {
  const VerifyReport report = check_against_oracle(arguments, kernel, handle);
  if (report.passed) return;
  const nb::object type = nb::module_::import_("gemmery.errors").attr("VerificationError");
  const std::string text = kernel.name() + ": " + std::to_string(report.mismatches) + " of " +
                           std::to_string(report.elements) + " elements are outside their bound; " +
                           report.first_failure;
  PyErr_SetString(type.ptr(), text.c_str());
  nb::raise_python_error();
}

[[noreturn]] void refuse_max_sms(int given) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "max_sms",
               .expected = "a number of multiprocessors, or 0 for all",
               .got = std::to_string(given)});
}

void run(PyKernel& self, const PyGemmArguments& arguments, const PyArtifact* artifact,
         nb::handle stream, nb::handle workspace, bool assume_supported_args, int max_sms,
         bool verify) {
  require_memory(arguments, "run");
  if (max_sms < 0) refuse_max_sms(max_sms);
  if (verify) require_inputs_to_stay(*arguments.native);
  if (!assume_supported_args) {
    if (const Status status = check_performance(self.kernel, arguments); !status)
      refuse_arguments(status);
  }
  const Device device = arguments.native->device();
  void* const handle = stream_of(arguments, stream);
  std::optional<ImportedTensor> held;
  const RunOptions options{
      .artifact = artifact == nullptr ? nullptr : &native_artifact(*artifact, "run"),
      .stream = device.is_cpu() ? Stream::cpu() : Stream::of(handle, device),
      .workspace = to_workspace(workspace, arguments, held),
      .assume_supported = assume_supported_args,
      .max_multiprocessors = max_sms != 0 ? max_sms : arguments.max_multiprocessors};
  start(self, *arguments.native, options, arguments.must_finish);
  if (verify) require_right_result(arguments, self.kernel, handle);
}

// A kernel and its metadata refer to each other.
int visit_kernel(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PyKernel>(self)->metadata.ptr());
  return 0;
}

int clear_kernel(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  nb::inst_ptr<PyKernel>(self)->metadata.reset();
  return 0;
}

PyType_Slot kernel_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_kernel)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear_kernel)},
                              {0, nullptr}};

}  // namespace

nb::object to_status(const Status& status) {
  // Never destroyed, since the interpreter may have exited by then.
  static auto* const type = new nb::object(nb::module_::import_("gemmery.status").attr("Status"));
  static auto* const success = new nb::object((*type).attr("success")());
  if (status) return *success;
  return (*type).attr("fail")(status.error());
}

const DeviceInfo& info_for(const PyGemmArguments& arguments, nb::handle cc) {
  return cc.is_none() ? device_info(arguments.native->device()) : info_of_architecture(cc);
}

Target compile_target(const Kernel& kernel, nb::handle cc) {
  const Target target = to_target(cc);
  // "sm_90a" and "90f" are exact; 90, "sm_90" and "h200" mean a device.
  if (target.is_cpu() || target.suffix != 0) return target;
  const DeviceInfo& device = info_of_architecture(cc);
  const Target own = kernel.family().target_for(kernel, device);
  return runs_on(own, device.target) ? own : target;  // compiling for `target` throws then
}

void bind_kernels(nb::module_& module) {
  nb::class_<PyKernel>(module, "Kernel", nb::type_slots(kernel_slots), doc("Kernel"))
      .def_prop_ro(
          "name", [](const PyKernel& self) { return self.kernel.name(); }, doc("Kernel.name"))
      .def_prop_ro(
          "provider", [](const PyKernel& self) { return self.kernel.family().provider(); },
          doc("Kernel.provider"))
      .def_prop_ro(
          "family", [](const PyKernel& self) { return self.kernel.family().name(); },
          doc("Kernel.family"))
      .def_prop_ro("metadata", &metadata_of, doc("Kernel.metadata"))
      .def_ro("predicted_us", &PyKernel::predicted_us, doc("Kernel.predicted_us"))
      .def_ro("is_measured", &PyKernel::is_measured, doc("Kernel.is_measured"))
      .def_prop_ro("design", &design_of, doc("Kernel.design"))
      .def_prop_ro("targets", &targets_of, doc("Kernel.targets"))
      .def_prop_ro("operand_rules", &operand_rules, doc("Kernel.operand_rules"))
      .def_prop_ro("_rules_key", &rules_key, "Bytes that are equal for equal operand rules.")
      .def_prop_ro(
          "is_deterministic",
          [](const PyKernel& self) { return self.kernel.family().is_deterministic(self.kernel); },
          doc("Kernel.is_deterministic"))
      .def_prop_ro(
          "is_default_epilogue",
          [](const PyKernel& self) { return self.kernel.epilogue() == default_epilogue; },
          doc("Kernel.is_default_epilogue"))
      .def_prop_ro(
          "epilogue_text", [](const PyKernel& self) { return text(self.kernel.epilogue()); },
          doc("Kernel.epilogue_text"))
      .def("supports", &supports, nb::arg("args").none(), nb::arg("cc").none() = nb::none(),
           doc("Kernel.supports"))
      .def("compile", &compile, nb::arg("args").none() = nb::none(),
           nb::arg("cc").none() = nb::none(), doc("Kernel.compile"))
      .def("run", &run, nb::arg("args"), nb::arg("compiled_artifact").none() = nb::none(),
           nb::arg("stream").none() = nb::none(), nb::arg("workspace").none() = nb::none(),
           nb::arg("assume_supported_args") = false, nb::kw_only(), nb::arg("max_sms") = 0,
           nb::arg("verify") = false, doc("Kernel.run"))
      .def(
          "get_workspace_size",
          [](const PyKernel& self, const PyGemmArguments& arguments) {
            return self.kernel.get_workspace_size(*arguments.native);
          },
          nb::arg("args"), doc("Kernel.get_workspace_size"))
      .def(
          "initialize_workspace", [](const PyKernel&, const PyGemmArguments&, nb::handle) {},
          nb::arg("args"), nb::arg("workspace").none(), doc("Kernel.initialize_workspace"))
      .def(
          "__eq__",
          [](const PyKernel& self, nb::handle other) {
            return nb::isinstance<PyKernel>(other) &&
                   self.kernel == nb::cast<const PyKernel&>(other).kernel;
          },
          nb::arg("other").none())
      .def("__hash__", &hash_of)
      .def("__repr__", [](const PyKernel& self) { return "Kernel(" + self.kernel.name() + ")"; });
}

}  // namespace gemmery::python
