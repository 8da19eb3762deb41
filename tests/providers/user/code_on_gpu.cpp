// SPDX-License-Identifier: Apache-2.0
// The tests of users' code on the first GPU.
#include "tests/providers/user/tiled_kernel.hpp"

gemmery::Device gemmery::tests::device_under_test() { return Device::cuda(0); }
