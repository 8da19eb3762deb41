// SPDX-License-Identifier: Apache-2.0
// The manual as text, wrapped to a terminal's width.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gemmery::cli {

// Markdown of the manual as text: headings lose their marks; paragraphs, usage lines and
// descriptions of options are wrapped. Examples are not wrapped, so that they can be copied.
std::string as_text(std::string_view markdown, std::size_t columns);

// The verbs: the manual up to its first heading.
std::string first_page(std::size_t columns);

// The manual up to the first verb's section.
std::string help_overview(std::size_t columns);

// A verb's section, and the descriptions of its options that the manual has once for several verbs.
std::string help_of_verb(std::string_view verb, std::span<const std::string> options,
                         std::size_t columns);

// The whole manual as a page for man(1).
std::string as_man_page();

}  // namespace gemmery::cli
