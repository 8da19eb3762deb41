// SPDX-License-Identifier: Apache-2.0
// How often this thread has allocated memory. Linking it replaces the global operator new.
#pragma once

namespace gemmery::tests {

long allocation_count() noexcept;

}  // namespace gemmery::tests
