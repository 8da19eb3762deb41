// SPDX-License-Identifier: Apache-2.0
// Graphs: the driver's, with kernels by their stand-ins and copies as the runtime describes them.
#include "drop_in/runtime/copies.hpp"
#include "drop_in/runtime/registry.hpp"

namespace gemmery::drop_in::runtime {
namespace {

// Runs a call with a kernel's node as the driver describes it.
template <class Call>
Error call_with_kernel(const KernelParameters* parameters, Call&& driver_call) noexcept {
  return call([&] {
    cuda::KernelNodeParams node{.grid_x = parameters->grid.x,
                                .grid_y = parameters->grid.y,
                                .grid_z = parameters->grid.z,
                                .block_x = parameters->block.x,
                                .block_y = parameters->block.y,
                                .block_z = parameters->block.z,
                                .shared_bytes = parameters->shared_bytes,
                                .parameters = parameters->parameters,
                                .extra = parameters->extra};
    const cuda::Result found = find_function(parameters->function, node.function);
    return found != cuda::Result::success ? found : driver_call(node);
  });
}

// The same with the address of a part of a symbol.
template <class Call>
Error call_with_place(const void* symbol, std::size_t offset, Call&& driver_call) noexcept {
  return call([&] {
    cuda::DevicePointer address = 0;
    std::size_t bytes = 0;
    const cuda::Result found = find_symbol(symbol, address, bytes);
    return found != cuda::Result::success ? found : driver_call(host_pointer(address + offset));
  });
}

cuda::Result add_copy(cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode* dependencies,
                      std::size_t count, const cuda::Copy3D& copy) noexcept {
  return driver::cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, nullptr);
}

}  // namespace

extern "C" {

Error cudaGraphCreate(cuda::Graph* graph, unsigned flags) {
  return call([&] { return driver::cuGraphCreate(graph, flags); });
}

Error cudaGraphClone(cuda::Graph* clone, cuda::Graph graph) {
  return call([&] { return driver::cuGraphClone(clone, graph); });
}

Error cudaGraphDestroy(cuda::Graph graph) {
  return call([&] { return driver::cuGraphDestroy(graph); });
}

// --- kernels ------------------------------------------------------------------------------------

Error cudaGraphAddKernelNode(cuda::GraphNode* node, cuda::Graph graph,
                             const cuda::GraphNode* dependencies, std::size_t count,
                             const KernelParameters* parameters) {
  return call_with_kernel(parameters, [&](const cuda::KernelNodeParams& kernel) {
    return driver::cuGraphAddKernelNode_v2(node, graph, dependencies, count, &kernel);
  });
}

Error cudaGraphKernelNodeGetParams(cuda::GraphNode node, KernelParameters* parameters) {
  return call([&] {
    cuda::KernelNodeParams kernel;
    const cuda::Result result = driver::cuGraphKernelNodeGetParams_v2(node, &kernel);
    if (result == cuda::Result::success) {
      *parameters = {.function = stand_in_of(kernel.function),
                     .grid = {kernel.grid_x, kernel.grid_y, kernel.grid_z},
                     .block = {kernel.block_x, kernel.block_y, kernel.block_z},
                     .shared_bytes = kernel.shared_bytes,
                     .parameters = kernel.parameters};
    }
    return result;
  });
}

Error cudaGraphKernelNodeSetParams(cuda::GraphNode node, const KernelParameters* parameters) {
  return call_with_kernel(parameters, [&](const cuda::KernelNodeParams& kernel) {
    return driver::cuGraphKernelNodeSetParams_v2(node, &kernel);
  });
}

Error cudaGraphExecKernelNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                       const KernelParameters* parameters) {
  return call_with_kernel(parameters, [&](const cuda::KernelNodeParams& kernel) {
    return driver::cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
  });
}

// --- copies -------------------------------------------------------------------------------------

