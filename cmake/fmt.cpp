// SPDX-License-Identifier: Apache-2.0
// fmt, compiled once for everything that links gemmery_fmt_objects: left to each unit that formats
// something, its number formatting would be most of what that unit costs to compile.

#ifdef FMT_HEADER_ONLY
// An old fmt, which stays in every unit that uses it (GemmeryDependencies.cmake).
#include <fmt/format.h>
#else
#include <fmt/format-inl.h>

// The templates that fmt's headers leave to one unit, for the character type and the numbers that
// we format.
namespace fmt {
namespace detail {

template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
template auto dragonbox::to_decimal<float>(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal<double>(double) noexcept -> dragonbox::decimal_fp<double>;
#if FMT_VERSION >= 100000 && FMT_VERSION < 120000
template void vformat_to<char>(buffer<char>&, string_view, vformat_args<>::type, locale_ref);
#endif
#if FMT_VERSION < 120000
template auto locale_ref::get<std::locale>() const -> std::locale;
#endif

}  // namespace detail

#if FMT_VERSION >= 120000
template auto locale_ref::get<std::locale>() const -> std::locale;
#endif

}  // namespace fmt
#endif
