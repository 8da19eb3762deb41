// SPDX-License-Identifier: Apache-2.0
// The families that discovery asks, in the order of the providers. Reading takes no lock; adding is
// safe at any time.
#pragma once

#include <gemmery/family.hpp>

#include <memory>
#include <span>

namespace gemmery::kernel {

// Adds a family, which is never destroyed. Throws Error (invalid_argument) if one with the same
// provider and name exists.
void add_family(std::unique_ptr<Family> family);

// Removes it from the list; returns whether it was there. It is not destroyed.
bool remove_family(const Family& family);

// A snapshot that stays valid forever.
std::span<const Family* const> families() noexcept;

}  // namespace gemmery::kernel
