// SPDX-License-Identifier: Apache-2.0
// Weights of checkpoints, and prepared weights, converted to memory of the library.
#include <array>
#include <optional>
#include <tuple>

#include <gemmery/checkpoints.hpp>
#include <gemmery/prepare.hpp>

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

#include "arguments.hpp"
#include "bindings.hpp"
#include "docs.hpp"
#include "kernels.hpp"
#include "tensors.hpp"

namespace gemmery::python {
namespace {

std::optional<Tensor> view_of(nb::handle given, std::string_view role) {
  if (given.is_none()) return std::nullopt;
  return import_tensor(given, role).view;
}

// Memory of (rows, columns) with these strides; packed, row major without.
ImportedTensor make(std::int64_t rows, std::int64_t columns, DType dtype,
                    bool is_row_major = true) {
  const std::array shape{rows, columns};
  const std::array strides{std::int64_t{1}, rows};
  ImportedTensor made = allocate(shape, dtype, Device::cpu(),
                                 is_row_major ? std::span<const std::int64_t>{} : strides);
  made.base = nb::none();
  return made;
}

std::int64_t extent_of(const Tensor& tensor, int dimension) {
  return tensor.rank() == 2 ? tensor.extent(dimension) : 0;
}

nb::object as_object(std::optional<ImportedTensor>&& tensor) {
  return tensor ? nb::cast(std::move(*tensor)) : nb::none();
}

std::int64_t count_groups(std::int64_t k, std::int64_t group) {
  return group <= 0 ? 1 : (k + group - 1) / group;
}

nb::tuple gptq(nb::handle qweight, nb::handle qzeros, nb::handle g_idx, std::int64_t group,
               int version) {
  const GptqWeight weight{.qweight = import_tensor(qweight, "qweight").view,
                          .qzeros = view_of(qzeros, "qzeros"),
                          .g_idx = view_of(g_idx, "g_idx"),
                          .group = group,
                          .version = version};
  const std::int64_t k = 8 * extent_of(weight.qweight, 0), n = extent_of(weight.qweight, 1);
  ImportedTensor codes = make(k, n, weight.qzeros ? DType::uint4 : DType::int4, false);
  std::optional<ImportedTensor> zeros, order;
  if (weight.qzeros) zeros = make(count_groups(k, group), n, DType::uint8);
  if (weight.g_idx) {
    order = allocate(std::array{k}, DType::int32, Device::cpu());
    order->base = nb::none();
  }
  const auto view = [](const auto& tensor) {
    return tensor ? std::optional(tensor->view) : std::nullopt;
  };
  if (!import_gptq(weight, codes.view, view(zeros), view(order))) order.reset();
  return nb::make_tuple(nb::cast(std::move(codes)), as_object(std::move(zeros)),
                        as_object(std::move(order)));
}

nb::tuple awq(nb::handle qweight, nb::handle qzeros, std::int64_t group) {
  const AwqWeight weight{.qweight = import_tensor(qweight, "qweight").view,
                         .qzeros = import_tensor(qzeros, "qzeros").view,
                         .group = group};
  const std::int64_t k = extent_of(weight.qweight, 0), n = 8 * extent_of(weight.qweight, 1);
  ImportedTensor codes = make(k, n, DType::uint4, false);
  ImportedTensor zeros = make(count_groups(k, group), n, DType::uint8);
  import_awq(weight, codes.view, zeros.view);
  return nb::make_tuple(nb::cast(std::move(codes)), nb::cast(std::move(zeros)));
}

nb::tuple marlin(nb::handle qweight, nb::handle scales, std::int64_t group) {
  const MarlinWeight weight{.qweight = import_tensor(qweight, "qweight").view,
                            .scales = import_tensor(scales, "scales").view,
                            .group = group};
  const std::int64_t k = 16 * extent_of(weight.qweight, 0), n = extent_of(weight.qweight, 1) / 2;
  ImportedTensor codes = make(k, n, DType::int4, false);
  ImportedTensor made = make(count_groups(k, group), n, weight.scales.dtype());
  import_marlin(weight, codes.view, made.view);
  return nb::make_tuple(nb::cast(std::move(codes)), nb::cast(std::move(made)));
}

nb::tuple blockwise(nb::handle given, nb::handle absmax, std::int64_t n, std::int64_t k,
                    std::int64_t block, nb::handle code, nb::handle nested,
                    std::int64_t nested_block, double offset) {
  const BlockwiseWeight weight{.codes = import_tensor(given, "codes").view,
                               .absmax = import_tensor(absmax, "absmax").view,
                               .block = block,
                               .nested_code = view_of(code, "nested_code"),
                               .nested_absmax = view_of(nested, "nested_absmax"),
                               .nested_block = nested_block,
                               .offset = offset};
  const std::int64_t group = scale_group(k, block);
  ImportedTensor codes = make(k, n, DType::uint4, false);
  ImportedTensor scales = make(group > 0 ? k / group : 0, n, DType::float32, false);
  import_blockwise(weight, codes.view, scales.view);
  return nb::make_tuple(nb::cast(std::move(codes)), nb::cast(std::move(scales)), group);
}

// Memory for a prepared weight, or for one of each group.
ImportedTensor make_prepared(const Tensor& codes) {
  if (codes.rank() != 3)
    return make(extent_of(codes, 0), extent_of(codes, 1), codes.dtype(), false);
  const std::int64_t k = codes.extent(1), n = codes.extent(2);
  const std::array shape{codes.extent(0), k, n};
  const std::array strides{k * n, std::int64_t{1}, k};
  ImportedTensor made = allocate(shape, codes.dtype(), Device::cpu(), strides);
  made.base = nb::none();
  return made;
}

// A prepared weight lies where it lay.
nb::object prepare(nb::handle given, const std::optional<std::array<float, 16>>& table,
                   nb::handle kernel) {
  const ImportedTensor codes = import_tensor(given, "B");
  const bool is_on_cpu = codes.view.device().is_cpu();
  const ImportedTensor here = is_on_cpu ? ImportedTensor{} : copied_to(codes, Device::cpu());
  ScaledOperand weight(is_on_cpu ? codes.view : here.view);
  if (table) weight.table = CodeTable{*table};
  ImportedTensor made = make_prepared(codes.view);
  if (kernel.is_none())
    prepare_operand(weight, made.view);
  else
    prepare_operand(weight, made.view, nb::cast<const PyKernel&>(kernel).kernel);
  return nb::cast(is_on_cpu ? std::move(made) : copied_to(made, codes.view.device()));
}

}  // namespace

void bind_checkpoints(nb::module_& module) {
  module.def("prepare_codes", &prepare, nb::arg("codes"), nb::arg("table").none(),
             nb::arg("kernel").none(), doc("prepare_codes"));
  module.def("import_gptq", &gptq, nb::arg("qweight"), nb::arg("qzeros").none(),
             nb::arg("g_idx").none(), nb::arg("group"), nb::arg("version"), doc("import_gptq"));
  module.def("import_awq", &awq, nb::arg("qweight"), nb::arg("qzeros"), nb::arg("group"),
             doc("import_awq"));
  module.def("import_marlin", &marlin, nb::arg("qweight"), nb::arg("scales"), nb::arg("group"),
             doc("import_marlin"));
  module.def("import_blockwise", &blockwise, nb::arg("codes"), nb::arg("absmax"), nb::arg("n"),
             nb::arg("k"), nb::arg("block"), nb::arg("nested_code").none(),
             nb::arg("nested_absmax").none(), nb::arg("nested_block"), nb::arg("offset"),
             doc("import_blockwise"));
}

}  // namespace gemmery::python
