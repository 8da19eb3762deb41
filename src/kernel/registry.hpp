// SPDX-License-Identifier: Apache-2.0
// The families that discovery asks, in the order of the providers. Reading takes no lock; adding is
// safe at any time.
#pragma once

#include <gemmery/family.hpp>

#include <memory>
#include <span>

namespace gemmery::kernel {

// Adds a family; it is never destroyed. Throws Error (invalid_argument) where one of its provider
// and name is there.
void add_family(std::unique_ptr<Family> family);

// Takes it out of the list; whether it was there. It is not destroyed.
bool remove_family(const Family& family);

// A snapshot that stays valid for ever.
std::span<const Family* const> families() noexcept;

}  // namespace gemmery::kernel