Error cudaGraphAddMemcpyNode(cuda::GraphNode* node, cuda::Graph graph,
                             const cuda::GraphNode* dependencies, std::size_t count,
                             const CopyParameters* parameters) {
  return call([&] { return add_copy(node, graph, dependencies, count, driver_copy(*parameters)); });
}

Error cudaGraphAddMemcpyNode1D(cuda::GraphNode* node, cuda::Graph graph,
                               const cuda::GraphNode* dependencies, std::size_t count, void* to,
                               const void* from, std::size_t bytes, CopyKind) {
  return call(
      [&] { return add_copy(node, graph, dependencies, count, driver_copy(to, from, bytes)); });
}

Error cudaGraphAddMemcpyNodeToSymbol(cuda::GraphNode* node, cuda::Graph graph,
                                     const cuda::GraphNode* dependencies, std::size_t count,
                                     const void* symbol, const void* from, std::size_t bytes,
                                     std::size_t offset, CopyKind) {
  return call_with_place(symbol, offset, [&](void* place) {
    return add_copy(node, graph, dependencies, count, driver_copy(place, from, bytes));
  });
}

Error cudaGraphAddMemcpyNodeFromSymbol(cuda::GraphNode* node, cuda::Graph graph,
                                       const cuda::GraphNode* dependencies, std::size_t count,
                                       void* to, const void* symbol, std::size_t bytes,
                                       std::size_t offset, CopyKind) {
  return call_with_place(symbol, offset, [&](void* place) {
    return add_copy(node, graph, dependencies, count, driver_copy(to, place, bytes));
  });
}

Error cudaGraphMemcpyNodeSetParams(cuda::GraphNode node, const CopyParameters* parameters) {
  return call([&] {
    const cuda::Copy3D copy = driver_copy(*parameters);
    return driver::cuGraphMemcpyNodeSetParams(node, &copy);
  });
}

Error cudaGraphMemcpyNodeSetParams1D(cuda::GraphNode node, void* to, const void* from,
                                     std::size_t bytes, CopyKind) {
  return call([&] {
    const cuda::Copy3D copy = driver_copy(to, from, bytes);
    return driver::cuGraphMemcpyNodeSetParams(node, &copy);
  });
}

Error cudaGraphExecMemcpyNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                       const CopyParameters* parameters) {
  return call([&] {
    const cuda::Copy3D copy = driver_copy(*parameters);
    return driver::cuGraphExecMemcpyNodeSetParams(exec, node, &copy, nullptr);
  });
}

Error cudaGraphExecMemcpyNodeSetParams1D(cuda::GraphExec exec, cuda::GraphNode node, void* to,
                                         const void* from, std::size_t bytes, CopyKind) {
  return call([&] {
    const cuda::Copy3D copy = driver_copy(to, from, bytes);
    return driver::cuGraphExecMemcpyNodeSetParams(exec, node, &copy, nullptr);
  });
}

// --- other nodes --------------------------------------------------------------------------------

Error cudaGraphAddMemsetNode(cuda::GraphNode* node, cuda::Graph graph,
                             const cuda::GraphNode* dependencies, std::size_t count,
                             const cuda::Fill2D* parameters) {
  return call([&] {
    return driver::cuGraphAddMemsetNode(node, graph, dependencies, count, parameters, nullptr);
  });
}

Error cudaGraphMemsetNodeGetParams(cuda::GraphNode node, cuda::Fill2D* parameters) {
  return call([&] { return driver::cuGraphMemsetNodeGetParams(node, parameters); });
}

Error cudaGraphMemsetNodeSetParams(cuda::GraphNode node, const cuda::Fill2D* parameters) {
  return call([&] { return driver::cuGraphMemsetNodeSetParams(node, parameters); });
}

Error cudaGraphExecMemsetNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                       const cuda::Fill2D* parameters) {
  return call(
      [&] { return driver::cuGraphExecMemsetNodeSetParams(exec, node, parameters, nullptr); });
}

