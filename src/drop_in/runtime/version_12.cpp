// SPDX-License-Identifier: Apache-2.0
// Functions that only version 12 has, with the forms that 13 dropped.
#include "drop_in/runtime/call.hpp"

// Here the names mean the older forms.
#undef cudaMemPrefetchAsync
#undef cudaMemAdvise
#undef cudaGraphGetEdges
#undef cudaGraphNodeGetDependencies
#undef cudaGraphNodeGetDependentNodes
#undef cudaGraphAddDependencies
#undef cudaGraphRemoveDependencies

namespace gemmery::drop_in::runtime {

// clang-format off
#define GEMMERY_RUNTIME_12_CALLS(X)                                                                \
  X(cudaMemPrefetchAsync,                                                                          \
    (const void* pointer, std::size_t bytes, int device, cuda::Stream stream))                     \
  X(cudaMemAdvise, (const void* pointer, std::size_t bytes, int advice, int device))               \
  X(cudaGraphGetEdges, (cuda::Graph graph, cuda::GraphNode* from, cuda::GraphNode* to,             \
                        std::size_t* count))                                                       \
  X(cudaGraphNodeGetDependencies,                                                                  \
    (cuda::GraphNode node, cuda::GraphNode* nodes, std::size_t* count))                            \
  X(cudaGraphNodeGetDependentNodes,                                                                \
    (cuda::GraphNode node, cuda::GraphNode* nodes, std::size_t* count))                            \
  X(cudaGraphAddDependencies, (cuda::Graph graph, const cuda::GraphNode* from,                     \
                               const cuda::GraphNode* to, std::size_t count))                      \
  X(cudaGraphRemoveDependencies, (cuda::Graph graph, const cuda::GraphNode* from,                  \
                                  const cuda::GraphNode* to, std::size_t count))                   \
  X(cudaStreamGetCaptureInfo_v2,                                                                   \
    (cuda::Stream stream, cuda::CaptureStatus* status, unsigned long long* id, cuda::Graph* graph, \
     const cuda::GraphNode** dependencies, std::size_t* count))                                    \
  X(cudaEventElapsedTime_v2, (float* milliseconds, cuda::Event start, cuda::Event end))            \
  X(cudaThreadSynchronize, ())                                                                     \
  X(cudaThreadExit, ())
// clang-format on

extern "C" {

#define GEMMERY_DECLARE(name, parameters) \
  __attribute__((visibility("default"))) Error name parameters;
GEMMERY_RUNTIME_12_CALLS(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE

Error cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, int device,
                           cuda::Stream stream) {
  return call(
      [&] { return driver::cuMemPrefetchAsync(device_pointer(pointer), bytes, device, stream); });
}

Error cudaMemAdvise(const void* pointer, std::size_t bytes, int advice, int device) {
  return call([&] { return driver::cuMemAdvise(device_pointer(pointer), bytes, advice, device); });
}

Error cudaGraphGetEdges(cuda::Graph graph, cuda::GraphNode* from, cuda::GraphNode* to,
                        std::size_t* count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}

Error cudaGraphNodeGetDependencies(cuda::GraphNode node, cuda::GraphNode* nodes,
                                   std::size_t* count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

Error cudaGraphNodeGetDependentNodes(cuda::GraphNode node, cuda::GraphNode* nodes,
                                     std::size_t* count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

Error cudaGraphAddDependencies(cuda::Graph graph, const cuda::GraphNode* from,
                               const cuda::GraphNode* to, std::size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

Error cudaGraphRemoveDependencies(cuda::Graph graph, const cuda::GraphNode* from,
                                  const cuda::GraphNode* to, std::size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

Error cudaStreamGetCaptureInfo_v2(cuda::Stream stream, cuda::CaptureStatus* status,
                                  unsigned long long* id, cuda::Graph* graph,
                                  const cuda::GraphNode** dependencies, std::size_t* count) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}

Error cudaEventElapsedTime_v2(float* milliseconds, cuda::Event start, cuda::Event end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}

Error cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
Error cudaThreadExit() { return cudaDeviceReset(); }

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
