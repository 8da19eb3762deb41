// SPDX-License-Identifier: Apache-2.0
// Everything that a user may include.
#pragma once

#include <gemmery/export.hpp>  // first: it refuses compilers below C++20

#include <gemmery/arguments.hpp>
#include <gemmery/artifact.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/cache.hpp>
#include <gemmery/checkpoints.hpp>
#include <gemmery/conv_arguments.hpp>
#include <gemmery/convolution.hpp>
#include <gemmery/device.hpp>
#include <gemmery/device_facts.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/dlpack.hpp>
#include <gemmery/doctor.hpp>
#include <gemmery/dtype.hpp>
#include <gemmery/elementwise.hpp>
#include <gemmery/emulate.hpp>
#include <gemmery/emulator.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>
#include <gemmery/export.hpp>
#include <gemmery/family.hpp>
#include <gemmery/functors.hpp>
#include <gemmery/grouped.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/history.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/log.hpp>
#include <gemmery/measure.hpp>
#include <gemmery/operand_program.hpp>
#include <gemmery/operand_program_text.hpp>
#include <gemmery/prepare.hpp>
#include <gemmery/print.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/scale_conversion.hpp>
#include <gemmery/scales.hpp>
#include <gemmery/status.hpp>
#include <gemmery/stream.hpp>
#include <gemmery/target.hpp>
#include <gemmery/tensor.hpp>
#include <gemmery/tune.hpp>
#include <gemmery/tuning_entry.hpp>
#include <gemmery/user_kernel.hpp>
#include <gemmery/verify.hpp>
#include <gemmery/version.hpp>
