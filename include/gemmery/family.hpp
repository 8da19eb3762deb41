// SPDX-License-Identifier: Apache-2.0
// A family: a kernel template with its designs; it answers queries. Implement one and register it,
// and its kernels take part in discovery.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/device.hpp>
#include <gemmery/export.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

namespace gemmery {

// The question of discovery: which kernels run this problem on this device? Equal queries get equal
// answers.
struct Query {
  const GemmProblem& problem;
  const DeviceInfo& device;  // its target says whether memory is the CPU's or a GPU's
  // Set if the query is about arguments. Their numbers (alpha, beta) are not part of the problem:
  // they may make a family refuse, but never select another kernel. Sizes of groups in host memory
  // are not part of it either; predicted times may depend on them.
  const GemmArguments* arguments = nullptr;
};

// Why a family, or one of its design classes, does not support a query, or how many of its kernels
// do.
struct Reason {
  std::string provider = {};
  std::string family = {};
  std::string design_class = {};     // "128x128x16"; empty for the whole family
  std::string failed = {};           // the first constraint that failed; empty if kernels fit
  int fitting = 0;                   // kernels that support the query
  std::vector<Kernel> nearest = {};  // kernels that nearly fit, at most three
};

// A registered family lives as long as the process. All functions must be safe to call
// concurrently.
class GEMMERY_API Family {
 public:
  virtual ~Family();

  virtual std::string_view provider() const noexcept = 0;
  virtual std::string_view name() const noexcept = 0;
  virtual int version() const noexcept = 0;

  // Success if the family's libraries are present, else for example "unavailable: libdnnl.so.3 not
  // found, looked in …".
  virtual Status availability() const { return Status::success(); }

  // Success if kernels of this family can fuse the problem's epilogue, else which node of its
  // program they cannot compute, and why. The base class accepts the default program only. `match`,
  // `explain` and `supports` are only called for epilogues that are accepted here.
  virtual Status carries(const GemmProblem& problem) const;

  // True if kernels of this family take batches by pointers (Tensor). Otherwise `match` and
  // `explain` are not called for problems with one, and `supports` refuses it by the operand's
  // name.
  virtual bool takes_pointers() const noexcept { return false; }

  // True if kernels of this family take groups of this form (GroupedGemmArguments). Otherwise, the
  // same as for pointers.
  virtual bool takes_groups(const Groups&) const noexcept { return false; }

  // True if kernels of this family take these groups with gather or scatter indices; `takes_groups`
  // must hold, too.
  virtual bool takes_indices(const Groups&) const noexcept { return false; }

  // True if kernels of this family take this convolution (ConvArguments). Otherwise, the same as
  // for pointers. A convolution that is a plain GEMM is passed to every family as a GEMM.
  virtual bool takes_convolution(const Convolution&) const noexcept { return false; }

  // True if kernels of this family, such as those of a vendor's library, come after all others in a
  // list, whatever time is predicted, until they have been measured.
  virtual bool ranks_last_until_measured() const noexcept { return false; }

  // True if kernels of this family read the scales and zero points of this problem's operands.
  // Otherwise, the same as for pointers. Families never see scales that do not vary along k, but an
  // epilogue that multiplies the sums by them.
  virtual bool takes_companions(const GemmProblem&) const noexcept { return false; }

  // True if kernels of this family take operands that are prepared (ElementOrder::fragments), which
  // are companions, too. Otherwise, the same as for pointers.
  virtual bool takes_prepared(const GemmProblem&) const noexcept { return false; }

  // True if kernels of this family apply the programs of this problem's operands
  // (operand_program.hpp), which are companions, too. Otherwise, the same as for pointers, with the
  // program's first operation as the node that they cannot compute.
  virtual bool takes_operand_programs(const GemmProblem&) const noexcept { return false; }

  // Appends every kernel that supports the query, with its predicted time.
  virtual void match(const Query& query, std::vector<RankedKernel>& kernels) const = 0;

  // Appends at least one reason: why not, or how many fit.
  virtual void explain(const Query& query, std::vector<Reason>& reasons) const = 0;

  // Calls `visit` with every kernel of the family once, in a fixed order.
  virtual void enumerate(const std::function<void(const Kernel&)>& visit) const = 0;

  // The name identifies the kernel completely; `parse_name` reads it back and returns nullopt for
  // names of other families.
  virtual std::string kernel_name(const Kernel& kernel) const = 0;
  virtual std::optional<Kernel> parse_name(std::string_view kernel_name) const = 0;
  virtual std::vector<DesignField> design_fields(const Kernel& kernel) const = 0;
  virtual std::vector<Target> targets(const Kernel& kernel) const = 0;
  // True if equal inputs give equal bits on one device.
  virtual bool is_deterministic(const Kernel&) const { return true; }

  // The facts of a device on which this family's kernels run; nullptr for devices of another type
  // (such as "cpu" for a GPU family). Throws Error (unavailable) for a missing device of the right
  // type.
  virtual const DeviceInfo* device_info(Device device) const = 0;

  // The target of `targets(kernel)` whose code runs on this device; any of them if there is none.
  virtual Target target_for(const Kernel& kernel, const DeviceInfo& device) const = 0;

  // Checks conditions that operand rules cannot express. The rules, the target and the availability
  // have been checked before.
  virtual Status supports(const Kernel& kernel, const Query& query) const = 0;

  virtual std::size_t workspace_bytes(const Kernel& kernel,
                                      const GemmArguments& arguments) const = 0;

  // Compiled code for a target, from the process-wide store or built now (once, from any number of
  // threads).
  virtual Artifact compile(const Kernel& kernel, Target target) const = 0;

  // Runs without a given artifact: takes it from the process-wide store, or compiles and loads
  // first. If the stream is being captured, it throws Error (unsupported) naming `compile` instead,
  // before any call that would end the capture.
  virtual void run(const Kernel& kernel, const GemmArguments& arguments,
                   const RunOptions& options) const = 0;
};

}  // namespace gemmery
