// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/companions.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "device/abi/scale_layout.hpp"
#include "operation/companions.hpp"

namespace gemmery::templates {
namespace {

abi::DType abi_type(DType dtype) noexcept { return static_cast<abi::DType>(dtype); }
std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

abi::CompanionParams companion_params(const CompanionType& type, const Tensor& values,
                                      std::int64_t k) {
  const std::int64_t blocks = type.block.k == 0 ? 1 : (k + type.block.k - 1) / type.block.k;
  return {.data = values.data(),
          .batch_stride = values.extent(0) == 1 ? 0 : type.values.batch_stride,
          .row_stride = type.values.row_stride,
          .k_stride = type.values.column_stride,
          .tiles = type.layout == ScaleLayout::swizzled_128x4 ? abi::swizzled_tiles(blocks) : 0,
          .rows = block_divisor(type.block.rows),
          .k = block_divisor(type.block.k)};
}

}  // namespace

abi::CompanionTypes companion_types(const CompanionRules& rules) noexcept {
  abi::CompanionTypes types;
  for (std::size_t i = 0; i < rules.scales.size(); ++i) {
    if (!rules.scales[i].is_used()) break;
    types.scales[i] = abi_type(rules.scales[i].dtype());
    types.are_swizzled[i] = rules.scales[i].layout() == ScaleLayout::swizzled_128x4;
    ++types.scale_count;
  }
  types.has_zero_point = rules.zero_point.is_used();
  if (types.has_zero_point) types.zero_point = abi_type(rules.zero_point.dtype());
  types.has_table = rules.has_table;
  types.is_prepared = rules.is_prepared;
  return types;
}

std::string companions_text(const abi::CompanionTypes& types) {
  return fmt::format(
      "{{.scale_count = {}, .scales = {{DType::{}, DType::{}}}, .are_swizzled = {{{}, {}}}, "
      ".has_zero_point = {}, .zero_point = DType::{}{}{}}}",
      types.scale_count, text_of(types.scales[0]), text_of(types.scales[1]), types.are_swizzled[0],
      types.are_swizzled[1], types.has_zero_point, text_of(types.zero_point),
      types.has_table ? ", .has_table = true" : "",
      types.is_prepared ? ", .is_prepared = true" : "");
}

abi::CompanionsParams companions_params(const OperandCompanions& types,
                                        const BoundCompanions& memory, std::int64_t k) {
  abi::CompanionsParams params{};
  for (std::size_t i = 0; i < types.scales.size(); ++i)
    params.scales[i] = companion_params(types.scales[i], memory.scales[i], k);
  if (types.zero_point)
    params.zero_point = companion_params(*types.zero_point, *memory.zero_point, k);
  if (types.table) std::ranges::copy(types.table->values, params.table);
  return params;
}

abi::FastDivisor block_divisor(std::int32_t block) noexcept {
  return abi::make_fast_divisor(block == 0 ? abi::whole_extent : static_cast<unsigned>(block));
}

}  // namespace gemmery::templates