Error cudaGraphAddHostNode(cuda::GraphNode* node, cuda::Graph graph,
                           const cuda::GraphNode* dependencies, std::size_t count,
                           const cuda::HostNodeParams* parameters) {
  return call(
      [&] { return driver::cuGraphAddHostNode(node, graph, dependencies, count, parameters); });
}

Error cudaGraphHostNodeGetParams(cuda::GraphNode node, cuda::HostNodeParams* parameters) {
  return call([&] { return driver::cuGraphHostNodeGetParams(node, parameters); });
}

Error cudaGraphHostNodeSetParams(cuda::GraphNode node, const cuda::HostNodeParams* parameters) {
  return call([&] { return driver::cuGraphHostNodeSetParams(node, parameters); });
}

Error cudaGraphExecHostNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                     const cuda::HostNodeParams* parameters) {
  return call([&] { return driver::cuGraphExecHostNodeSetParams(exec, node, parameters); });
}

Error cudaGraphAddChildGraphNode(cuda::GraphNode* node, cuda::Graph graph,
                                 const cuda::GraphNode* dependencies, std::size_t count,
                                 cuda::Graph child) {
  return call(
      [&] { return driver::cuGraphAddChildGraphNode(node, graph, dependencies, count, child); });
}

Error cudaGraphChildGraphNodeGetGraph(cuda::GraphNode node, cuda::Graph* graph) {
  return call([&] { return driver::cuGraphChildGraphNodeGetGraph(node, graph); });
}

Error cudaGraphExecChildGraphNodeSetParams(cuda::GraphExec exec, cuda::GraphNode node,
                                           cuda::Graph child) {
  return call([&] { return driver::cuGraphExecChildGraphNodeSetParams(exec, node, child); });
}

Error cudaGraphAddEmptyNode(cuda::GraphNode* node, cuda::Graph graph,
                            const cuda::GraphNode* dependencies, std::size_t count) {
  return call([&] { return driver::cuGraphAddEmptyNode(node, graph, dependencies, count); });
}

Error cudaGraphAddEventRecordNode(cuda::GraphNode* node, cuda::Graph graph,
                                  const cuda::GraphNode* dependencies, std::size_t count,
                                  cuda::Event event) {
  return call(
      [&] { return driver::cuGraphAddEventRecordNode(node, graph, dependencies, count, event); });
}

Error cudaGraphAddEventWaitNode(cuda::GraphNode* node, cuda::Graph graph,
                                const cuda::GraphNode* dependencies, std::size_t count,
                                cuda::Event event) {
  return call(
      [&] { return driver::cuGraphAddEventWaitNode(node, graph, dependencies, count, event); });
}

Error cudaGraphAddMemAllocNode(cuda::GraphNode* node, cuda::Graph graph,
                               const cuda::GraphNode* dependencies, std::size_t count,
                               cuda::AllocationNodeParams* parameters) {
  return call(
      [&] { return driver::cuGraphAddMemAllocNode(node, graph, dependencies, count, parameters); });
}

Error cudaGraphAddMemFreeNode(cuda::GraphNode* node, cuda::Graph graph,
                              const cuda::GraphNode* dependencies, std::size_t count,
                              void* pointer) {
  return call([&] {
    return driver::cuGraphAddMemFreeNode(node, graph, dependencies, count, device_pointer(pointer));
  });
}

Error cudaDeviceGraphMemTrim(int device) {
  return call([&] { return driver::cuDeviceGraphMemTrim(device); });
}

Error cudaDeviceGetGraphMemAttribute(int device, int attribute, void* value) {
  return call([&] { return driver::cuDeviceGetGraphMemAttribute(device, attribute, value); });
}

Error cudaDeviceSetGraphMemAttribute(int device, int attribute, void* value) {
  return call([&] { return driver::cuDeviceSetGraphMemAttribute(device, attribute, value); });
}

// --- nodes and edges ----------------------------------------------------------------------------

