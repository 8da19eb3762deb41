// SPDX-License-Identifier: Apache-2.0
// ConvArguments: tensors in torch's logical order (N, C, H, W) with channels-last strides.
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gemmery/conv_arguments.hpp>

#include "arguments.hpp"
#include "docs.hpp"

namespace gemmery::python {
namespace {

// --- tensors -------------------------------------------------------------------------------------

// Moves the channels, torch's second dimension, to the end. A tensor of lower rank broadcasts to
// the logical shape by NumPy's rule, so leading extents of 1 are added first.
Tensor channels_last(const Tensor& tensor, int rank) {
  const int missing = rank - tensor.rank();
  std::vector<std::int64_t> shape, strides;
  const auto add = [&](int logical) {
    const bool is_missing = logical < missing;
    shape.push_back(is_missing ? 1 : tensor.extent(logical - missing));
    strides.push_back(is_missing ? 0 : tensor.stride(logical - missing));
  };
  add(0);
  for (int d = 2; d < rank; ++d) add(d);
  add(1);
  return Tensor(tensor.data(), tensor.dtype(), std::span<const std::int64_t>(shape),
                std::span<const std::int64_t>(strides), tensor.device());
}

void check_operand(std::string_view operand, const Tensor& tensor) {
  if (tensor.has_pointers())
    refuse(operand, "one tensor", "a batch by pointers", {}, ErrorKind::unsupported);
  if (tensor.rank() < 3 || tensor.rank() > 5)
    refuse(operand, "a tensor of rank 3 (N, C, W), 4 (N, C, H, W) or 5 (N, C, D, H, W)",
           to_string(tensor), tensor.rank() == 2 ? "add a dimension of 1 for the images" : "");
  if (tensor.element_count() == 0 || tensor.extent(1) <= 1 || tensor.stride(1) == 1) return;
  refuse(operand, "adjacent channels (dimension 1): the memory format channels last",
         to_string(tensor),
         tensor.rank() == 5
             ? "x.contiguous(memory_format=torch.channels_last_3d); numpy.moveaxis(x, -1, 1) of "
               "an array (N, D, H, W, C)"
             : "x.contiguous(memory_format=torch.channels_last); numpy.moveaxis(x, -1, 1) of an "
               "array (N, H, W, C)",
         ErrorKind::unsupported);
}

Tensor operand_view(std::string_view operand, const Tensor& tensor) {
  check_operand(operand, tensor);
  return channels_last(tensor, tensor.rank());
}

Tensor epilogue_view(std::string_view operand, const Tensor& tensor, const Tensor& out) {
  bool fits = tensor.rank() <= out.rank() && !tensor.has_pointers();
  for (int d = 1; fits && d <= tensor.rank(); ++d) {
    const std::int64_t extent = tensor.extent(tensor.rank() - d);
    fits = extent == 1 || extent == out.extent(out.rank() - d);
  }
  if (!fits)
    refuse(operand, "a shape that broadcasts to that of " + to_string(out), to_string(tensor),
           "torch's order: a number for each channel is (C, 1, 1), or (C, 1) in one dimension");
  return channels_last(tensor, out.rank());
}

// --- numbers -------------------------------------------------------------------------------------

// Of numbers: bytes are one, too, but mean text.
bool is_sequence(nb::handle given) {
  return PySequence_Check(given.ptr()) != 0 && !nb::isinstance<nb::str>(given) &&
         !nb::isinstance<nb::bytes>(given) && !nb::isinstance<nb::bytearray>(given);
}

PerDimension read_numbers(nb::handle given, std::string_view name) {
  std::int64_t number = 0;
  if (nb::try_cast(given, number)) return number;
  std::vector<std::int64_t> numbers;
  if (!is_sequence(given))
    refuse(name, "a whole number, or one for each spatial dimension", class_name(given));
  for (const nb::handle one : given) {
    if (!nb::try_cast(one, number)) refuse(name, "whole numbers", class_name(one));
    numbers.push_back(number);
  }
  return PerDimension(std::span<const std::int64_t>(numbers));
}

std::int64_t number_of(const PerDimension& numbers, std::size_t d) {
  return d < numbers.count() || numbers.count() == 1 ? numbers[d] : 1;
}

// torch's padding="same": as many outputs as pixels; the larger half of the padding is at the end.
void pad_same(const Tensor& filter, ConvSettings& settings) {
  std::vector<std::int64_t> lower, upper;
  for (int d = 2; d < filter.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d - 2);
    if (number_of(settings.stride, at) != 1)
      refuse("padding", "numbers where the stride is not 1", "\"same\"");
    const std::int64_t total = number_of(settings.dilation, at) * (filter.extent(d) - 1);
    lower.push_back(total / 2);
    upper.push_back(total - total / 2);
  }
  settings.padding = PerDimension(std::span<const std::int64_t>(lower));
  settings.upper_padding = PerDimension(std::span<const std::int64_t>(upper));
}

void read_padding(nb::handle padding, nb::handle upper, const Tensor& filter,
                  ConvSettings& settings) {
  if (!nb::isinstance<nb::str>(padding)) {
    settings.padding = read_numbers(padding, "padding");
    if (!upper.is_none()) settings.upper_padding = read_numbers(upper, "upper_padding");
    return;
  }
  const auto word = nb::cast<std::string>(padding);
  if (!upper.is_none()) refuse("upper_padding", "none with a padding in words", "one");
  if (word == "same") return pad_same(filter, settings);
  if (word != "valid") refuse("padding", "numbers, \"same\" or \"valid\"", "\"" + word + "\"");
}

// --- construction --------------------------------------------------------------------------------

GemmOptions channels_last(const GemmOptions& options, const Tensor& out) {
  GemmOptions views = options;
  if (options.c) views.c = epilogue_view("C", *options.c, out);
  if (!options.epilogue) return views;
  std::vector<EpilogueOperand> operands = options.epilogue->operands();
  for (EpilogueOperand& operand : operands)
    if (auto* const tensor = std::get_if<Tensor>(&operand.value))
      *tensor = epilogue_view(operand.name, *tensor, out);
  views.epilogue.emplace(options.epilogue->program(), std::move(operands));
  return views;
}

void construct_convolution(PyConvArguments* self, std::string_view kind, nb::handle A, nb::handle B,
                           nb::handle out, nb::handle accumulator, nb::handle stride,
                           nb::handle padding, nb::handle upper_padding, nb::handle dilation,
                           std::int64_t groups, std::string_view mode, nb::handle epilogue,
                           nb::handle performance, nb::handle C, double alpha, double beta,
                           std::string_view math) {
  PyConvArguments arguments;
  arguments.epilogue = nb::borrow(epilogue);
  arguments.performance = nb::borrow(performance);
  read_common(arguments);
  const auto which = read_word<ConvKind>(kind, parse_conv_kind, "kind", "fprop, dgrad or wgrad");
  arguments.A = import_tensor(A, "A");
  arguments.B = import_tensor(B, "B");
  arguments.out = import_result(out, "out");
  if (!C.is_none()) arguments.C = import_tensor(C, "C");
  const Tensor& result = arguments.result().view;
  ConvSettings settings{.stride = read_numbers(stride, "stride"),
                        .dilation = read_numbers(dilation, "dilation"),
                        .groups = groups,
                        .mode = read_word<ConvMode>(mode, parse_conv_mode, "mode",
                                                    "cross_correlation or convolution")};
  read_padding(padding, upper_padding, which == ConvKind::wgrad ? result : arguments.B.view,
               settings);
  const Tensor a = operand_view("A", arguments.A.view);
  const Tensor b = operand_view("B", arguments.B.view);
  const Tensor d = operand_view("out", result);
  const DType accumulator_type = accumulator.is_none() ? default_accumulator(a.dtype(), b.dtype())
                                                       : to_dtype(accumulator, "accumulator_type");
  arguments.native.emplace(
      ConvArguments(which, a, b, d, accumulator_type, settings,
                    channels_last(options_of(arguments, alpha, beta, to_math(math)), result))
          .as_gemm());
  note_memory(arguments);
  new (self) PyConvArguments(std::move(arguments));
}

[[noreturn]] void refuse_conv_staging(const PyConvArguments&, nb::handle) {
  refuse("to_device", "arguments of a GEMM", "those of a convolution",
         "copy the tensors to the device and make new arguments", ErrorKind::unsupported);
}

}  // namespace

void bind_convolution(nb::module_& module) {
  nb::class_<PyConvArguments, PyGemmArguments>(module, "ConvArguments", doc("ConvArguments"))
      .def("__init__", &construct_convolution, nb::arg("kind"), nb::arg("A").none(),
           nb::arg("B").none(), nb::arg("out").none(),
           nb::arg("accumulator_type").none() = nb::none(), nb::kw_only(), nb::arg("stride") = 1,
           nb::arg("padding") = 0, nb::arg("upper_padding").none() = nb::none(),
           nb::arg("dilation") = 1, nb::arg("groups") = 1, nb::arg("mode") = "cross_correlation",
           nb::arg("epilogue").none() = nb::none(), nb::arg("performance").none() = nb::none(),
           nb::arg("C").none() = nb::none(), nb::arg("alpha") = 1.0, nb::arg("beta") = 0.0,
           nb::arg("math") = "native")
      .def("to_device", &refuse_conv_staging, nb::arg("device").none() = nb::none(),
           doc("ConvArguments.to_device"));
}

}  // namespace gemmery::python
