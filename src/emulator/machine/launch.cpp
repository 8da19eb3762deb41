// SPDX-License-Identifier: Apache-2.0
// A launch: checks its shape and runs its clusters, one after another on each host thread, or in
// turns on one thread if they communicate.
#include "emulator/machine/launch.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "emulator/check/fault_handler.hpp"
#include "emulator/machine/plan.hpp"
#include "emulator/machine/schedule.hpp"
#include "emulator/machine/wait_report.hpp"
#include "emulator/machine/warp.hpp"
#include "platform/cancellation.hpp"
#include "platform/float_mode.hpp"
#include "platform/parallel.hpp"

namespace gemmery::emulator {

namespace {

using Triple = std::array<std::uint32_t, 3>;

constexpr std::uint64_t default_step_limit = std::uint64_t{1} << 28;
constexpr std::uint32_t most_threads_per_cta = 1024;
constexpr std::uint32_t most_threads_per_multiprocessor = 2048;
constexpr std::uint32_t most_ctas_per_multiprocessor = 32;
constexpr std::uint32_t most_ctas_per_cluster = 16;
constexpr Triple most_threads = {1024, 1024, 64};
constexpr std::array<std::uint64_t, 3> most_ctas = {0x7fffffff, 0xffff, 0xffff};
constexpr char axis_names[] = "xyz";

std::uint64_t product(const Triple& extents) noexcept {
  return std::uint64_t{extents[0]} * extents[1] * extents[2];
}

std::string in_words(const Triple& extents) {
  return std::to_string(extents[0]) + "x" + std::to_string(extents[1]) + "x" +
         std::to_string(extents[2]);
}

// --- the shape -----------------------------------------------------------------------------------

[[noreturn]] void refuse(std::string operand, std::string expected, std::string got,
                         std::string hint = {}) {
  throw Error({.operand = std::move(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

void check_axes(const LaunchRequest& request) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::string suffix = std::string(".") + axis_names[axis];
    if (request.grid[axis] == 0 || request.grid[axis] > most_ctas[axis])
      refuse("grid" + suffix, "1 to " + std::to_string(most_ctas[axis]),
             std::to_string(request.grid[axis]));
    if (request.block[axis] == 0 || request.block[axis] > most_threads[axis])
      refuse("block" + suffix, "1 to " + std::to_string(most_threads[axis]),
             std::to_string(request.block[axis]));
    if (request.cluster[axis] == 0 || request.grid[axis] % request.cluster[axis] != 0)
      refuse("cluster" + suffix,
             "a divisor of grid" + suffix + " (" + std::to_string(request.grid[axis]) + ")",
             std::to_string(request.cluster[axis]));
  }
}

void check_counts(const LaunchRequest& request) {
  if (product(request.block) > most_threads_per_cta)
    refuse("block", "at most 1024 threads", in_words(request.block));
  if (product(request.cluster) > most_ctas_per_cluster)
    refuse("cluster", "at most 16 CTAs", in_words(request.cluster));
  if (product(request.grid) / product(request.cluster) > max_clusters)
    refuse("grid", "at most " + std::to_string(max_clusters) + " clusters", in_words(request.grid),
           "launch the rest as another grid");
}

void check_against_entry(const LaunchRequest& request, const Function& entry) {
  const bool has_most = entry.max_threads[0] != 0;
  if (has_most && product(request.block) > product(entry.max_threads))
    refuse("block",
           "at most " + in_words(entry.max_threads) + " threads (.maxntid of " + entry.name + ")",
           in_words(request.block), "raise __launch_bounds__ or launch fewer threads");
  if (entry.required_threads[0] != 0 && request.block != entry.required_threads)
    refuse("block", in_words(entry.required_threads) + " (.reqntid of " + entry.name + ")",
           in_words(request.block));
  if (entry.required_cluster[0] != 0 && request.cluster != entry.required_cluster)
    refuse("cluster",
           in_words(entry.required_cluster) + " (.reqnctapercluster of " + entry.name + ")",
           in_words(request.cluster), "launch with the cluster that __cluster_dims__ names");
}

void check_sizes(const LaunchRequest& request, const Grid& grid) {
  if (request.parameters.size() != request.image->parameter_bytes)
    refuse("parameters", std::to_string(request.image->parameter_bytes) + " bytes",
           std::to_string(request.parameters.size()));
  // The dynamic size is checked first, so that the sum cannot overflow.
  if (request.dynamic_shared_bytes > request.shared_bytes_per_cta ||
      grid.shared_bytes_per_cta() > request.shared_bytes_per_cta)
    refuse("shared memory",
           "at most " + std::to_string(request.shared_bytes_per_cta) + " bytes per CTA",
           std::to_string(request.image->static_shared_bytes) + " static and " +
               std::to_string(request.dynamic_shared_bytes) + " dynamic",
           "lower the number of stages or the tile");
}

Grid make_grid(const LaunchRequest& request, GlobalMemory& memory) {
  if (request.image == nullptr) refuse("image", "a kernel", "nullptr");
  check_axes(request);
  check_counts(request);
  if (request.image->entry != nullptr) check_against_entry(request, *request.image->entry);
  Grid grid;
  grid.image = request.image;
  grid.memory = &memory;
  grid.grid = request.grid;
  grid.block = request.block;
  grid.cluster = request.cluster;
  grid.dynamic_shared_bytes = request.dynamic_shared_bytes;
  grid.multiprocessors = request.multiprocessors;
  grid.parameters.assign(request.parameters.begin(), request.parameters.end());
  grid.seed = request.seed;
  grid.observer = request.observer;
  check_sizes(request, grid);
  return grid;
}

[[noreturn]] void throw_interrupted(const KernelImage& image) {
  throw Error({.kind = ErrorKind::launch,
               .operand = image.name,
               .expected = "a launch that runs to its end",
               .got = "one that was interrupted"});
}

// The memory behind %envreg1 and 2: its size, and the counter of the grid's barrier
// (cooperative_groups/details/driver_abi.h).
class GridWorkspace {
 public:
  explicit GridWorkspace(GlobalMemory& memory) : memory_(memory) {}
  GridWorkspace(const GridWorkspace&) = delete;
  GridWorkspace& operator=(const GridWorkspace&) = delete;
  ~GridWorkspace() {
    if (address_ != 0) memory_.free(address_);
  }

  std::uint64_t allocate() {
    constexpr std::array<std::uint32_t, 2> contents = {2 * sizeof(std::uint32_t), 0};
    address_ = memory_.allocate(sizeof contents);
    if (!memory_.copy_in(address_, contents.data(), sizeof contents))
      throw Error({.kind = ErrorKind::out_of_memory,
                   .operand = "the workspace of a cooperative launch",
                   .expected = "8 bytes of the device's memory",
                   .got = "none"});
    return address_;
  }

 private:
  GlobalMemory& memory_;
  std::uint64_t address_ = 0;
};

// --- running it ----------------------------------------------------------------------------------

class GridRun {
 public:
  GridRun(const LaunchRequest& request, GlobalMemory& memory)
      : request_(request),
        grid_(make_grid(request, memory)),
        plan_(*grid_.image),
        cluster_count_(
            static_cast<std::uint32_t>(product(request.grid) / product(request.cluster))),
        step_limit_(request.step_limit != 0 ? request.step_limit : default_step_limit),
        workspace_(memory) {
    memory.forget_accesses();
    if (request.is_cooperative) make_cooperative();
    if (request.observer != nullptr) plan_.observe_executions();
    if (request.sampled_clusters != 0) sample_clusters();
  }

  LaunchStatistics run() {
    if (grid_.image->needs_ordered_grid || request_.is_cooperative)
      run_in_turns();
    else
      run_in_parallel();
    if (first_failure_ != nullptr) end_with_failure();
    return statistics_;
  }

 private:
  // Adds the place to faults of the cluster's turns and passes them to the collector.
  struct ResidentFaults final : FaultHandler {
    ResidentFaults(const Cluster& of, FaultCollector* to) : cluster(of), collector(to) {}
    void take(Fault& fault) override {
      add_place_of_running(fault, cluster);
      if (auto* const conflict = dynamic_cast<ConflictFault*>(&fault))
        add_other_side(*conflict, cluster);
      note(fault, false);
    }
    void note(const Fault& fault, bool ends_cluster) {
      collector->note({.fault = fault,
                       .cluster = cluster.index,
                       .step = cluster.steps,
                       .ended_cluster = ends_cluster});
    }
    const Cluster& cluster;
    FaultCollector* const collector;
  };

  struct Resident {
    Resident(GridRun& run, std::uint32_t index)
        : cluster(run.grid_, index, run.grid_.seed),
          turns(cluster, run.plan_, run.step_limit_),
          faults(cluster, run.request_.collector) {}
    void restart(std::uint32_t index) {
      cluster.reset(index, cluster.grid.seed);
      turns.restart();
    }
    Cluster cluster;
    ClusterRun turns;
    ResidentFaults faults;
    bool has_failed = false;
  };

  void make_cooperative();
  void sample_clusters();
  std::uint32_t cluster_at(std::uint32_t position) const noexcept {
    return chosen_clusters_.empty() ? position : chosen_clusters_[position];
  }
  void run_in_parallel();
  void run_clusters();  // the loop of one host thread
  void run_in_turns();
  std::uint32_t resident_clusters() const noexcept;
  bool take_turn(Resident& resident);
  bool take_turn_with_collector(Resident& resident);
  void note_failure(std::uint32_t index);
  void end_with_failure() const;
  void add(const LaunchStatistics& part);

  const LaunchRequest& request_;
  Grid grid_;
  Plan plan_;
  std::uint32_t cluster_count_;                 // number of clusters that run
  std::vector<std::uint32_t> chosen_clusters_;  // empty: all
  const std::uint64_t step_limit_;
  GridWorkspace workspace_;
  const std::stop_token stop_ = platform::current_cancellation();  // of the launching thread
  std::atomic<std::uint32_t> next_{0};
  // The first failed cluster by index, not by time: clusters before it run to their end.
  std::atomic<std::uint32_t> first_failed_{~0u};
  std::mutex lock_;  // guards the following members
  std::exception_ptr first_failure_;
  LaunchStatistics statistics_;
};

// Rethrows the failure, unless the collector has it.
void GridRun::end_with_failure() const {
  try {
    std::rethrow_exception(first_failure_);
  } catch (const Fault&) {
    if (request_.collector == nullptr) throw;
  }
}

void GridRun::note_failure(std::uint32_t index) {
  const std::lock_guard hold(lock_);
  if (index >= first_failed_) return;
  first_failed_ = index;
  first_failure_ = std::current_exception();
}

void GridRun::add(const LaunchStatistics& part) {
  const std::lock_guard hold(lock_);
  statistics_.warp_instructions += part.warp_instructions;
  statistics_.lane_instructions += part.lane_instructions;
}

// Runs one turn. False: the cluster has ended or failed, or an earlier one has failed.
bool GridRun::take_turn(Resident& resident) {
  const std::uint32_t index = resident.cluster.index;
  if (index > first_failed_.load(std::memory_order_relaxed)) return false;
  try {
    if (stop_.stop_requested()) throw_interrupted(*grid_.image);
    return request_.collector == nullptr ? resident.turns.take_turn()
                                         : take_turn_with_collector(resident);
  } catch (...) {
    note_failure(index);
    return false;
  }
}

// Runs one turn. False: the cluster has ended, by itself or with a fault. The collector has that
// fault, so it is rethrown only if the grid cannot continue.
bool GridRun::take_turn_with_collector(Resident& resident) {
  const FaultHandlerScope scope(&resident.faults);
  try {
    return resident.turns.take_turn();
  } catch (const Fault& fault) {
    resident.faults.note(fault, true);
    resident.has_failed = true;
    if (fault.kind == FaultKind::timeout || grid_.image->needs_ordered_grid) throw;
    return false;
  }
}

void GridRun::make_cooperative() {
  if (request_.sampled_clusters != 0)
    refuse("sampled blocks", "a launch whose blocks do not wait for each other",
           "a cooperative one", "run the whole grid, or a smaller one");
  if (resident_clusters() < cluster_count_)
    refuse("grid of a cooperative launch",
           "at most " + std::to_string(resident_clusters()) +
               " clusters (blocks), which the device holds at a time",
           std::to_string(cluster_count_),
           "launch fewer blocks, each with a loop over its part, or smaller ones");
  grid_.workspace = workspace_.allocate();
}

// Selects clusters by the seed; they run in the order of the grid.
void GridRun::sample_clusters() {
  if (request_.sampled_clusters >= cluster_count_) return;
  if (grid_.image->needs_ordered_grid)
    refuse("sampled blocks", "a kernel whose blocks do not communicate",
           grid_.image->name + ", which uses atomics, acquire, release or volatile accesses",
           "run the whole grid, or a smaller one");
  std::vector<std::uint32_t> all(cluster_count_);
  std::iota(all.begin(), all.end(), 0u);
  std::mt19937_64 random(grid_.seed);
  std::ranges::sample(all, std::back_inserter(chosen_clusters_), request_.sampled_clusters, random);
  cluster_count_ = request_.sampled_clusters;
}

void GridRun::run_clusters() {
  std::unique_ptr<Resident> resident;
  while (true) {
    const std::uint32_t position = next_.fetch_add(1);
    if (position >= cluster_count_) break;
    const std::uint32_t index = cluster_at(position);
    if (index > first_failed_) break;
    if (resident == nullptr)
      resident = std::make_unique<Resident>(*this, index);
    else
      resident->restart(index);
    while (take_turn(*resident)) {
    }
    if (!resident->has_failed) continue;
    add(resident->turns.statistics());
    resident.reset();
  }
  if (resident != nullptr) add(resident->turns.statistics());
}

void GridRun::run_in_parallel() {
  const int offered = request_.host_threads > 0 ? request_.host_threads : platform::thread_count();
  const int threads = static_cast<int>(
      std::min<std::uint64_t>(static_cast<std::uint64_t>(offered), cluster_count_));
  platform::parallel_for(
      threads, 1, [this](std::int64_t, std::int64_t) { run_clusters(); }, threads);
}

// The number of clusters that a device holds at a time; kernels that wait for other CTAs rely on
// it.
std::uint32_t GridRun::resident_clusters() const noexcept {
  const std::uint64_t threads = std::max(grid_.threads_per_cta(), 32u);
  const std::uint64_t shared = std::max<std::uint64_t>(grid_.shared_bytes_per_cta(), 1);
  const std::uint64_t by_threads = most_threads_per_multiprocessor / threads;
  const std::uint64_t by_shared = request_.shared_bytes_per_cta / shared;
  const std::uint64_t per_multiprocessor =
      std::clamp<std::uint64_t>(std::min(by_threads, by_shared), 1, most_ctas_per_multiprocessor);
  const std::uint64_t clusters =
      per_multiprocessor * grid_.multiprocessors / grid_.ctas_per_cluster();
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(clusters, 1, cluster_count_));
}

void GridRun::run_in_turns() {
  std::vector<std::unique_ptr<Resident>> residents;
  for (std::uint32_t index = 0; index < resident_clusters(); ++index)
    residents.push_back(std::make_unique<Resident>(*this, index));
  std::uint32_t next = static_cast<std::uint32_t>(residents.size());
  std::mt19937_64 random(grid_.seed);
  while (!residents.empty()) {
    std::unique_ptr<Resident>& chosen = residents[random() % residents.size()];
    if (take_turn(*chosen)) continue;
    if (first_failure_ != nullptr) return;
    if (next < cluster_count_) {
      chosen->restart(next++);
      continue;
    }
    add(chosen->turns.statistics());
    std::swap(chosen, residents.back());
    residents.pop_back();
  }
}

}  // namespace

LaunchStatistics run_grid(const LaunchRequest& request, GlobalMemory& memory) {
  const platform::DefaultFloatMode mode;
  return GridRun(request, memory).run();
}

}  // namespace gemmery::emulator
