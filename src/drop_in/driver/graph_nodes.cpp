// SPDX-License-Identifier: Apache-2.0
// Graphs, their nodes and edges.
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

using emulator::NodeKind;
using Nodes = std::vector<cuda::GraphNode>;
using Child = std::shared_ptr<cuda::GraphHandle>;  // a clone that belongs to its node

// --- nodes --------------------------------------------------------------------------------------

void add_node(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode* dependencies,
              std::size_t count, emulator::Task task) {
  if (count != 0) require(dependencies);
  require(node) = &require(graph).add(std::move(task), Nodes(dependencies, dependencies + count));
}

// Throws Refusal (invalid_value) for a node of another kind, or one whose parameters were not kept.
template <class Parameters>
const Parameters& parameters_of(cuda::GraphNode node, NodeKind kind) {
  const auto* const parameters = std::any_cast<Parameters>(&require(node).task.parameters);
  if (node->task.kind != kind || parameters == nullptr)
    throw Refusal{cuda::Result::invalid_value, "a node of another kind"};
  return *parameters;
}

void replace_task(cuda::GraphNode node, emulator::Task task) {
  if (require(node).task.kind != task.kind)
    throw Refusal{cuda::Result::invalid_value, "a node of another kind"};
  node->task = std::move(task);
}

void give_nodes(const Nodes& nodes, cuda::GraphNode* to, std::size_t* count) {
  const std::size_t room = require(count);
  *count = nodes.size();
  if (to == nullptr) return;
  for (std::size_t index = 0; index < room; ++index)
    to[index] = index < nodes.size() ? nodes[index] : nullptr;
  *count = std::min(room, nodes.size());
}

Nodes nodes_of(const cuda::GraphHandle& graph) {
  Nodes nodes;
  for (const auto& node : graph.nodes) nodes.push_back(node.get());
  return nodes;
}

// --- child graphs -------------------------------------------------------------------------------

void run_task(const emulator::Task& task) {
  if (!task.holds_device) return task.work();
  const std::lock_guard lock(emulator::current_device().executing);
  task.work();
}

// --- edges --------------------------------------------------------------------------------------

void change_edges(const cuda::GraphNode* from, const cuda::GraphNode* to, std::size_t count,
                  bool adds) {
  for (std::size_t index = 0; index < count; ++index) {
    Nodes& dependencies = require(require(&to[index])).dependencies;
    const auto found = std::ranges::find(dependencies, from[index]);
    const bool is_there = found != dependencies.end();
    if (is_there == adds) throw Refusal{cuda::Result::invalid_value, {}};
    if (adds)
      dependencies.push_back(from[index]);
    else
      dependencies.erase(found);
  }
}

void destroy_node(cuda::GraphNode node) {
  auto& nodes = require(node).graph->nodes;
  for (const auto& each : nodes) std::erase(each->dependencies, node);
  std::erase_if(nodes, [node](const auto& each) { return each.get() == node; });
}

// --- kernels ------------------------------------------------------------------------------------

// The node's own copies, valid until the node changes.
void give_kernel(const emulator::KernelTask& task, cuda::KernelNodeParams& to) {
  const emulator::KernelLaunch& launch = task.launch;
  thread_local std::vector<void*> places;
  places.clear();
  for (const std::uint32_t offset : launch.image->parameter_offset)
    places.push_back(const_cast<std::byte*>(launch.parameters.data() + offset));
  to = {.function = task.function,
        .grid_x = launch.grid[0],
        .grid_y = launch.grid[1],
        .grid_z = launch.grid[2],
        .block_x = launch.block[0],
        .block_y = launch.block[1],
        .block_z = launch.block[2],
        .shared_bytes = launch.dynamic_shared_bytes,
        .parameters = places.data()};
}

}  // namespace

std::unique_ptr<cuda::GraphHandle> cloned(const cuda::GraphHandle& graph) {
  auto clone = std::make_unique<cuda::GraphHandle>();
  std::map<cuda::GraphNode, cuda::GraphNode> twins;
  for (const auto& node : graph.nodes) {
    cuda::GraphNodeHandle& twin = clone->add(node->task, {});
    twin.original = node.get();
    twins[node.get()] = &twin;
  }
  for (const auto& node : graph.nodes) {
    for (const cuda::GraphNode dependency : node->dependencies)
      twins.at(node.get())->dependencies.push_back(twins.at(dependency));
  }
  return clone;
}

emulator::Task child_task(cuda::Graph child) {
  const Child kept = cloned(require(child));
  emulator::Task task{NodeKind::graph,
                      [kept] {
                        for (const cuda::GraphNodeHandle* const node : emulator::in_order(*kept))
                          run_task(node->task);
                      },
                      kept};
  task.holds_device = false;
  return task;
}

}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::add_node;
using drop_in::answer;
using drop_in::parameters_of;
using drop_in::replace_task;
using drop_in::require;
using emulator::NodeKind;
using emulator::Refusal;

