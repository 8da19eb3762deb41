// SPDX-License-Identifier: Apache-2.0
// The manual, docs/cli.md, embedded by the build, and the parts of it that --help prints.
#pragma once

#include <string_view>

namespace gemmery::cli {

// The whole page.
std::string_view manual();

// Everything before the first verb's section.
std::string_view manual_overview();

// The section of one verb, with its heading; empty if there is none.
std::string_view manual_section(std::string_view verb);

}  // namespace gemmery::cli
