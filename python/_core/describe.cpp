// SPDX-License-Identifier: Apache-2.0
// Operations of the explicit description: construction, compilation, launch. Also the functions of
// the memory pool.
#include "describe.hpp"

#include <nanobind/operators.h>
#include <nanobind/stl/array.h>

#include <optional>
#include <utility>
#include <vector>

#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/family.hpp>

namespace gemmery::python {
namespace {

using describe::GemmDescription;
using describe::GemmOperationUniversal;
using describe::OutputOp;
using describe::ReductionArguments;
using describe::ReductionOperation;

using Addresses = std::vector<std::uintptr_t>;

template <class Pointer>
std::vector<Pointer> to_pointers(const Addresses& addresses) {
  std::vector<Pointer> pointers;
  for (const std::uintptr_t address : addresses)
    pointers.push_back(reinterpret_cast<Pointer>(address));
  return pointers;
}

// --- operations ----------------------------------------------------------------------------------

PyDescribedArguments make_arguments(const PyGemmOperation& operation,
                                    std::array<std::int64_t, 3> size, const Addresses& a,
                                    const Addresses& b, const Addresses& c, const Addresses& d,
                                    nb::handle device, describe::Mode mode, const OutputOp& op,
                                    int slices, int batch, bool bias) {
  return {describe::GemmArguments(operation.operation, {size[0], size[1], size[2]},
                                  {.A = to_pointers<const void*>(a),
                                   .B = to_pointers<const void*>(b),
                                   .C = to_pointers<const void*>(c),
                                   .D = to_pointers<void*>(d)},
                                  to_device(device, "device"),
                                  {.gemm_mode = mode,
                                   .output_op = op,
                                   .split_k_slices = slices,
                                   .batch = batch,
                                   .bias = bias})};
}

void launch_groups(PyDescribedGroups& arguments, nb::handle stream) {
  const Device device = arguments.native.device();
  const Stream on = stream_on(device, stream);
  with_nvrtc([&] {
    compile_before_first_launch(arguments);
    run_on(device, [&] { arguments.operation.run(arguments.native, on); });
  });
}

PyDescribedGroups make_groups(const PyGemmOperation& operation, describe::SchedulerMode mode,
                              const std::vector<std::array<std::int64_t, 3>>& sizes,
                              const std::array<Addresses, 4>& operands, nb::handle device,
                              const OutputOp& op) {
  const describe::GemmOperationGrouped grouped(operation.operation.description(), mode);
  std::vector<describe::GemmCoord> coords;
  for (const auto& [m, n, k] : sizes) coords.push_back({m, n, k});
  describe::GemmGroupedArguments arguments(grouped, std::move(coords),
                                           {.A = to_pointers<const void*>(operands[0]),
                                            .B = to_pointers<const void*>(operands[1]),
                                            .C = to_pointers<const void*>(operands[2]),
                                            .D = to_pointers<void*>(operands[3])},
                                           to_device(device, "device"), op);
  return {.operation = grouped, .native = std::move(arguments)};
}

// A compile job for the operation, for its own target or the given one.
CompileJob job_of(nb::handle operation, std::optional<Target> target) {
  if (nb::isinstance<PyConvOperation>(operation)) {
    const auto& conv = nb::cast<const PyConvOperation&>(operation).operation;
    return {conv, target.value_or(conv.target())};
  }
  const auto& gemm = nb::cast<const PyGemmOperation&>(operation).operation;
  return {gemm, target.value_or(gemm.target())};
}

// Compiles operations. Returns for each of them None or its exception.
nb::list add_module(nb::sequence operations, nb::handle target) {
  const std::optional<Target> wanted =
      target.is_none() ? std::nullopt : std::optional(to_target(target));
  std::vector<CompileJob> jobs;
  for (const nb::handle operation : operations) jobs.push_back(job_of(operation, wanted));
  std::vector<CompileResult> results;
  with_nvrtc([&] {
    run_interruptibly(
        [&](const std::stop_token& stop) { results = compile_all(jobs, {.stop = stop}); });
  });
  nb::list outcomes;
  for (const CompileResult& result : results)
    outcomes.append(result.error ? make_exception(*result.error) : nb::none());
  return outcomes;
}

void bind_operations(nb::module_& module) {
  nb::class_<PyGemmOperation, PyKernel>(module, "GemmOperationUniversal",
                                        nb::type_slots(operation_slots<PyGemmOperation>()),
                                        "A described kernel; gemmery.describe has its class.")
      .def("__init__",
           [](PyGemmOperation* self, int compute_capability, const describe::TileDescription& tile,
              const describe::TensorDescription& a, const describe::TensorDescription& b,
              const describe::TensorDescription& c, const describe::EpilogueFunctor& functor,
              describe::SwizzlingFunctor swizzle, bool visitor) {
             new (self) PyGemmOperation(GemmOperationUniversal(
                 GemmDescription{compute_capability, tile, a, b, c, functor, swizzle, visitor}));
           })
      .def("emit", [](const PyGemmOperation& self) { return self.operation.emit(); })
      .def("describe",
           [](const PyGemmOperation& self) { return to_string(self.operation.description()); })
      .def("has_same_description",
           [](const PyGemmOperation& self, const PyGemmOperation& other) {
             return self.operation == other.operation;
           })
      .def("output_op",
           [](const PyGemmOperation& self, double alpha, double beta, std::vector<double> args) {
             return self.operation.epilogue_type(alpha, beta, std::move(args));
           })
      .def("launch", &launch_operation<PyGemmOperation, PyDescribedArguments>, nb::arg("arguments"),
           nb::arg("stream").none() = nb::none());
  nb::class_<PyDescribedArguments>(module, "DescribedArguments",
                                   "Checked operands of one described operation.")
      .def("__init__",
           [](PyDescribedArguments* self, const PyGemmOperation& operation,
              std::array<std::int64_t, 3> size, const Addresses& a, const Addresses& b,
              const Addresses& c, const Addresses& d, nb::handle device, describe::Mode mode,
              const OutputOp& op, int slices, int batch, bool bias) {
             new (self) PyDescribedArguments(make_arguments(operation, size, a, b, c, d, device,
                                                            mode, op, slices, batch, bias));
           })
      .def_prop_ro("kernels", &kernels_of<PyDescribedArguments>,
                   "The kernels that a run launches, in order.")
      .def_prop_ro(
          "partials", [](const PyDescribedArguments& self) { return self.native.partials(); },
          nb::keep_alive<0, 1>(), "They keep the arguments, whose workspace they are.");
  nb::class_<PyDescribedGroups>(module, "DescribedGroupedArguments",
                                "Checked operands of a list of problems.")
      .def("__init__",
           [](PyDescribedGroups* self, const PyGemmOperation& operation,
              describe::SchedulerMode mode, const std::vector<std::array<std::int64_t, 3>>& sizes,
              const std::array<Addresses, 4>& operands, nb::handle device, const OutputOp& op) {
             new (self)
                 PyDescribedGroups(make_groups(operation, mode, sizes, operands, device, op));
           })
      .def("launch", &launch_groups, nb::arg("stream").none() = nb::none())
      .def_prop_ro("kernels", &kernels_of<PyDescribedGroups>,
                   "The kernels that a run launches, in order.");
  module.def("add_module", &add_module, nb::arg("operations"), nb::arg("target").none());
}

// --- reductions ----------------------------------------------------------------------------------

void bind_reductions(nb::module_& module) {
  nb::class_<describe::Partials>(module, "Partials", "The accumulators of a split along k.")
      .def("__init__",
           [](describe::Partials* self, std::uintptr_t data, nb::handle dtype, std::int64_t slices,
              std::int64_t rows, std::int64_t columns, nb::handle device) {
             new (self) describe::Partials{.data = reinterpret_cast<void*>(data),
                                           .dtype = to_dtype(dtype, "workspace"),
                                           .slices = slices,
                                           .rows = rows,
                                           .columns = columns,
                                           .device = to_device(device, "device")};
           })
      .def_prop_ro("data_ptr",
                   [](const describe::Partials& self) {
                     return reinterpret_cast<std::uintptr_t>(self.data);
                   })
      .def_ro("dtype", &describe::Partials::dtype)
      .def_ro("slices", &describe::Partials::slices)
      .def_ro("rows", &describe::Partials::rows)
      .def_ro("columns", &describe::Partials::columns)
      .def_prop_ro("device", [](const describe::Partials& self) { return to_string(self.device); });
  nb::class_<ReductionOperation>(module, "ReductionOperation", "Adds up partial sums.")
      .def("__init__",
           [](ReductionOperation* self, std::array<int, 2> shape,
              const describe::TensorDescription& c, describe::Element accumulator,
              describe::Element compute, const describe::EpilogueFunctor& functor, int count,
              int partitions_per_stage) {
             new (self) ReductionOperation(describe::ReductionDescription{
                 shape, c, accumulator, compute, functor, count, partitions_per_stage});
           })
      .def("describe", [](const ReductionOperation& self) { return to_string(self.description()); })
      .def("output_op",
           [](const ReductionOperation& self, double alpha, double beta, std::vector<double> args) {
             return self.epilogue_type(alpha, beta, std::move(args));
           })
      .def(
          "launch",
          [](const ReductionOperation& self, const ReductionArguments& arguments, nb::handle device,
             nb::handle stream) {
            const Device where = to_device(device, "device");
            const Stream on = stream_on(where, stream);
            with_nvrtc([&] { run_on(where, [&] { self.run(arguments, on); }); });
          },
          nb::arg("arguments"), nb::arg("device"), nb::arg("stream").none() = nb::none());
  nb::class_<ReductionArguments>(module, "ReductionArguments")
      .def("__init__", [](ReductionArguments* self, const ReductionOperation& operation,
                          const describe::Partials& workspace, std::uintptr_t destination,
                          std::uintptr_t source, const OutputOp& op, bool bias) {
        new (self) ReductionArguments(operation, workspace, reinterpret_cast<void*>(destination),
                                      reinterpret_cast<const void*>(source), op, bias);
      });
}

// --- memory --------------------------------------------------------------------------------------

void bind_pool(nb::module_& module) {
  module.def(
      "configure_pool",
      [](nb::handle device, std::uint64_t initial_bytes, std::uint64_t limit_bytes) {
        const Device where = to_device(device, "device");
        const WithoutGil released;
        configure_pool(where, {.initial_bytes = initial_bytes, .limit_bytes = limit_bytes});
      },
      nb::arg("device"), nb::arg("initial_bytes") = 0, nb::arg("limit_bytes") = 0,
      "Configures the library's memory pool of a GPU; a limit of 0 bytes means none.");
  module.def(
      "pool_statistics",
      [](nb::handle device) {
        const PoolStatistics statistics = pool_statistics(to_device(device, "device"));
        nb::dict numbers;
        numbers["reserved_bytes"] = statistics.reserved_bytes;
        numbers["reserved_peak_bytes"] = statistics.reserved_peak_bytes;
        numbers["used_bytes"] = statistics.used_bytes;
        numbers["used_peak_bytes"] = statistics.used_peak_bytes;
        numbers["limit_bytes"] = statistics.limit_bytes;
        return numbers;
      },
      nb::arg("device"),
      "The bytes that the library's memory pool of a GPU holds, and the bytes that are allocated "
      "from it.");
  module.def(
      "current_stream",
      [](nb::sequence tensors, const std::vector<std::string>& roles) {
        CurrentStream current;
        std::size_t at = 0;
        for (const nb::handle tensor : tensors)
          current.consider(nb::cast<const ImportedTensor&>(tensor), roles.at(at++));
        return reinterpret_cast<std::uintptr_t>(current.handle());
      },
      nb::arg("tensors"), nb::arg("roles"),
      "The handle of the stream that the frameworks of tensors report as current.");
}

}  // namespace

void bind_described_operations(nb::module_& module) {
  bind_descriptions(module);
  bind_operations(module);
  bind_described_convolutions(module);
  bind_reductions(module);
  bind_pool(module);
}

}  // namespace gemmery::python
