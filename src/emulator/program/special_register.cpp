// SPDX-License-Identifier: Apache-2.0
// The names of the special registers.
#include "emulator/program/special_register.hpp"

#include <array>
#include <charconv>

namespace gemmery::emulator {
namespace {

enum class Form : std::uint8_t { scalar, vector, numbered };

struct Row {
  std::string_view name;
  SpecialRegister which;
  Form form = Form::scalar;
};

constexpr std::array rows{
    Row{"tid", SpecialRegister::tid, Form::vector},
    Row{"ntid", SpecialRegister::ntid, Form::vector},
    Row{"ctaid", SpecialRegister::ctaid, Form::vector},
    Row{"nctaid", SpecialRegister::nctaid, Form::vector},
    Row{"laneid", SpecialRegister::laneid},
    Row{"warpid", SpecialRegister::warpid},
    Row{"nwarpid", SpecialRegister::nwarpid},
    Row{"smid", SpecialRegister::smid},
    Row{"nsmid", SpecialRegister::nsmid},
    Row{"gridid", SpecialRegister::gridid},
    Row{"clusterid", SpecialRegister::clusterid, Form::vector},
    Row{"nclusterid", SpecialRegister::nclusterid, Form::vector},
    Row{"cluster_ctaid", SpecialRegister::cluster_ctaid, Form::vector},
    Row{"cluster_nctaid", SpecialRegister::cluster_nctaid, Form::vector},
    Row{"cluster_ctarank", SpecialRegister::cluster_ctarank},
    Row{"cluster_nctarank", SpecialRegister::cluster_nctarank},
    Row{"is_explicit_cluster", SpecialRegister::is_explicit_cluster},
    Row{"lanemask_eq", SpecialRegister::lanemask_eq},
    Row{"lanemask_le", SpecialRegister::lanemask_le},
    Row{"lanemask_lt", SpecialRegister::lanemask_lt},
    Row{"lanemask_ge", SpecialRegister::lanemask_ge},
    Row{"lanemask_gt", SpecialRegister::lanemask_gt},
    Row{"clock", SpecialRegister::clock},
    Row{"clock_hi", SpecialRegister::clock_hi},
    Row{"clock64", SpecialRegister::clock64},
    Row{"globaltimer", SpecialRegister::globaltimer},
    Row{"globaltimer_lo", SpecialRegister::globaltimer_lo},
    Row{"globaltimer_hi", SpecialRegister::globaltimer_hi},
    Row{"dynamic_smem_size", SpecialRegister::dynamic_smem_size},
    Row{"total_smem_size", SpecialRegister::total_smem_size},
    Row{"aggr_smem_size", SpecialRegister::aggr_smem_size},
    Row{"reserved_smem_offset_begin", SpecialRegister::reserved_smem_offset_begin},
    Row{"reserved_smem_offset_end", SpecialRegister::reserved_smem_offset_end},
    Row{"reserved_smem_offset_cap", SpecialRegister::reserved_smem_offset_cap},
    Row{"reserved_smem_offset_", SpecialRegister::reserved_smem_offset, Form::numbered},
    Row{"current_graph_exec", SpecialRegister::current_graph_exec},
    Row{"envreg", SpecialRegister::envreg, Form::numbered},
    Row{"pm", SpecialRegister::pm, Form::numbered},
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
  for (const Row& row : rows) {
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
