// SPDX-License-Identifier: Apache-2.0
// Epilogues as part of kernels: which one serves which problem, in whose words it does not, and how
// names carry it.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/status.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace gemmery::kernel {

// Whether a kernel made for one epilogue runs a problem with another: the same program on operands
// that lie alike, at addresses that are aligned as well or better.
bool serves_epilogue(EpilogueId kernel, EpilogueId problem) noexcept;

// The same with what differs in words.
Status check_epilogue(EpilogueId kernel, EpilogueId problem);

// "epilogue: ..." about one node of a program's graph, counted as in Graph::nodes.
Status refuse_node(EpilogueId epilogue, std::size_t node, std::string_view why);

// What a kernel's name ends in: "_e-0123456789ab", or nothing for the default program.
std::string epilogue_suffix(EpilogueId epilogue);

// Takes such an ending off a name. Nothing where it names an epilogue that this process has not
// met.
std::optional<EpilogueId> take_epilogue_suffix(std::string_view& name);

}  // namespace gemmery::kernel
