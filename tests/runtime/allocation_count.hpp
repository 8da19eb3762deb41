// SPDX-License-Identifier: Apache-2.0
// The number of allocations of this thread. Linking this replaces the global operator new.
#pragma once

namespace gemmery::tests {

long allocation_count() noexcept;

}  // namespace gemmery::tests
