// SPDX-License-Identifier: Apache-2.0
// Instances of graphs: launches and updates.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/state.hpp"
#include "drop_in/driver/tasks.hpp"
#include "emulator/table.hpp"

namespace gemmery::drop_in {
namespace {

// --- instances ----------------------------------------------------------------------------------

cuda::GraphExecHandle::Step& step_of(cuda::GraphExec exec, cuda::GraphNode node) {
  auto& steps = require(exec).steps;
  const auto found = std::ranges::find(steps, node, &cuda::GraphExecHandle::Step::node);
  if (found == steps.end())
    throw Refusal{cuda::Result::invalid_value, "the instance has no such node"};
  return *found;
}

void replace_step(cuda::GraphExec exec, cuda::GraphNode node, emulator::Task task) {
  cuda::GraphExecHandle::Step& step = step_of(exec, node);
  if (step.task.kind != task.kind)
    throw Refusal{cuda::Result::invalid_value, "a node of another kind"};
  step.task = std::move(task);
}

// What cuGraphExecUpdate answers (CUgraphExecUpdateResultInfo).
struct UpdateInfo {
  int result;  // 0: success, 2: another topology, 4: a node of another kind
  cuda::GraphNode node;
  cuda::GraphNode from;
};

// Takes the tasks of a graph of the same form. Nodes are paired in the order of both.
UpdateInfo update(cuda::GraphExecHandle& exec, const cuda::GraphHandle& graph) {
  constexpr int success = 0, other_topology = 2, other_kind = 4;
  const auto order = emulator::in_order(graph);
  if (order.size() != exec.steps.size()) return {other_topology, nullptr, nullptr};
  for (std::size_t index = 0; index < order.size(); ++index) {
    if (order[index]->task.kind == exec.steps[index].task.kind) continue;
    return {other_kind, const_cast<cuda::GraphNode>(order[index]), nullptr};
  }
  for (std::size_t index = 0; index < order.size(); ++index)
    exec.steps[index].task = order[index]->task;
  return {success, nullptr, nullptr};
}

}  // namespace
}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer;
using drop_in::answer_on_device;
using drop_in::replace_step;
using drop_in::require;
using emulator::Refusal;

extern "C" {

// --- instances ----------------------------------------------------------------------------------

cuda::Result cuGraphLaunch(cuda::GraphExec exec, cuda::Stream stream) {
  return answer_on_device("cuGraphLaunch", [&] {
    for (const cuda::GraphExecHandle::Step& step : require(exec).steps) {
      if (step.is_enabled) emulator::put(stream, step.task);
    }
  });
}

cuda::Result cuGraphUpload(cuda::GraphExec exec, cuda::Stream) {
  return answer("cuGraphUpload", [&] { require(exec); });
}

cuda::Result cuGraphExecUpdate_v2(cuda::GraphExec exec, cuda::Graph graph, void* info) {
  return answer("cuGraphExecUpdate", [&] {
    const drop_in::UpdateInfo result = drop_in::update(require(exec), require(graph));
    if (info != nullptr) *static_cast<drop_in::UpdateInfo*>(info) = result;
    if (result.result != 0) throw Refusal{cuda::Result::graph_exec_update_failure, {}};
  });
}

cuda::Result cuGraphExecGetFlags(cuda::GraphExec exec, std::uint64_t* flags) {
  return answer("cuGraphExecGetFlags", [&] {
    require(exec);
    require(flags) = 0;
  });
}

cuda::Result cuGraphNodeSetEnabled(cuda::GraphExec exec, cuda::GraphNode node,
                                   unsigned is_enabled) {
  return answer("cuGraphNodeSetEnabled",
                [&] { drop_in::step_of(exec, node).is_enabled = is_enabled != 0; });
}

cuda::Result cuGraphNodeGetEnabled(cuda::GraphExec exec, cuda::GraphNode node,
                                   unsigned* is_enabled) {
  return answer("cuGraphNodeGetEnabled",
                [&] { require(is_enabled) = drop_in::step_of(exec, node).is_enabled ? 1 : 0; });
}

cuda::Result cuGraphExecKernelNodeSetParams_v2(cuda::GraphExec exec, cuda::GraphNode node,
                                               const cuda::KernelNodeParams* parameters) {
  return answer("cuGraphExecKernelNodeSetParams",
                [&] { replace_step(exec, node, drop_in::kernel_task(require(parameters))); });
}

cuda::Result cuGraphExecMemcpyNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                            const cuda::Copy3D* copy, cuda::Context) {
  return answer("cuGraphExecMemcpyNodeSetParams",
                [&] { replace_step(exec, node, drop_in::copy_task(require(copy))); });
}

cuda::Result cuGraphExecMemsetNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                            const cuda::Fill2D* fill, cuda::Context) {
  return answer("cuGraphExecMemsetNodeSetParams",
                [&] { replace_step(exec, node, drop_in::fill_task(require(fill))); });
}

cuda::Result cuGraphExecHostNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                          const cuda::HostNodeParams* parameters) {
  return answer("cuGraphExecHostNodeSetParams",
                [&] { replace_step(exec, node, drop_in::host_task(require(parameters))); });
}

cuda::Result cuGraphExecChildGraphNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                                cuda::Graph child) {
  return answer("cuGraphExecChildGraphNodeSetParams",
                [&] { replace_step(exec, node, drop_in::child_task(child)); });
}

// --- memory of graphs ---------------------------------------------------------------------------

cuda::Result cuDeviceGetGraphMemAttribute(cuda::DeviceOrdinal device, int, void* value) {
  return answer("cuDeviceGetGraphMemAttribute", [&] {
    emulator::device_of(device);
    require(static_cast<std::uint64_t*>(value)) = 0;
  });
}

cuda::Result cuDeviceSetGraphMemAttribute(cuda::DeviceOrdinal, int, void*) {
  return cuda::Result::success;
}

cuda::Result cuDeviceGraphMemTrim(cuda::DeviceOrdinal) { return cuda::Result::success; }

}  // extern "C"
}  // namespace gemmery::driver
