// SPDX-License-Identifier: Apache-2.0
// The library's values as records for JSON and CSV. Field names are part of the command line's
// interface.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/measure.hpp>
#include <gemmery/verify.hpp>

#include "cli/device_choice.hpp"
#include "cli/output.hpp"

namespace gemmery::cli {

Record to_record(const Metadata& metadata);

// Adds the device's fields to a record.
void add_device(Record& record, const ChosenDevice& device);
void add_measurement(Record& record, const Measurement& measurement);
void add_verification(Record& record, const VerifyReport& report);

}  // namespace gemmery::cli