extern "C" {

cuda::Result cuGraphCreate(cuda::Graph* graph, unsigned) {
  return answer("cuGraphCreate", [&] { require(graph) = new cuda::GraphHandle; });
}

cuda::Result cuGraphClone(cuda::Graph* clone, cuda::Graph graph) {
  return answer("cuGraphClone",
                [&] { require(clone) = drop_in::cloned(require(graph)).release(); });
}

// --- nodes --------------------------------------------------------------------------------------

cuda::Result cuGraphAddKernelNode_v2(cuda::GraphNode* node, cuda::Graph graph,
                                     const cuda::GraphNode* dependencies, std::size_t count,
                                     const cuda::KernelNodeParams* parameters) {
  return answer("cuGraphAddKernelNode", [&] {
    add_node(node, graph, dependencies, count, drop_in::kernel_task(require(parameters)));
  });
}

cuda::Result cuGraphKernelNodeGetParams_v2(cuda::GraphNode node,
                                           cuda::KernelNodeParams* parameters) {
  return answer("cuGraphKernelNodeGetParams", [&] {
    drop_in::give_kernel(parameters_of<emulator::KernelTask>(node, NodeKind::kernel),
                         require(parameters));
  });
}

cuda::Result cuGraphKernelNodeSetParams_v2(cuda::GraphNode node,
                                           const cuda::KernelNodeParams* parameters) {
  return answer("cuGraphKernelNodeSetParams",
                [&] { replace_task(node, drop_in::kernel_task(require(parameters))); });
}

cuda::Result cuGraphAddMemcpyNode(cuda::GraphNode* node, cuda::Graph graph,
                                  const cuda::GraphNode* dependencies, std::size_t count,
                                  const cuda::Copy3D* copy, cuda::Context) {
  return answer("cuGraphAddMemcpyNode", [&] {
    add_node(node, graph, dependencies, count, drop_in::copy_task(require(copy)));
  });
}

cuda::Result cuGraphMemcpyNodeGetParams(cuda::GraphNode node, cuda::Copy3D* copy) {
  return answer("cuGraphMemcpyNodeGetParams",
                [&] { require(copy) = parameters_of<cuda::Copy3D>(node, NodeKind::copy); });
}

cuda::Result cuGraphMemcpyNodeSetParams(cuda::GraphNode node, const cuda::Copy3D* copy) {
  return answer("cuGraphMemcpyNodeSetParams",
                [&] { replace_task(node, drop_in::copy_task(require(copy))); });
}

cuda::Result cuGraphAddMemsetNode(cuda::GraphNode* node, cuda::Graph graph,
                                  const cuda::GraphNode* dependencies, std::size_t count,
                                  const cuda::Fill2D* fill, cuda::Context) {
  return answer("cuGraphAddMemsetNode", [&] {
    add_node(node, graph, dependencies, count, drop_in::fill_task(require(fill)));
  });
}

cuda::Result cuGraphMemsetNodeGetParams(cuda::GraphNode node, cuda::Fill2D* fill) {
  return answer("cuGraphMemsetNodeGetParams",
                [&] { require(fill) = parameters_of<cuda::Fill2D>(node, NodeKind::fill); });
}

cuda::Result cuGraphMemsetNodeSetParams(cuda::GraphNode node, const cuda::Fill2D* fill) {
  return answer("cuGraphMemsetNodeSetParams",
                [&] { replace_task(node, drop_in::fill_task(require(fill))); });
}

cuda::Result cuGraphAddHostNode(cuda::GraphNode* node, cuda::Graph graph,
                                const cuda::GraphNode* dependencies, std::size_t count,
                                const cuda::HostNodeParams* parameters) {
  return answer("cuGraphAddHostNode", [&] {
    add_node(node, graph, dependencies, count, drop_in::host_task(require(parameters)));
  });
}

cuda::Result cuGraphHostNodeGetParams(cuda::GraphNode node, cuda::HostNodeParams* parameters) {
  return answer("cuGraphHostNodeGetParams", [&] {
    require(parameters) = parameters_of<cuda::HostNodeParams>(node, NodeKind::host_call);
  });
}

cuda::Result cuGraphHostNodeSetParams(cuda::GraphNode node,
                                      const cuda::HostNodeParams* parameters) {
  return answer("cuGraphHostNodeSetParams",
                [&] { replace_task(node, drop_in::host_task(require(parameters))); });
}

cuda::Result cuGraphAddChildGraphNode(cuda::GraphNode* node, cuda::Graph graph,
                                      const cuda::GraphNode* dependencies, std::size_t count,
                                      cuda::Graph child) {
  return answer("cuGraphAddChildGraphNode",
                [&] { add_node(node, graph, dependencies, count, drop_in::child_task(child)); });
}

cuda::Result cuGraphChildGraphNodeGetGraph(cuda::GraphNode node, cuda::Graph* graph) {
  return answer("cuGraphChildGraphNodeGetGraph", [&] {
    require(graph) = parameters_of<drop_in::Child>(node, NodeKind::graph).get();
  });
}

cuda::Result cuGraphAddEmptyNode(cuda::GraphNode* node, cuda::Graph graph,
                                 const cuda::GraphNode* dependencies, std::size_t count) {
  return answer("cuGraphAddEmptyNode", [&] {
    add_node(node, graph, dependencies, count, {NodeKind::empty, [] {}});
  });
}

cuda::Result cuGraphAddEventRecordNode(cuda::GraphNode* node, cuda::Graph graph,
                                       const cuda::GraphNode* dependencies, std::size_t count,
                                       cuda::Event event) {
  return answer("cuGraphAddEventRecordNode", [&] {
    require(event);
    const auto note = [event] { event->recorded = std::chrono::steady_clock::now(); };
    add_node(node, graph, dependencies, count, {NodeKind::event_record, note, event});
  });
}

cuda::Result cuGraphAddEventWaitNode(cuda::GraphNode* node, cuda::Graph graph,
                                     const cuda::GraphNode* dependencies, std::size_t count,
                                     cuda::Event event) {
  return answer("cuGraphAddEventWaitNode", [&] {
    add_node(node, graph, dependencies, count, {NodeKind::event_wait, [] {}, event});
  });
}

cuda::Result cuGraphAddMemAllocNode(cuda::GraphNode* node, cuda::Graph graph,
                                    const cuda::GraphNode* dependencies, std::size_t count,
                                    cuda::AllocationNodeParams* parameters) {
  return answer("cuGraphAddMemAllocNode", [&] {
    add_node(node, graph, dependencies, count,
             drop_in::allocation_task(require(parameters).bytes, parameters->pointer));
  });
}

cuda::Result cuGraphAddMemFreeNode(cuda::GraphNode* node, cuda::Graph graph,
                                   const cuda::GraphNode* dependencies, std::size_t count,
                                   cuda::DevicePointer pointer) {
  return answer("cuGraphAddMemFreeNode",
                [&] { add_node(node, graph, dependencies, count, drop_in::free_task(pointer)); });
}

cuda::Result cuGraphNodeFindInClone(cuda::GraphNode* node, cuda::GraphNode original,
                                    cuda::Graph clone) {
  return answer("cuGraphNodeFindInClone", [&] {
    for (const auto& each : require(clone).nodes) {
      if (each->original != original) continue;
      require(node) = each.get();
      return;
    }
    throw Refusal{cuda::Result::invalid_value, {}};
  });
}

cuda::Result cuGraphNodeGetType(cuda::GraphNode node, int* type) {
  return answer("cuGraphNodeGetType",
                [&] { require(type) = static_cast<int>(require(node).task.kind); });
}

cuda::Result cuGraphDestroyNode(cuda::GraphNode node) {
  return answer("cuGraphDestroyNode", [&] { drop_in::destroy_node(node); });
}

// --- edges --------------------------------------------------------------------------------------

cuda::Result cuGraphGetNodes(cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count) {
  return answer("cuGraphGetNodes",
                [&] { drop_in::give_nodes(drop_in::nodes_of(require(graph)), nodes, count); });
}

cuda::Result cuGraphGetRootNodes(cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count) {
  return answer("cuGraphGetRootNodes", [&] {
    drop_in::Nodes roots = drop_in::nodes_of(require(graph));
    std::erase_if(roots, [](cuda::GraphNode node) { return !node->dependencies.empty(); });
    drop_in::give_nodes(roots, nodes, count);
  });
}

cuda::Result cuGraphGetEdges(cuda::Graph graph, cuda::GraphNode* from, cuda::GraphNode* to,
                             std::size_t* count) {
  return answer("cuGraphGetEdges", [&] {
    drop_in::Nodes begins, ends;
    for (const auto& node : require(graph).nodes) {
      for (const cuda::GraphNode dependency : node->dependencies) {
        begins.push_back(dependency);
        ends.push_back(node.get());
      }
    }
    std::size_t room = require(count);
    drop_in::give_nodes(begins, from, &room);
    drop_in::give_nodes(ends, to, count);
  });
}

cuda::Result cuGraphNodeGetDependencies(cuda::GraphNode node, cuda::GraphNode* dependencies,
                                        std::size_t* count) {
  return answer("cuGraphNodeGetDependencies",
                [&] { drop_in::give_nodes(require(node).dependencies, dependencies, count); });
}

cuda::Result cuGraphNodeGetDependentNodes(cuda::GraphNode node, cuda::GraphNode* dependents,
                                          std::size_t* count) {
  return answer("cuGraphNodeGetDependentNodes", [&] {
    drop_in::Nodes found = drop_in::nodes_of(*require(node).graph);
    std::erase_if(found, [node](cuda::GraphNode each) {
      return std::ranges::find(each->dependencies, node) == each->dependencies.end();
    });
    drop_in::give_nodes(found, dependents, count);
  });
}

cuda::Result cuGraphAddDependencies(cuda::Graph, const cuda::GraphNode* from,
                                    const cuda::GraphNode* to, std::size_t count) {
  return answer("cuGraphAddDependencies", [&] { drop_in::change_edges(from, to, count, true); });
}

cuda::Result cuGraphRemoveDependencies(cuda::Graph, const cuda::GraphNode* from,
                                       const cuda::GraphNode* to, std::size_t count) {
  return answer("cuGraphRemoveDependencies",
                [&] { drop_in::change_edges(from, to, count, false); });
}

}  // extern "C"
}  // namespace gemmery::driver