Error cudaGraphNodeFindInClone(cuda::GraphNode* node, cuda::GraphNode original, cuda::Graph clone) {
  return call([&] { return driver::cuGraphNodeFindInClone(node, original, clone); });
}

Error cudaGraphNodeGetType(cuda::GraphNode node, int* type) {
  return call([&] { return driver::cuGraphNodeGetType(node, type); });
}

Error cudaGraphGetNodes(cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count) {
  return call([&] { return driver::cuGraphGetNodes(graph, nodes, count); });
}

Error cudaGraphGetRootNodes(cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count) {
  return call([&] { return driver::cuGraphGetRootNodes(graph, nodes, count); });
}

Error cudaGraphGetEdges(cuda::Graph graph, cuda::GraphNode* from, cuda::GraphNode* to, void*,
                        std::size_t* count) {
  return call([&] { return driver::cuGraphGetEdges(graph, from, to, count); });
}

Error cudaGraphNodeGetDependencies(cuda::GraphNode node, cuda::GraphNode* nodes, void*,
                                   std::size_t* count) {
  return call([&] { return driver::cuGraphNodeGetDependencies(node, nodes, count); });
}

Error cudaGraphNodeGetDependentNodes(cuda::GraphNode node, cuda::GraphNode* nodes, void*,
                                     std::size_t* count) {
  return call([&] { return driver::cuGraphNodeGetDependentNodes(node, nodes, count); });
}

Error cudaGraphAddDependencies(cuda::Graph graph, const cuda::GraphNode* from,
                               const cuda::GraphNode* to, const void*, std::size_t count) {
  return call([&] { return driver::cuGraphAddDependencies(graph, from, to, count); });
}

Error cudaGraphRemoveDependencies(cuda::Graph graph, const cuda::GraphNode* from,
                                  const cuda::GraphNode* to, const void*, std::size_t count) {
  return call([&] { return driver::cuGraphRemoveDependencies(graph, from, to, count); });
}

Error cudaGraphDestroyNode(cuda::GraphNode node) {
  return call([&] { return driver::cuGraphDestroyNode(node); });
}

// --- instances ----------------------------------------------------------------------------------

Error cudaGraphInstantiate(cuda::GraphExec* exec, cuda::Graph graph, unsigned long long flags) {
  return call([&] { return driver::cuGraphInstantiateWithFlags(exec, graph, flags); });
}

Error cudaGraphInstantiateWithFlags(cuda::GraphExec* exec, cuda::Graph graph,
                                    unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

Error cudaGraphExecGetFlags(cuda::GraphExec exec, unsigned long long* flags) {
  return call([&] {
    std::uint64_t value = 0;
    const cuda::Result result = driver::cuGraphExecGetFlags(exec, &value);
    *flags = value;
    return result;
  });
}

Error cudaGraphExecDestroy(cuda::GraphExec exec) {
  return call([&] { return driver::cuGraphExecDestroy(exec); });
}

Error cudaGraphExecUpdate(cuda::GraphExec exec, cuda::Graph graph, void* info) {
  return call([&] { return driver::cuGraphExecUpdate_v2(exec, graph, info); });
}

Error cudaGraphNodeSetEnabled(cuda::GraphExec exec, cuda::GraphNode node, unsigned is_enabled) {
  return call([&] { return driver::cuGraphNodeSetEnabled(exec, node, is_enabled); });
}

Error cudaGraphNodeGetEnabled(cuda::GraphExec exec, cuda::GraphNode node, unsigned* is_enabled) {
  return call([&] { return driver::cuGraphNodeGetEnabled(exec, node, is_enabled); });
}

Error cudaGraphUpload(cuda::GraphExec exec, cuda::Stream stream) {
  return call([&] { return driver::cuGraphUpload(exec, stream); });
}

Error cudaGraphLaunch(cuda::GraphExec exec, cuda::Stream stream) {
  return call([&] { return driver::cuGraphLaunch(exec, stream); });
}

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
