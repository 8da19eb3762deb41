// SPDX-License-Identifier: Apache-2.0
// The tests of users' code on an emulated H200.
#include "tests/providers/user/tiled_kernel.hpp"

gemmery::Device gemmery::tests::device_under_test() { return *parse_device("emulated:h200"); }
