// SPDX-License-Identifier: Apache-2.0
// What `tune` has stored, as discovery uses it: the winner of a problem is ranked first.
#pragma once

#include <gemmery/discovery.hpp>
#include <gemmery/family.hpp>
#include <gemmery/kernel.hpp>

#include <memory>
#include <string>
#include <vector>

#include "tune/choices.hpp"
#include "tune/tuning_file.hpp"

namespace gemmery::api {

// The file of stored results, by the environment (docs/tuning.md). Throws Error: unavailable if
// there is no place for it, invalid_argument for a variable that cannot be parsed.
tuning::TuningFile tuning_file();

// The stored result that holds for a query; nullptr if there is none. The file is looked at no more
// often than once a second.
using ChoicePointer = std::shared_ptr<const tuning::Choice>;
ChoicePointer find_choice(const Query& query);

// The file is looked at again by the next query.
void forget_choices_read() noexcept;

// Puts the choice's kernel first, with its measured time, if it is in the list.
void rank_first(const tuning::Choice& choice, std::vector<RankedKernel>& kernels);

// For `explain`: which stored results a problem has, and why they are used or not; "" without any.
std::string describe_choices(const Query& query, const Filter& filter);

// Kernels by model and history alone, best first.
std::vector<RankedKernel> rank_without_choices(const Query& query, const Filter& filter);

}  // namespace gemmery::api
