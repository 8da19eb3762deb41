// SPDX-License-Identifier: Apache-2.0
// Numbers with units, for people.
#pragma once

#include <cstdint>
#include <string>

namespace gemmery::cli {

std::string time_text(double microseconds);      // "8.43 ms"
std::string rate_text(double flops_per_second);  // "254 GFLOP/s"
std::string size_text(std::int64_t bytes);       // "1.50 MB"
std::string share_text(double share);            // "63.1 %"

}  // namespace gemmery::cli
