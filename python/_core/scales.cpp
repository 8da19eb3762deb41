// SPDX-License-Identifier: Apache-2.0
// Blocks and layouts of scales.
#include <array>
#include <string>
#include <utility>

#include <gemmery/scale_conversion.hpp>
#include <gemmery/scales.hpp>

#include <nanobind/stl/array.h>

#include "arguments.hpp"
#include "bindings.hpp"
#include "docs.hpp"
#include "tensors.hpp"

namespace gemmery::python {
namespace {

std::pair<std::int32_t, std::int32_t> parse_block(std::string_view word) {
  if (const std::optional<ScaleBlock> block = parse_scale_block(word))
    return {block->rows, block->k};
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "mode",
               .expected = "tensor, row, ROWSxK such as 1x128 or 128xall, or torch's names of them",
               .got = "\"" + std::string(word) + "\""});
}

std::int64_t count_scales(std::int64_t rows, std::int64_t k, std::int32_t block_rows,
                          std::int32_t block_k, bool is_swizzled) {
  return scale_count(rows, k, {block_rows, block_k},
                     is_swizzled ? ScaleLayout::swizzled_128x4 : ScaleLayout::strided);
}

nb::object swizzle(nb::handle given, nb::handle out) {
  const ImportedTensor scales = import_tensor(given, "scales");
  if (!out.is_none()) {
    swizzle_scales(scales.view, import_result(out, "out").view);
    return nb::borrow(out);
  }
  if (scales.view.rank() != 2)
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "scales",
                 .expected = "rank 2 (rows, blocks of k)",
                 .got = to_string(scales.view)});
  const std::array<std::int64_t, 1> shape{
      swizzled_scale_count(scales.view.extent(0), scales.view.extent(1), {1, 1})};
  ImportedTensor made = allocate(shape, scales.view.dtype(), Device::cpu());
  made.base = nb::none();
  swizzle_scales(scales.view, made.view);
  return nb::cast(std::move(made));
}

nb::object unswizzle(nb::handle given, nb::handle out) {
  unswizzle_scales(import_tensor(given, "swizzled").view, import_result(out, "out").view);
  return nb::borrow(out);
}

nb::object copy_to_device(nb::handle tensor, nb::handle device) {
  return nb::cast(copied_to(import_tensor(tensor, "tensor"), to_device(device, "device")));
}

std::array<float, 16> parse_table(std::string_view word) {
  if (const std::optional<CodeTable> table = parse_code_table(word)) return table->values;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "table",
               .expected = "nf4, nf4.bf16, nf4.f16 or sixteen numbers",
               .got = "\"" + std::string(word) + "\""});
}

}  // namespace

void bind_scales(nb::module_& module) {
  module.def("parse_scale_block", &parse_block, nb::arg("word"), doc("parse_scale_block"));
  module.def("copy_to_device", &copy_to_device, nb::arg("tensor"), nb::arg("device"),
             doc("copy_to_device"));
  module.def("parse_code_table", &parse_table, nb::arg("word"), doc("parse_code_table"));
  module.def("scale_count", &count_scales, nb::arg("rows"), nb::arg("k"), nb::arg("block_rows"),
             nb::arg("block_k"), nb::arg("is_swizzled"), doc("scale_count"));
  module.def("swizzle_scales", &swizzle, nb::arg("scales"), nb::arg("out").none() = nb::none(),
             doc("swizzle_scales"));
  module.def("unswizzle_scales", &unswizzle, nb::arg("swizzled"), nb::arg("out"),
             doc("unswizzle_scales"));
}

}  // namespace gemmery::python
