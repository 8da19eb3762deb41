// SPDX-License-Identifier: Apache-2.0
// The names of the special registers.
#include "emulator/program/special_register.hpp"

#include <array>
#include <charconv>

namespace gemmery::emulator {
namespace {

enum class Form : std::uint8_t { scalar, vector, numbered };

struct RegisterRow {
  std::string_view name;
  SpecialRegister which;
  Form form = Form::scalar;
};

constexpr std::array register_rows{
    RegisterRow{"tid", SpecialRegister::tid, Form::vector},
    RegisterRow{"ntid", SpecialRegister::ntid, Form::vector},
    RegisterRow{"ctaid", SpecialRegister::ctaid, Form::vector},
    RegisterRow{"nctaid", SpecialRegister::nctaid, Form::vector},
    RegisterRow{"laneid", SpecialRegister::laneid},
    RegisterRow{"warpid", SpecialRegister::warpid},
    RegisterRow{"nwarpid", SpecialRegister::nwarpid},
    RegisterRow{"smid", SpecialRegister::smid},
    RegisterRow{"nsmid", SpecialRegister::nsmid},
    RegisterRow{"gridid", SpecialRegister::gridid},
    RegisterRow{"clusterid", SpecialRegister::clusterid, Form::vector},
    RegisterRow{"nclusterid", SpecialRegister::nclusterid, Form::vector},
    RegisterRow{"cluster_ctaid", SpecialRegister::cluster_ctaid, Form::vector},
    RegisterRow{"cluster_nctaid", SpecialRegister::cluster_nctaid, Form::vector},
    RegisterRow{"cluster_ctarank", SpecialRegister::cluster_ctarank},
    RegisterRow{"cluster_nctarank", SpecialRegister::cluster_nctarank},
    RegisterRow{"is_explicit_cluster", SpecialRegister::is_explicit_cluster},
    RegisterRow{"lanemask_eq", SpecialRegister::lanemask_eq},
    RegisterRow{"lanemask_le", SpecialRegister::lanemask_le},
    RegisterRow{"lanemask_lt", SpecialRegister::lanemask_lt},
    RegisterRow{"lanemask_ge", SpecialRegister::lanemask_ge},
    RegisterRow{"lanemask_gt", SpecialRegister::lanemask_gt},
    RegisterRow{"clock", SpecialRegister::clock},
    RegisterRow{"clock_hi", SpecialRegister::clock_hi},
    RegisterRow{"clock64", SpecialRegister::clock64},
    RegisterRow{"globaltimer", SpecialRegister::globaltimer},
    RegisterRow{"globaltimer_lo", SpecialRegister::globaltimer_lo},
    RegisterRow{"globaltimer_hi", SpecialRegister::globaltimer_hi},
    RegisterRow{"dynamic_smem_size", SpecialRegister::dynamic_smem_size},
    RegisterRow{"total_smem_size", SpecialRegister::total_smem_size},
    RegisterRow{"aggr_smem_size", SpecialRegister::aggr_smem_size},
    RegisterRow{"reserved_smem_offset_begin", SpecialRegister::reserved_smem_offset_begin},
    RegisterRow{"reserved_smem_offset_end", SpecialRegister::reserved_smem_offset_end},
    RegisterRow{"reserved_smem_offset_cap", SpecialRegister::reserved_smem_offset_cap},
    RegisterRow{"reserved_smem_offset_", SpecialRegister::reserved_smem_offset, Form::numbered},
    RegisterRow{"current_graph_exec", SpecialRegister::current_graph_exec},
    RegisterRow{"envreg", SpecialRegister::envreg, Form::numbered},
    RegisterRow{"pm", SpecialRegister::pm, Form::numbered},
};

// A number up to 255; nothing for other words.
std::optional<std::uint8_t> number_of(std::string_view word) noexcept {
  std::uint8_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<SpecialRegisterName> find_special_register(std::string_view name) noexcept {
  if (name.size() < 2 || name[0] != '%') return std::nullopt;
  std::string_view stem = name.substr(1);
  std::optional<std::uint8_t> dimension;
  if (stem.size() > 2 && stem[stem.size() - 2] == '.') {
    const auto at = std::string_view("xyzw").find(stem.back());
    if (at == std::string_view::npos) return std::nullopt;
    dimension = static_cast<std::uint8_t>(at);
    stem.remove_suffix(2);
  }
  for (const RegisterRow& row : register_rows) {
    if (row.form == Form::numbered) {
      if (dimension || !stem.starts_with(row.name)) continue;
      if (const auto number = number_of(stem.substr(row.name.size())))
        return SpecialRegisterName{row.which, *number};
    } else if (stem == row.name && dimension.has_value() == (row.form == Form::vector)) {
      return SpecialRegisterName{row.which, dimension.value_or(0)};
    }
  }
  return std::nullopt;
}

}  // namespace gemmery::emulator
