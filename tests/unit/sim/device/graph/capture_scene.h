// An object of each kind, for driver calls while a stream captures.
#pragma once

#include "unit/sim/device/capture_fixture.h"

namespace kernwright::sim {

/// The objects for the calls, made before the capture begins.
struct Scene : StreamDevice {
  Scene() : main(stream()), other(stream()), mark(event()), recorded(event()), x(words(16)) {
    REQUIRE(api.cuMemHostAlloc(&pinned, 64, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    REQUIRE(api.cuMemAllocAsync(&pooled, 64, other) == CUDA_SUCCESS);
    REQUIRE(api.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
    void* parameters[] = {&x};
    const CUDA_KERNEL_NODE_PARAMS kernel{count_kernel, 1,       1,       1,      1, 1, 1, 0,
                                         parameters,   nullptr, nullptr, nullptr};
    REQUIRE(api.cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel) == CUDA_SUCCESS);
    executable = instantiate(*this, graph);
    REQUIRE(api.cuEventRecord(recorded, other) == CUDA_SUCCESS);
    const CUDA_ARRAY3D_DESCRIPTOR squares{4, 4, 0, CU_AD_FORMAT_FLOAT, 1, kArraySurface};
    REQUIRE(api.cuArray3DCreate(&array, &squares) == CUDA_SUCCESS);
    CUDA_RESOURCE_DESC resource{};
    resource.res.array.hArray = array;
    const CUDA_TEXTURE_DESC sampler{};
    REQUIRE(api.cuTexObjectCreate(&texture, &resource, &sampler, nullptr) == CUDA_SUCCESS);
    REQUIRE(api.cuSurfObjectCreate(&surface, &resource) == CUDA_SUCCESS);
    REQUIRE(api.cuDeviceGetDevResource(0, &resources, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
    REQUIRE(api.cuDevResourceGenerateDesc(&descriptor, &resources, 1) == CUDA_SUCCESS);
    REQUIRE(api.cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
            CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
  }
  ~Scene() {
    api.cuGreenCtxDestroy(green);
    api.cuGraphExecDestroy(executable);
    api.cuGraphDestroy(graph);
    api.cuArrayDestroy(array);
    api.cuMemFree(pooled);
    api.cuMemFree(managed);
    if (pinned != nullptr) api.cuMemFreeHost(pinned);
    api.cuMemFree(x);
    for (const CUstream one : {main, other}) api.cuStreamDestroy(one);
    for (const CUevent one : {mark, recorded}) api.cuEventDestroy(one);
  }
  CUDA_KERNEL_NODE_PARAMS kernel_node() {
    return {count_kernel, 1, 1, 1, 1, 1, 1, 0, x_parameters, nullptr, nullptr, nullptr};
  }

  CUstream main, other;
  CUevent mark, recorded;
  CUdeviceptr x = 0, managed = 0, pooled = 0;
  CUdevResource resources{};
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  CUarray array = nullptr;
  CUtexObject texture = 0;
  CUsurfObject surface = 0;
  void* x_parameters[1] = {&x};
  void* pinned = nullptr;
  std::uint64_t host[64] = {};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
};

}  // namespace kernwright::sim
