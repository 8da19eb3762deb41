// SPDX-License-Identifier: Apache-2.0
// One kernel on an emulated device, with findings as objects.
#include <gemmery/emulate.hpp>

#include <array>
#include <cstring>
#include <utility>

#include "bindings.hpp"
#include "docs.hpp"

namespace gemmery::python {
namespace {

std::vector<std::byte> to_bytes(nb::handle object) {
  const nb::bytes bytes = nb::cast<nb::bytes>(object);
  const auto* const data = static_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

// (dtype, shape, box, swizzle) of a tensor map over the buffer.
EmulationArgument to_tensor_map(EmulationArgument buffer, const nb::tuple& map) {
  const auto dtype = parse_dtype(nb::cast<std::string>(map[0]));
  if (!dtype)
    throw Error({.operand = "tensor map",
                 .expected = "a type of elements that tensor maps have",
                 .got = nb::cast<std::string>(map[0])});
  const auto shape = nb::cast<std::vector<std::uint64_t>>(map[1]);
  const auto box = nb::cast<std::vector<std::uint32_t>>(map[2]);
  return EmulationArgument::tensor_map(std::move(buffer), *dtype, shape, box,
                                       nb::cast<int>(map[3]));
}

// ("number", text), ("value", bytes), ("buffer", bytes), ("unwritten", count) or ("tensor map",
// buffer, map).
EmulationArgument to_argument(nb::handle object) {
  const nb::tuple pair = nb::cast<nb::tuple>(object);
  const auto kind = nb::cast<std::string>(pair[0]);
  if (kind == "number") return EmulationArgument::number(nb::cast<std::string>(pair[1]));
  if (kind == "value") return EmulationArgument::value(to_bytes(pair[1]));
  if (kind == "buffer") return EmulationArgument::buffer(to_bytes(pair[1]));
  if (kind == "tensor map")
    return to_tensor_map(to_argument(pair[1]), nb::cast<nb::tuple>(pair[2]));
  return EmulationArgument::unwritten(nb::cast<std::size_t>(pair[1]));
}

std::array<std::uint32_t, 3> to_extents(const nb::tuple& extents) {
  return {nb::cast<std::uint32_t>(extents[0]), nb::cast<std::uint32_t>(extents[1]),
          nb::cast<std::uint32_t>(extents[2])};
}

std::vector<std::string> to_words(nb::handle list) {
  return nb::cast<std::vector<std::string>>(list);
}

EmulationReport run_emulation(std::string code, std::string file, nb::handle options,
                              std::string entry, nb::handle device, const nb::tuple& grid,
                              const nb::tuple& block, const nb::tuple& cluster,
                              std::uint32_t shared_bytes, nb::list arguments, std::uint64_t seed,
                              int seeds, bool stops_at_first, double timeout_s,
                              std::uint32_t sampled_blocks, bool wants_coverage,
                              std::string rules) {
  EmulationRequest request{.code = std::move(code),
                           .file = std::move(file),
                           .compile_options = to_words(options),
                           .entry = std::move(entry),
                           .device = to_device(device, "device"),
                           .launch = {.grid = to_extents(grid),
                                      .block = to_extents(block),
                                      .cluster = to_extents(cluster),
                                      .shared_bytes = shared_bytes,
                                      .seed = seed},
                           .arguments = {},
                           .schedules = seeds,
                           .stops_at_first = stops_at_first,
                           .timeout_s = timeout_s,
                           .sampled_clusters = sampled_blocks,
                           .wants_coverage = wants_coverage,
                           .rules = std::move(rules)};
  for (const nb::handle each : arguments) request.arguments.push_back(to_argument(each));
  EmulationReport report;
  with_nvrtc([&] { run_on(request.device, [&] { report = emulate(request); }); });
  return report;
}

nb::object place_or_none(const EmulatedPlace& place) {
  return place.ptx_line == 0 ? nb::none() : nb::cast(place);
}

nb::list outputs_of(const EmulationReport& report) {
  nb::list outputs;
  for (const EmulationOutput& output : report.outputs)
    outputs.append(nb::make_tuple(output.argument,
                                  nb::bytes(output.bytes.data(), output.bytes.size()),
                                  output.unwritten_bytes));
  return outputs;
}

std::string where(const EmulatedPlace& place) {
  if (place.ptx_line == 0) return {};
  if (place.source_line == 0) return " at PTX line " + std::to_string(place.ptx_line);
  return " at " + place.source_file + ":" + std::to_string(place.source_line);
}

void bind_places(nb::module_& module) {
  nb::class_<EmulatedPlace>(module, "EmulatedPlace", doc("EmulatedPlace"))
      .def_ro("kernel", &EmulatedPlace::kernel, doc("EmulatedPlace.kernel"))
      .def_prop_ro(
          "block",
          [](const EmulatedPlace& place) {
            return nb::make_tuple(place.block[0], place.block[1], place.block[2]);
          },
          doc("EmulatedPlace.block"))
      .def_ro("warp", &EmulatedPlace::warp, doc("EmulatedPlace.warp"))
      .def_ro("lane", &EmulatedPlace::lane, doc("EmulatedPlace.lane"))
      .def_ro("ptx_line", &EmulatedPlace::ptx_line, doc("EmulatedPlace.ptx_line"))
      .def_ro("ptx", &EmulatedPlace::ptx_text, doc("EmulatedPlace.ptx"))
      .def_ro("file", &EmulatedPlace::source_file, doc("EmulatedPlace.file"))
      .def_ro("line", &EmulatedPlace::source_line, doc("EmulatedPlace.line"))
      .def_ro("call_file", &EmulatedPlace::call_file, doc("EmulatedPlace.call_file"))
      .def_ro("call_line", &EmulatedPlace::call_line, doc("EmulatedPlace.call_line"))
      .def("__repr__",
           [](const EmulatedPlace& place) { return "EmulatedPlace(" + where(place) + " )"; });
  nb::class_<EmulatedLine>(module, "EmulatedLine", doc("EmulatedLine"))
      .def_ro("ptx_line", &EmulatedLine::ptx_line, doc("EmulatedLine.ptx_line"))
      .def_ro("ptx", &EmulatedLine::ptx_text, doc("EmulatedLine.ptx"))
      .def_ro("file", &EmulatedLine::source_file, doc("EmulatedLine.file"))
      .def_ro("line", &EmulatedLine::source_line, doc("EmulatedLine.line"))
      .def_ro("has_run", &EmulatedLine::has_run, doc("EmulatedLine.has_run"));
}

void bind_findings(nb::module_& module) {
  nb::class_<EmulationFinding>(module, "EmulationFinding", doc("EmulationFinding"))
      .def_ro("kind", &EmulationFinding::kind, doc("EmulationFinding.kind"))
      .def_ro("message", &EmulationFinding::message, doc("EmulationFinding.message"))
      .def_prop_ro(
          "place", [](const EmulationFinding& it) { return place_or_none(it.place); },
          doc("EmulationFinding.place"))
      .def_prop_ro(
          "other", [](const EmulationFinding& it) { return place_or_none(it.other); },
          doc("EmulationFinding.other"))
      .def_ro("report", &EmulationFinding::report, doc("EmulationFinding.report"))
      .def_ro("is_by_the_letter", &EmulationFinding::is_by_the_letter,
              doc("EmulationFinding.is_by_the_letter"))
      .def_ro("ended_block", &EmulationFinding::ended_block, doc("EmulationFinding.ended_block"))
      .def_ro("count", &EmulationFinding::count, doc("EmulationFinding.count"))
      .def_ro("seeds", &EmulationFinding::seeds, doc("EmulationFinding.seeds"))
      .def_ro("rule", &EmulationFinding::rule, doc("EmulationFinding.rule"))
      .def("__str__", [](const EmulationFinding& it) { return it.report; })
      .def("__repr__", [](const EmulationFinding& it) {
        return "EmulationFinding(" + it.kind + where(it.place) + ", " + std::to_string(it.count) +
               (it.count == 1 ? " time)" : " times)");
      });
}

void bind_report(nb::module_& module) {
  nb::class_<EmulationReport>(module, "EmulationReport", doc("EmulationReport"))
      .def_ro("kernel", &EmulationReport::kernel, doc("EmulationReport.kernel"))
      .def_ro("findings", &EmulationReport::findings, doc("EmulationReport.findings"))
      .def_prop_ro("outputs", outputs_of, doc("EmulationReport.outputs"))
      .def_ro("schedules", &EmulationReport::schedules, doc("EmulationReport.schedules"))
      .def_ro("timed_out", &EmulationReport::timed_out, doc("EmulationReport.timed_out"))
      .def_ro("warp_instructions", &EmulationReport::warp_instructions,
              doc("EmulationReport.warp_instructions"))
      .def_ro("lane_instructions", &EmulationReport::lane_instructions,
              doc("EmulationReport.lane_instructions"))
      .def_ro("coverage", &EmulationReport::coverage, doc("EmulationReport.coverage"))
      .def_ro("unused_rules", &EmulationReport::unused_rules, doc("EmulationReport.unused_rules"))
      .def_prop_ro("passed", &EmulationReport::passed, doc("EmulationReport.passed"))
      .def("__bool__", &EmulationReport::passed)
      .def("__str__", [](const EmulationReport& report) { return to_string(report); })
      .def("__repr__", [](const EmulationReport& report) {
        return "EmulationReport(" + report.kernel + ", " + (report.passed() ? "passed" : "failed") +
               ", " + std::to_string(report.findings.size()) + " findings)";
      });
}

}  // namespace

void bind_emulation(nb::module_& module) {
  bind_places(module);
  bind_findings(module);
  bind_report(module);
  module.def("emulate", &run_emulation, nb::kw_only(), nb::arg("code"), nb::arg("file"),
             nb::arg("options"), nb::arg("entry"), nb::arg("device"), nb::arg("grid"),
             nb::arg("block"), nb::arg("cluster"), nb::arg("shared_bytes"), nb::arg("arguments"),
             nb::arg("seed"), nb::arg("seeds"), nb::arg("stops_at_first"), nb::arg("timeout_s"),
             nb::arg("sampled_blocks"), nb::arg("wants_coverage"), nb::arg("rules"),
             "gemmery.emulate, with its arguments converted.");
}

}  // namespace gemmery::python
