// SPDX-License-Identifier: Apache-2.0
// A cache of discovery's answers. A GPU query walks hundreds of designs; its answer depends only on
// the problem, the device and the target while only the library's own families are registered.
#pragma once

#include <memory>
#include <optional>

#include <gemmery/device.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/target.hpp>

namespace gemmery::api {

struct AnswerKey {
  const GemmProblem& problem;
  const DeviceInfo& device;
  std::optional<Target> target;
  std::shared_ptr<const void> choice = {};  // the stored result by which the answer is ranked
};

// The cached answer for an equal key; nullptr if there is none. Both functions are safe to call
// from any thread. At most 128 answers are kept; a new one replaces an older one.
KernelList find_answer(const AnswerKey& key);
void keep_answer(const AnswerKey& key, const KernelList& answer);

}  // namespace gemmery::api
