// SPDX-License-Identifier: Apache-2.0
// Verification against the oracle, measurement, and the report on this machine.
#include <gemmery/doctor.hpp>
#include <gemmery/measure.hpp>
#include <gemmery/verify.hpp>

#include <algorithm>

#include "docs.hpp"
#include "kernels.hpp"

namespace gemmery::python {
namespace {

Fill to_fill(std::string_view word) {
  if (word == "normal") return Fill::normal;
  if (word == "uniform") return Fill::uniform;
  if (word == "integers") return Fill::integers;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "fill",
               .expected = "\"normal\", \"uniform\" or \"integers\"",
               .got = "\"" + std::string(word) + "\""});
}

VerifyReport verify_kernel(const PyKernel& kernel, nb::handle problem, std::string_view fill,
                           std::uint64_t seed, nb::handle device) {
  const ProblemLine line = line_of(problem);
  const VerifyOptions options{
      .fill = to_fill(fill), .seed = seed, .device = device_for(device, problem)};
  VerifyReport report;
  with_nvrtc(
      [&] { run_on(options.device, [&] { report = verify(line, kernel.kernel, options); }); });
  return report;
}

VerifyReport check_arguments(const PyGemmArguments& arguments, const PyKernel& kernel,
                             nb::handle stream) {
  require_memory(arguments, "check_result");
  return check_against_oracle(arguments, kernel.kernel, stream_of(arguments, stream));
}

nb::dict measure_kernel(const PyKernel& kernel, nb::handle problem, nb::handle device, int samples,
                        double sample_ms) {
  const ProblemLine line = line_of(problem);
  const MeasureOptions options{
      .device = device_for(device, problem), .samples = samples, .sample_ms = sample_ms};
  Measurement measured;
  with_nvrtc(
      [&] { run_on(options.device, [&] { measured = measure(line, kernel.kernel, options); }); });
  nb::dict result;
  result["median_us"] = measured.median_us;
  result["minimum_us"] = measured.minimum_us;
  result["maximum_us"] = measured.maximum_us;
  result["quartile_low_us"] = measured.quartile_low_us;
  result["quartile_high_us"] = measured.quartile_high_us;
  result["flops_per_second"] = measured.flops_per_second;
  result["roofline_us"] = measured.roofline_us;
  result["roofline_share"] = measured.roofline_share;
  return result;
}

DoctorReport examine_machine() { return without_gil(doctor); }

bool lacks_nvrtc(const DoctorReport& report) {
  return std::ranges::any_of(report.libraries, [](const LibraryFinding& library) {
    return library.name == "NVRTC" && !library.found;
  });
}

}  // namespace

// The problem of a text line or of arguments.
ProblemLine line_of(nb::handle problem) {
  if (nb::isinstance<nb::str>(problem)) return parse_problem(to_text(problem, "problem"));
  cast_for<PyGemmArguments>(problem, "problem", "a line of text or GemmArguments");
  return parse_problem(nb::cast<std::string>(problem.attr("problem")));
}

// The given device. If it is None: the arguments' device, or the CPU for a text line.
Device device_for(nb::handle device, nb::handle problem) {
  if (!device.is_none()) return to_device(device, "device");
  if (!nb::isinstance<PyGemmArguments>(problem)) return Device::cpu();
  const auto& arguments = nb::cast<const PyGemmArguments&>(problem);
  require_memory(arguments, "without a device, this");
  return arguments.native->device();
}

// The oracle needs the inputs. Throws if a result overwrote one of them.
void require_inputs_to_stay(const GemmArguments& arguments) {
  const auto is_result = [&](const Tensor& tensor) {
    return tensor.data() == arguments.out().data() && tensor.element_count() != 0;
  };
  bool is_overwritten = arguments.c() && is_result(*arguments.c());
  for (const EpilogueOperand& operand : arguments.epilogue_operands()) {
    const auto* const tensor = std::get_if<Tensor>(&operand.value);
    is_overwritten = is_overwritten || (tensor != nullptr && is_result(*tensor));
  }
  if (!is_overwritten) return;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "verification",
               .expected = "inputs that stay as they are",
               .got = "an input that is overwritten in place",
               .hint = "write to another tensor"});
}

VerifyReport check_against_oracle(const PyGemmArguments& arguments, const Kernel& kernel,
                                  void* handle) {
  require_inputs_to_stay(*arguments.native);
  if (arguments.native->device().is_cpu()) {
    const WithoutGil released;
    return check_result(*arguments.native, kernel);
  }
  finish_staged(arguments, handle);
  const PyGemmArguments on_host = staged_on(arguments, Device::cpu());
  const WithoutGil released;
  return check_result(*on_host.native, kernel);
}

void bind_checks(nb::module_& module) {
  nb::class_<VerifyReport>(module, "VerifyReport", doc("VerifyReport"))
      .def_ro("passed", &VerifyReport::passed, doc("VerifyReport.passed"))
      .def_ro("seed", &VerifyReport::seed, doc("VerifyReport.seed"))
      .def_ro("elements", &VerifyReport::elements, doc("VerifyReport.elements"))
      .def_ro("mismatches", &VerifyReport::mismatches, doc("VerifyReport.mismatches"))
      .def_ro("without_bound", &VerifyReport::without_bound, doc("VerifyReport.without_bound"))
      .def_ro("open", &VerifyReport::without_bound,
              doc("VerifyReport.open"))  // its former name, until the next version
      .def_ro("worst_ratio", &VerifyReport::worst_ratio, doc("VerifyReport.worst_ratio"))
      .def_ro("worst_error", &VerifyReport::worst_error, doc("VerifyReport.worst_error"))
      .def_ro("guard_violations", &VerifyReport::guard_violations,
              doc("VerifyReport.guard_violations"))
      .def_ro("method", &VerifyReport::method, doc("VerifyReport.method"))
      .def_ro("first_failure", &VerifyReport::first_failure, doc("VerifyReport.first_failure"))
      .def("__bool__", [](const VerifyReport& report) { return report.passed; })
      .def("__repr__", [](const VerifyReport& report) {
        return "VerifyReport(passed=" + std::string(report.passed ? "True" : "False") +
               ", worst_ratio=" + std::to_string(report.worst_ratio) +
               (report.first_failure.empty() ? "" : ", " + report.first_failure) + ")";
      });
  module.def("verify", &verify_kernel, nb::arg("kernel"), nb::arg("problem"), nb::kw_only(),
             nb::arg("fill") = "normal", nb::arg("seed") = 0, nb::arg("device").none() = nb::none(),
             doc("verify"));
  module.def("check_result", &check_arguments, nb::arg("args"), nb::arg("kernel"),
             nb::arg("stream").none() = nb::none(), doc("check_result"));
  module.def("measure", &measure_kernel, nb::arg("kernel"), nb::arg("problem"), nb::kw_only(),
             nb::arg("device").none() = nb::none(), nb::arg("samples") = 11,
             nb::arg("sample_ms") = 5.0, doc("measure"));
  module.def(
      "doctor",
      [] {
        DoctorReport report = examine_machine();
        if (lacks_nvrtc(report) && offer_nvrtc_wheel()) report = examine_machine();
        return to_string(report);
      },
      doc("doctor"));
}

}  // namespace gemmery::python
