// SPDX-License-Identifier: Apache-2.0
// Described convolutions for gemmery.describe.
#include <nanobind/operators.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "describe.hpp"

namespace gemmery::python {
namespace {

using describe::Conv2dArguments;
using describe::Conv2dDescription;
using describe::Conv2dOperation;
using describe::Conv2dProblemSize;
using describe::OutputOp;

// N, H, W, C, K, R, S; four paddings; two strides; two dilations; groups.
using SizeNumbers = std::array<std::int64_t, 16>;

Conv2dProblemSize make_size(const SizeNumbers& given, ConvMode mode,
                            std::optional<std::array<std::int64_t, 2>> output) {
  return {.N = given[0],
          .H = given[1],
          .W = given[2],
          .C = given[3],
          .K = given[4],
          .R = given[5],
          .S = given[6],
          .padding = {given[7], given[8], given[9], given[10]},
          .stride = {given[11], given[12]},
          .dilation = {given[13], given[14]},
          .mode = mode,
          .groups = given[15],
          .output = output};
}

std::array<std::int64_t, 3> gemm_size(const Conv2dProblemSize& size, ConvKind kind) {
  const auto [m, n, k] = describe::implicit_gemm_problem_size(kind, size);
  return {m, n, k};
}

void bind_conv_words(nb::module_& module) {
  bind_words(module, "ConvOperator", ConvKind::wgrad, "The kinds of convolutions.");
  bind_words(module, "ConvMode", ConvMode::convolution,
             "Whether the taps of a filter are taken in order or reversed.");
  bind_words(module, "IteratorAlgorithm", describe::IteratorAlgorithm::few_channels,
             "How PyCUTLASS addresses images; each keeps its limits.");
  bind_words(module, "StrideSupport", describe::StrideSupport::Unity,
             "Whether a dgrad takes strides.");
  bind_words(module, "SplitKMode", describe::SplitKMode::Parallel,
             "How slices of a convolution are added up.");
}

void bind_conv_operation(nb::module_& module) {
  nb::class_<PyConvOperation, PyKernel>(module, "Conv2dOperation",
                                        nb::type_slots(operation_slots<PyConvOperation>()),
                                        "A described convolution; gemmery.describe has its class.")
      .def("__init__",
           [](PyConvOperation* self, ConvKind kind, describe::IteratorAlgorithm algorithm,
              int compute_capability, const describe::TileDescription& tile,
              const std::array<describe::TensorDescription, 3>& operands,
              describe::StrideSupport support, const describe::EpilogueFunctor& functor,
              describe::SwizzlingFunctor swizzle) {
             new (self) PyConvOperation(Conv2dOperation(
                 Conv2dDescription{kind, algorithm, compute_capability, tile, operands[0],
                                   operands[1], operands[2], support, functor, swizzle}));
           })
      .def("emit", [](const PyConvOperation& self) { return self.operation.emit(); })
      .def("describe",
           [](const PyConvOperation& self) { return to_string(self.operation.description()); })
      .def("has_same_description",
           [](const PyConvOperation& self, const PyConvOperation& other) {
             return self.operation == other.operation;
           })
      .def("output_op",
           [](const PyConvOperation& self, double alpha, double beta, std::vector<double> args) {
             return self.operation.epilogue_type(alpha, beta, std::move(args));
           })
      .def("launch", &launch_operation<PyConvOperation, PyDescribedConv>, nb::arg("arguments"),
           nb::arg("stream").none() = nb::none());
}

void bind_conv_arguments(nb::module_& module) {
  nb::class_<Conv2dProblemSize>(module, "Conv2dSize", "The extents of a convolution.")
      .def(
          "__init__",
          [](Conv2dProblemSize* self, const SizeNumbers& numbers, ConvMode mode,
             std::optional<std::array<std::int64_t, 2>> output) {
            new (self) Conv2dProblemSize(make_size(numbers, mode, output));
          },
          nb::arg("numbers"), nb::arg("mode"), nb::arg("output").none())
      .def_prop_ro("output",
                   [](const Conv2dProblemSize& self) {
                     return std::array{self.P(), self.Q()};
                   })
      .def("gemm", &gemm_size, nb::arg("kind"));
  nb::class_<PyDescribedConv>(module, "DescribedConvArguments",
                              "Checked operands of one described convolution.")
      .def(
          "__init__",
          [](PyDescribedConv* self, const PyConvOperation& operation, const Conv2dProblemSize& size,
             const std::array<std::uintptr_t, 4>& addresses, nb::handle device,
             describe::SplitKMode mode, const OutputOp& op, int slices, bool bias) {
            new (self) PyDescribedConv{Conv2dArguments(
                operation.operation, size,
                {.A = reinterpret_cast<const void*>(addresses[0]),
                 .B = reinterpret_cast<const void*>(addresses[1]),
                 .C = reinterpret_cast<const void*>(addresses[2]),
                 .D = reinterpret_cast<void*>(addresses[3])},
                to_device(device, "device"),
                {.split_k_mode = mode, .output_op = op, .split_k_slices = slices, .bias = bias})};
          })
      .def_prop_ro("kernels", &kernels_of<PyDescribedConv>,
                   "The kernels that a run launches, in order.")
      .def_prop_ro(
          "partials", [](const PyDescribedConv& self) { return self.native.partials(); },
          nb::keep_alive<0, 1>(), "They keep the arguments, whose workspace they are.");
}

}  // namespace

void bind_described_convolutions(nb::module_& module) {
  bind_conv_words(module);
  bind_conv_operation(module);
  bind_conv_arguments(module);
}

}  // namespace gemmery::python
