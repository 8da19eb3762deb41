// SPDX-License-Identifier: Apache-2.0
// Discovery: which kernels run these arguments, best first, and why the others do not.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/device.hpp>
#include <gemmery/export.hpp>
#include <gemmery/family.hpp>
#include <gemmery/history.hpp>
#include <gemmery/kernel.hpp>

namespace gemmery {

// Restricts the result. Empty fields have no effect.
struct Filter {
  std::function<bool(const Metadata&)> metadata = {};
  // "sm_90" means the device: kernels for sm_80 … sm_90 and sm_90a. Default: the target of
  // `environment_target`, which does not exclude the CPU's kernels.
  std::optional<Target> target = {};
  std::vector<std::string> providers =
      {};  // by name; an unknown one throws Error (invalid_argument) that lists the known ones
};

// Kernels that run these arguments on the device of their memory, best first. If the list is empty,
// `explain` has the reasons. On the CPU the last one is the reference, on a GPU those of
// simt, and after them those of vendors' libraries that have not been measured.
// Throws Error (unavailable) if the device is missing.
GEMMERY_API std::vector<RankedKernel> get_kernels(const GemmArguments& arguments,
                                                  const Filter& filter = {});

// The same for a problem on a device that this machine need not have.
GEMMERY_API std::vector<RankedKernel> get_kernels(const GemmProblem& problem,
                                                  const DeviceInfo& device,
                                                  const Filter& filter = {});

// The same lists without a copy. The library caches answers to GPU queries that no user's family,
// history or metadata filter can change; an equal query gets the same object.
using KernelList = std::shared_ptr<const std::vector<RankedKernel>>;
GEMMERY_API KernelList get_shared_kernels(const GemmArguments& arguments,
                                          const Filter& filter = {});
GEMMERY_API KernelList get_shared_kernels(const GemmProblem& problem, const DeviceInfo& device,
                                          const Filter& filter = {});

// Every kernel of every family, for all targets or the filter's.
GEMMERY_API std::vector<Kernel> get_kernels(const Filter& filter = {});
GEMMERY_API void for_each_kernel(const std::function<void(const Kernel&)>& visit,
                                 const Filter& filter = {});

// GEMMERY_TARGET_SM: the target of filters that name none. nullopt if it is not set; throws Error
// (invalid_argument) if it is invalid, as every function of discovery does then.
GEMMERY_API std::optional<Target> environment_target();

// The kernel whose `Kernel::name` is this, in this process or another one of this version; nullopt
// if no family has it. A name that ends in an epilogue's digest is known only to processes that
// have read its program, in a problem line or in arguments.
GEMMERY_API std::optional<Kernel> find_kernel(std::string_view kernel_name);

// For every family and design class: the first constraint that failed, or how many kernels fit. A
// filter by provider omits the reasons of other providers; a target counts as a constraint; a
// metadata filter is ignored.
struct Explanation {
  std::string problem;
  std::string device;
  std::vector<Reason> reasons;
  // The plain GEMM that families were asked about, if the operands' layout makes a convolution one;
  // otherwise empty.
  std::string runs_as = {};
  // The results of `tune` that are stored for the problem, and why they are used or not; empty
  // without any.
  std::string tuned = {};
};
GEMMERY_API Explanation explain(const GemmArguments& arguments, const Filter& filter = {});
GEMMERY_API Explanation explain(const GemmProblem& problem, const DeviceInfo& device,
                                const Filter& filter = {});
GEMMERY_API std::string to_string(const Explanation& explanation);

// True if the time models of kernels were fitted to measurements on this architecture: sm_90 and
// the CPU. Elsewhere a predicted time follows from the device's facts only (rates, bandwidth,
// caches, multiprocessors); it ranks kernels better than it predicts their times.
GEMMERY_API bool is_model_calibrated(Target target) noexcept;

// A problem that misses a much faster kernel only because of its operands' alignment: padded to 16
// bytes, it would take less than half of the predicted time.
struct PerformanceCliff {
  double predicted_us;  // of the first kernel for the problem as it is
  double padded_us;     // of the first kernel for the padded one
  Kernel missed;        // that kernel
  std::string failed;   // its family's constraint that the unpadded problem fails
};

// nullopt if padding would not help, and on the CPU. Discovery logs the same as one warning per
// problem and process, unless GEMMERY_WARN_CLIFFS is off.
GEMMERY_API std::optional<PerformanceCliff> find_cliff(const GemmProblem& problem,
                                                       const DeviceInfo& device);
GEMMERY_API std::string to_string(const PerformanceCliff& cliff);

// The devices of this machine, GPUs by index; and the facts of one (the CPU included). Throws Error
// (unavailable, with the places that were searched) for a missing device.
GEMMERY_API std::vector<Device> devices();
GEMMERY_API const DeviceInfo& device_info(Device device);

// The facts of a device by its name: "cpu", "cuda:1" or "emulated:h200" as `to_string(Device)`
// prints them, or one of `known_device_names()` ("h200"), which this machine need not have. Throws
// Error: invalid_argument for another name, with the names that exist; unavailable for a missing
// device.
GEMMERY_API const DeviceInfo& device_info(std::string_view name);

// Names of the providers, best first, including "user" even if it has no kernels yet.
GEMMERY_API std::vector<std::string> provider_names();

// Adds a family to discovery; seen by every later call. The family is never destroyed. Throws Error
// (invalid_argument) if a family of the same provider and name exists.
GEMMERY_API void register_family(std::unique_ptr<Family> family);

// Replaces the history that get_kernels uses; nullptr = none.
GEMMERY_API void set_history(std::shared_ptr<const History> history);

// Keeps a measured time in the history of this process (the one that is set by default).
GEMMERY_API void record_measurement(const GemmProblem& problem, const DeviceInfo& device,
                                    const Kernel& kernel, double microseconds);

}  // namespace gemmery
