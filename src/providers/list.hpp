// SPDX-License-Identifier: Apache-2.0
// The providers that come with the library.
#pragma once

namespace gemmery::providers {

// Adds every family of every built-in provider to the registry, best provider first; once.
void register_built_in();

}  // namespace gemmery::providers
