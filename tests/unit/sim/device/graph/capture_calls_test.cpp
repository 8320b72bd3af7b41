// Every driver call while a stream captures: its result, and whether the capture survives.
//
// Sources: CUDA Programming Guide ("Prohibited and Unhandled Operations", "Invalidation") and the
// driver API reference of cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode and the calls
// themselves. The reference names few of the "potentially unsafe" calls; here they are the calls to
// allocate, free, unload, map peers, set limits or wait (docs/driver_behaviour.md has those tried
// on an H200). The table holds for a capture in global mode on a non-blocking stream, which is the
// stream argument of the call.
#include "sim/device/profile.h"
#include "unit/sim/device/graph/capture_scene.h"

#include <functional>
#include <set>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr auto kOk = CUDA_SUCCESS;
constexpr auto kUnsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

struct Call {
  const char* name;
  CUresult result;
  bool survives;
  std::function<CUresult(Scene&)> make;
};

#define CALL(name, result, survives, ...)             \
  {                                                   \
#name, result, survives, [](Scene& s) -> CUresult { \
     const DriverApi& api = s.api; \
     static_cast<void>(api); \
     static_cast<void>(s); \
     __VA_ARGS__ \
   } \
  }

template <typename T>
T* scratch() {
  static T value{};
  return &value;
}

/// The result for wrong arguments, of calls for devices from 9.0 on.
CUresult wrong_on_90() {
  return device_profile().is_90 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}

std::vector<Call> harmless() {
  return {
    CALL(cuInit, kOk, true, return api.cuInit(0);),
        CALL(cuDriverGetVersion, kOk, true, return api.cuDriverGetVersion(scratch<int>());),
        CALL(cuGetProcAddress, kOk, true,
             return api.cuGetProcAddress("cuInit", scratch<void*>(), 13000, 0, nullptr);),
        CALL(cuGetErrorName, kOk, true, return api.cuGetErrorName(kOk, scratch<const char*>());),
        CALL(cuGetErrorString, kOk, true,
             return api.cuGetErrorString(kOk, scratch<const char*>());),
        CALL(cuDeviceGetCount, kOk, true, return api.cuDeviceGetCount(scratch<int>());),
        CALL(cuDeviceGet, kOk, true, return api.cuDeviceGet(scratch<CUdevice>(), 0);),
        CALL(cuDeviceGetName, kOk, true,
             return api.cuDeviceGetName(reinterpret_cast<char*>(s.host), 64, 0);),
        CALL(cuDeviceGetUuid, kOk, true, return api.cuDeviceGetUuid(scratch<CUuuid>(), 0);),
        CALL(cuDeviceGetAttribute, kOk, true,
             return api.cuDeviceGetAttribute(scratch<int>(), CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);),
        CALL(cuDeviceTotalMem, kOk, true, return api.cuDeviceTotalMem(scratch<std::size_t>(), 0);),
        CALL(cuDeviceGetPCIBusId, kOk, true,
             return api.cuDeviceGetPCIBusId(reinterpret_cast<char*>(s.host), 64, 0);),
        CALL(cuDeviceGetByPCIBusId, kOk, true,
             return api.cuDeviceGetByPCIBusId(scratch<CUdevice>(), "0000:00:00.0");),
        CALL(cuDeviceCanAccessPeer, kOk, true,
             return api.cuDeviceCanAccessPeer(scratch<int>(), 0, 0);),
        CALL(cuDeviceGetP2PAttribute, CUDA_ERROR_INVALID_DEVICE, true,
             return api.cuDeviceGetP2PAttribute(scratch<int>(),
                                                CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0);),
        CALL(cuDevicePrimaryCtxRetain, kOk, true,
             return api.cuDevicePrimaryCtxRetain(scratch<CUcontext>(), 0);),
        CALL(cuDevicePrimaryCtxRelease, kOk, true, return api.cuDevicePrimaryCtxRelease(0);),
        CALL(cuDevicePrimaryCtxGetState, kOk, true,
             return api.cuDevicePrimaryCtxGetState(0, scratch<unsigned>(), scratch<int>());),
        CALL(cuCtxGetCurrent, kOk, true, return api.cuCtxGetCurrent(scratch<CUcontext>());),
        CALL(cuCtxSetCurrent, kOk, true, return api.cuCtxSetCurrent(s.context);),
        CALL(cuCtxPushCurrent, kOk, true, return api.cuCtxPushCurrent(s.context);),
        CALL(cuCtxPopCurrent, kOk, true, return api.cuCtxPopCurrent(nullptr);),
        CALL(cuCtxGetDevice, kOk, true, return api.cuCtxGetDevice(scratch<CUdevice>());),
        CALL(cuCtxGetStreamPriorityRange, kOk, true,
             return api.cuCtxGetStreamPriorityRange(nullptr, nullptr);),
        CALL(cuCtxGetLimit, kOk, true,
             return api.cuCtxGetLimit(scratch<std::size_t>(), CU_LIMIT_STACK_SIZE);),
        CALL(cuCtxGetId, kOk, true, return api.cuCtxGetId(nullptr, scratch<unsigned long long>());),
        CALL(cuCtxResetPersistingL2Cache, kOk, true, return api.cuCtxResetPersistingL2Cache();),
        CALL(cuModuleGetFunction, kOk, true,
             return api.cuModuleGetFunction(scratch<CUfunction>(), s.module, "push");),
        CALL(cuModuleGetGlobal, CUDA_ERROR_NOT_FOUND, true,
             return api.cuModuleGetGlobal(scratch<CUdeviceptr>(), nullptr, s.module, "none");),
        CALL(cuModuleGetLoadingMode, kOk, true,
             return api.cuModuleGetLoadingMode(scratch<CUmoduleLoadingMode>());),
        CALL(cuModuleGetFunctionCount, kOk, true,
             return api.cuModuleGetFunctionCount(scratch<unsigned>(), s.module);),
        CALL(cuModuleEnumerateFunctions, kOk, true,
             return api.cuModuleEnumerateFunctions(scratch<CUfunction>(), 1, s.module);),
        CALL(cuFuncGetAttribute, kOk, true,
             return api.cuFuncGetAttribute(scratch<int>(), CU_FUNC_ATTRIBUTE_NUM_REGS,
                                           s.push_kernel);),
        CALL(cuFuncSetAttribute, kOk, true,
             return api.cuFuncSetAttribute(s.push_kernel,
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);),
        CALL(cuFuncGetModule, kOk, true,
             return api.cuFuncGetModule(scratch<CUmodule>(), s.push_kernel);),
        CALL(cuFuncGetName, kOk, true,
             return api.cuFuncGetName(scratch<const char*>(), s.push_kernel);),
        CALL(cuFuncGetParamInfo, kOk, true,
             return api.cuFuncGetParamInfo(s.push_kernel, 0, scratch<std::size_t>(), nullptr);),
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, kOk, true,
             return api.cuOccupancyMaxActiveBlocksPerMultiprocessor(scratch<int>(), s.push_kernel,
                                                                    32, 0);),
        CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, kOk, true,
             return api.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                 scratch<int>(), s.push_kernel, 32, 0, 0);),
        CALL(cuOccupancyMaxPotentialBlockSize, kOk, true,
             return api.cuOccupancyMaxPotentialBlockSize(scratch<int>(), scratch<int>(),
                                                         s.push_kernel, nullptr, 0, 0);),
        CALL(cuOccupancyAvailableDynamicSMemPerBlock, kOk, true,
             return api.cuOccupancyAvailableDynamicSMemPerBlock(scratch<std::size_t>(),
                                                                s.push_kernel, 1, 32);),
        CALL(cuOccupancyMaxActiveClusters, wrong_on_90(), true,
             return api.cuOccupancyMaxActiveClusters(scratch<int>(), s.push_kernel, nullptr);),
        CALL(
            cuOccupancyMaxPotentialClusterSize, wrong_on_90(), true,
            return api.cuOccupancyMaxPotentialClusterSize(scratch<int>(), s.push_kernel, nullptr);),
        CALL(cuMemHostGetDevicePointer, kOk, true,
             return api.cuMemHostGetDevicePointer(scratch<CUdeviceptr>(), s.pinned, 0);),
        CALL(cuModuleLoadData, kOk, true,
             return api.cuModuleLoadData(scratch<CUmodule>(), kStreamKernels);),
        CALL(cuModuleLoadDataEx, kOk, true,
             return api.cuModuleLoadDataEx(scratch<CUmodule>(), kStreamKernels, 0, nullptr,
                                           nullptr);),
        CALL(cuMemGetInfo, kOk, true,
             return api.cuMemGetInfo(scratch<std::size_t>(), scratch<std::size_t>());),
        CALL(cuMemGetAddressRange, kOk, true,
             return api.cuMemGetAddressRange(scratch<CUdeviceptr>(), nullptr, s.x);),
        CALL(cuPointerGetAttribute, kOk, true,
             return api.cuPointerGetAttribute(scratch<unsigned>(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                              s.x);),
        CALL(cuPointerGetAttributes, kOk, true,
             CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
             void* value = scratch<unsigned>();
             return api.cuPointerGetAttributes(1, &attribute, &value, s.x);),
        CALL(cuMemAdvise, kOk, true,
             return api.cuMemAdvise(s.managed, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, 0);),
        CALL(cuDeviceGetDefaultMemPool, kOk, true,
             return api.cuDeviceGetDefaultMemPool(scratch<CUmemoryPool>(), 0);),
        CALL(cuMemPoolCreate, kOk, true, CUmemPoolProps properties{};
             properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
             properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
             return api.cuMemPoolCreate(scratch<CUmemoryPool>(), &properties);),
        CALL(cuMemPoolDestroy, kOk, true, return api.cuMemPoolDestroy(*scratch<CUmemoryPool>());),
        CALL(cuMemPoolSetAttribute, kOk, true, CUmemoryPool pool = nullptr;
             api.cuDeviceGetDefaultMemPool(&pool, 0);
             return api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, s.host);),
        CALL(cuMemPoolGetAttribute, kOk, true, CUmemoryPool pool = nullptr;
             api.cuDeviceGetDefaultMemPool(&pool, 0);
             return api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, s.host);),
        CALL(cuMemPoolTrimTo, kOk, true, CUmemoryPool pool = nullptr;
             api.cuDeviceGetDefaultMemPool(&pool, 0); return api.cuMemPoolTrimTo(pool, 0);),
        CALL(cuMemPoolSetAccess, kOk, true, CUmemoryPool pool = nullptr;
             api.cuDeviceGetDefaultMemPool(&pool, 0);
             return api.cuMemPoolSetAccess(pool, nullptr, 0);),
        CALL(cuTensorMapEncodeTiled, wrong_on_90(), true,
             return api.cuTensorMapEncodeTiled(scratch<CUtensorMap>(), {}, 0, nullptr, nullptr,
                                               nullptr, nullptr, nullptr, {}, {}, {}, {});),
        CALL(cuTensorMapEncodeIm2col, wrong_on_90(), true,
             return api.cuTensorMapEncodeIm2col(scratch<CUtensorMap>(), {}, 0, nullptr, nullptr,
                                                nullptr, nullptr, nullptr, 0, 0, nullptr, {}, {},
                                                {}, {});),
        CALL(cuTensorMapReplaceAddress, wrong_on_90(), true,
             return api.cuTensorMapReplaceAddress(scratch<CUtensorMap>(), nullptr);),
        CALL(kwTakeReport, CUDA_ERROR_NOT_FOUND, true, api.kwTakeReport(nullptr, scratch<Fault>());
             return api.kwTakeReport(nullptr, scratch<Fault>());),
        CALL(kwSetModuleResources, CUDA_ERROR_INVALID_HANDLE, true,
             return api.kwSetModuleResources(nullptr, nullptr, 0);),
  };
}

std::vector<Call> unsafe() {
  return {
    CALL(cuCtxSynchronize, kUnsupported, false, return api.cuCtxSynchronize();),
        CALL(cuCtxEnablePeerAccess, CUDA_ERROR_INVALID_DEVICE, true,
             return api.cuCtxEnablePeerAccess(s.context, 0);),
        CALL(cuCtxDisablePeerAccess, CUDA_ERROR_INVALID_DEVICE, true,
             return api.cuCtxDisablePeerAccess(s.context);),
        CALL(cuCtxSetLimit, kUnsupported, false,
             return api.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024);),
        CALL(cuModuleUnload, kUnsupported, false, return api.cuModuleUnload(s.module);),
        CALL(cuMemAlloc, kUnsupported, false, return api.cuMemAlloc(scratch<CUdeviceptr>(), 16);),
        CALL(cuMemFree, kUnsupported, false, return api.cuMemFree(s.x);),
        CALL(cuMemAllocHost, kUnsupported, false, return api.cuMemAllocHost(scratch<void*>(), 16);),
        CALL(cuMemHostAlloc, kUnsupported, false,
             return api.cuMemHostAlloc(scratch<void*>(), 16, 0);),
        CALL(cuMemFreeHost, kUnsupported, false, return api.cuMemFreeHost(s.pinned);),
        CALL(cuMemHostRegister, kUnsupported, false,
             return api.cuMemHostRegister(s.host, sizeof s.host, 0);),
        CALL(cuMemHostUnregister, kUnsupported, false, return api.cuMemHostUnregister(s.host);),
        CALL(cuMemAllocManaged, kUnsupported, false,
             return api.cuMemAllocManaged(scratch<CUdeviceptr>(), 16, CU_MEM_ATTACH_GLOBAL);),
        CALL(cuStreamSynchronize, kUnsupported, false, return api.cuStreamSynchronize(s.main);),
        CALL(cuStreamQuery, kUnsupported, false, return api.cuStreamQuery(s.main);),
        CALL(cuEventQuery, kUnsupported, false, return api.cuEventQuery(s.recorded);),
        CALL(cuEventSynchronize, kUnsupported, false, return api.cuEventSynchronize(s.recorded);),
  };
}

/// Work on the default stream, outside of the capture; an H200's driver accepts it, too. It does
/// not wait, since the capturing stream does not wait for the default stream.
std::vector<Call> beside() {
  return {
    CALL(cuMemcpyHtoD, kOk, true, return api.cuMemcpyHtoD(s.x, s.host, 16);),
        CALL(cuMemcpyDtoH, kOk, true, return api.cuMemcpyDtoH(s.host, s.x, 16);),
        CALL(cuMemcpyDtoD, kOk, true, return api.cuMemcpyDtoD(s.x, s.x, 16);),
        CALL(cuMemcpyPeer, kOk, true, return api.cuMemcpyPeer(s.x, s.context, s.x, s.context, 16);),
        CALL(cuMemsetD8, kOk, true, return api.cuMemsetD8(s.x, 0, 4);),
        CALL(cuMemsetD16, kOk, true, return api.cuMemsetD16(s.x, 0, 4);),
        CALL(cuMemsetD32, kOk, true, return api.cuMemsetD32(s.x, 0, 4);),
        CALL(cuMemsetD2D8, kOk, true, return api.cuMemsetD2D8(s.x, 8, 0, 4, 2);),
        CALL(cuMemsetD2D16, kOk, true, return api.cuMemsetD2D16(s.x, 8, 0, 4, 2);),
        CALL(cuMemsetD2D32, kOk, true, return api.cuMemsetD2D32(s.x, 16, 0, 4, 2);),
  };
}

std::vector<Call> captured() {
  return {
    CALL(cuLaunchKernel, kOk, true, return s.push(s.main, s.x, 1);),
        CALL(cuLaunchKernelEx, kOk, true,
             CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, s.main, nullptr, 0};
             return api.cuLaunchKernelEx(&config, s.count_kernel, s.x_parameters, nullptr);),
        CALL(cuLaunchHostFunc, kOk, true,
             return api.cuLaunchHostFunc(
                 s.main, [](void*) {}, nullptr);),
        CALL(cuMemAllocAsync, kOk, true,
             return api.cuMemAllocAsync(scratch<CUdeviceptr>(), 16, s.main);),
        CALL(cuMemAllocFromPoolAsync, kOk, true, CUmemoryPool pool = nullptr;
             api.cuDeviceGetDefaultMemPool(&pool, 0);
             return api.cuMemAllocFromPoolAsync(scratch<CUdeviceptr>(), 16, pool, s.main);),
        CALL(cuMemFreeAsync, CUDA_ERROR_INVALID_VALUE, false,
             return api.cuMemFreeAsync(s.pooled, s.main);),
        CALL(cuMemcpyAsync, kOk, true, return api.cuMemcpyAsync(s.x, s.x + 16, 16, s.main);),
        CALL(cuMemcpyHtoDAsync, kOk, true, return api.cuMemcpyHtoDAsync(s.x, s.host, 16, s.main);),
        CALL(cuMemcpyDtoHAsync, kOk, true, return api.cuMemcpyDtoHAsync(s.host, s.x, 16, s.main);),
        CALL(cuMemcpyDtoDAsync, kOk, true,
             return api.cuMemcpyDtoDAsync(s.x, s.x + 16, 16, s.main);),
        CALL(cuMemcpyPeerAsync, kOk, true,
             return api.cuMemcpyPeerAsync(s.x, s.context, s.x + 16, s.context, 16, s.main);),
        CALL(cuMemsetD8Async, kOk, true, return api.cuMemsetD8Async(s.x, 0, 4, s.main);),
        CALL(cuMemsetD16Async, kOk, true, return api.cuMemsetD16Async(s.x, 0, 4, s.main);),
        CALL(cuMemsetD32Async, kOk, true, return api.cuMemsetD32Async(s.x, 0, 4, s.main);),
        CALL(cuMemsetD2D8Async, kOk, true, return api.cuMemsetD2D8Async(s.x, 8, 0, 4, 2, s.main);),
        CALL(cuMemsetD2D16Async, kOk, true,
             return api.cuMemsetD2D16Async(s.x, 8, 0, 4, 2, s.main);),
        CALL(cuMemsetD2D32Async, kOk, true,
             return api.cuMemsetD2D32Async(s.x, 16, 0, 4, 2, s.main);),
        CALL(cuMemPrefetchAsync, kUnsupported, false,
             return api.cuMemPrefetchAsync(s.managed, 64, 0, s.main);),
        CALL(cuEventRecord, kOk, true, return api.cuEventRecord(s.mark, s.main);),
        CALL(cuEventRecordWithFlags, kOk, true,
             return api.cuEventRecordWithFlags(s.mark, s.main, CU_EVENT_RECORD_EXTERNAL);),
        CALL(cuStreamWaitEvent, CUDA_ERROR_STREAM_CAPTURE_ISOLATION, false,
             return api.cuStreamWaitEvent(s.main, s.recorded, 0);),
        CALL(cuGraphLaunch, kOk, true, return api.cuGraphLaunch(s.executable, s.main);),
        CALL(cuGraphUpload, kUnsupported, false, return api.cuGraphUpload(s.executable, s.main);),
  };
}

/// The whole of the scene's array to or from host memory.
CUDA_MEMCPY3D box_of(Scene& s) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = s.host;
  copy.srcPitch = 16;
  copy.srcHeight = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = s.array;
  copy.WidthInBytes = 16;
  copy.Height = 4;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY2D rows_of(Scene& s) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = s.x;
  copy.srcPitch = 16;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = s.array;
  copy.WidthInBytes = 16;
  copy.Height = 4;
  return copy;
}

CUDA_RESOURCE_DESC resource_of(Scene& s) {
  CUDA_RESOURCE_DESC resource{};
  resource.res.array.hArray = s.array;
  return resource;
}

std::vector<Call> of_arrays() {
  return {
    CALL(cuArrayCreate, kUnsupported, false,
         const CUDA_ARRAY_DESCRIPTOR d = {4, 4, CU_AD_FORMAT_FLOAT, 1};
         return api.cuArrayCreate(scratch<CUarray>(), &d);),
        CALL(cuArray3DCreate, kUnsupported, false,
             const CUDA_ARRAY3D_DESCRIPTOR d = {4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
             return api.cuArray3DCreate(scratch<CUarray>(), &d);),
        CALL(cuArrayGetDescriptor, kOk, true,
             return api.cuArrayGetDescriptor(scratch<CUDA_ARRAY_DESCRIPTOR>(), s.array);),
        CALL(cuArray3DGetDescriptor, kOk, true,
             return api.cuArray3DGetDescriptor(scratch<CUDA_ARRAY3D_DESCRIPTOR>(), s.array);),
        CALL(cuArrayDestroy, kUnsupported, false, return api.cuArrayDestroy(s.array);),
        CALL(cuMemcpy2D, kOk, true, const CUDA_MEMCPY2D copy = rows_of(s);
             return api.cuMemcpy2D(&copy);),
        CALL(cuMemcpy2DAsync, kOk, true, const CUDA_MEMCPY2D copy = rows_of(s);
             return api.cuMemcpy2DAsync(&copy, s.main);),
        CALL(cuMemcpy3D, kOk, true, const CUDA_MEMCPY3D copy = box_of(s);
             return api.cuMemcpy3D(&copy);),
        CALL(cuMemcpy3DAsync, kOk, true, const CUDA_MEMCPY3D copy = box_of(s);
             return api.cuMemcpy3DAsync(&copy, s.main);),
        CALL(cuTexObjectCreate, kOk, true, const CUDA_RESOURCE_DESC resource = resource_of(s);
             return api.cuTexObjectCreate(scratch<CUtexObject>(), &resource,
                                          scratch<CUDA_TEXTURE_DESC>(), nullptr);),
        CALL(cuTexObjectGetResourceDesc, kOk, true,
             return api.cuTexObjectGetResourceDesc(scratch<CUDA_RESOURCE_DESC>(), s.texture);),
        CALL(cuTexObjectGetTextureDesc, kOk, true,
             return api.cuTexObjectGetTextureDesc(scratch<CUDA_TEXTURE_DESC>(), s.texture);),
        CALL(cuTexObjectDestroy, kOk, true, return api.cuTexObjectDestroy(s.texture);),
        CALL(cuSurfObjectCreate, kOk, true, const CUDA_RESOURCE_DESC resource = resource_of(s);
             return api.cuSurfObjectCreate(scratch<CUsurfObject>(), &resource);),
        CALL(cuSurfObjectGetResourceDesc, kOk, true,
             return api.cuSurfObjectGetResourceDesc(scratch<CUDA_RESOURCE_DESC>(), s.surface);),
        CALL(cuSurfObjectDestroy, kOk, true, return api.cuSurfObjectDestroy(s.surface);),
  };
}

/// Making and ending a green context is refused to be safe: what a driver does here is not written.
std::vector<Call> of_green_contexts() {
  return {
    CALL(cuDeviceGetDevResource, kOk, true,
         return api.cuDeviceGetDevResource(0, scratch<CUdevResource>(), CU_DEV_RESOURCE_TYPE_SM);),
        CALL(cuDevSmResourceSplitByCount, kOk, true,
             return api.cuDevSmResourceSplitByCount(nullptr, scratch<unsigned>(), &s.resources,
                                                    nullptr, 0, 8);),
        CALL(cuDevResourceGenerateDesc, kOk, true,
             return api.cuDevResourceGenerateDesc(scratch<CUdevResourceDesc>(), &s.resources, 1);),
        CALL(cuGreenCtxCreate, kUnsupported, false,
             return api.cuGreenCtxCreate(scratch<CUgreenCtx>(), s.descriptor, 0,
                                         CU_GREEN_CTX_DEFAULT_STREAM);),
        CALL(cuCtxFromGreenCtx, kOk, true,
             return api.cuCtxFromGreenCtx(scratch<CUcontext>(), s.green);),
        CALL(cuGreenCtxDestroy, kUnsupported, false, return api.cuGreenCtxDestroy(s.green);),
        CALL(cuGreenCtxGetDevResource, kOk, true,
             return api.cuGreenCtxGetDevResource(s.green, scratch<CUdevResource>(),
                                                 CU_DEV_RESOURCE_TYPE_SM);),
        CALL(cuGreenCtxStreamCreate, kOk, true,
             const CUresult result = api.cuGreenCtxStreamCreate(scratch<CUstream>(), s.green,
                                                                CU_STREAM_NON_BLOCKING, 0);
             api.cuStreamDestroy(*scratch<CUstream>()); return result;),
        CALL(cuStreamGetGreenCtx, kOk, true,
             return api.cuStreamGetGreenCtx(s.main, scratch<CUgreenCtx>());),
  };
}

std::vector<Call> of_streams_and_graphs() {
  return {
    CALL(cuStreamCreate, kOk, true, return api.cuStreamCreate(scratch<CUstream>(), 0);),
        CALL(cuStreamDestroy, kOk, true, return api.cuStreamDestroy(*scratch<CUstream>());),
        CALL(cuStreamCreateWithPriority, kOk, true,
             const CUresult result = api.cuStreamCreateWithPriority(scratch<CUstream>(), 0, 0);
             api.cuStreamDestroy(*scratch<CUstream>()); return result;),
        CALL(cuStreamGetPriority, kOk, true,
             return api.cuStreamGetPriority(s.main, scratch<int>());),
        CALL(cuStreamGetFlags, kOk, true,
             return api.cuStreamGetFlags(s.main, scratch<unsigned>());),
        CALL(cuStreamGetCtx, kOk, true, return api.cuStreamGetCtx(s.main, scratch<CUcontext>());),
        CALL(cuStreamGetId, kOk, true,
             return api.cuStreamGetId(s.main, scratch<unsigned long long>());),
        CALL(cuStreamBeginCapture, CUDA_ERROR_ILLEGAL_STATE, true,
             return api.cuStreamBeginCapture(s.main, CU_STREAM_CAPTURE_MODE_GLOBAL);),
        CALL(cuStreamEndCapture, CUDA_ERROR_ILLEGAL_STATE, true,
             return api.cuStreamEndCapture(s.other, scratch<CUgraph>());),
        CALL(cuStreamIsCapturing, kOk, true,
             return api.cuStreamIsCapturing(s.main, scratch<CUstreamCaptureStatus>());),
        CALL(cuStreamGetCaptureInfo, kOk, true,
             return api.cuStreamGetCaptureInfo(s.main, scratch<CUstreamCaptureStatus>(), nullptr,
                                               nullptr, nullptr, nullptr);),
        CALL(cuThreadExchangeStreamCaptureMode, kOk, true,
             auto mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
             return api.cuThreadExchangeStreamCaptureMode(&mode);),
        CALL(cuEventCreate, kOk, true, return api.cuEventCreate(scratch<CUevent>(), 0);),
        CALL(cuEventDestroy, kOk, true, return api.cuEventDestroy(*scratch<CUevent>());),
        CALL(cuEventElapsedTime, CUDA_ERROR_INVALID_HANDLE, true,
             return api.cuEventElapsedTime(scratch<float>(), s.recorded, s.recorded);),
        CALL(cuGraphCreate, kOk, true, return api.cuGraphCreate(scratch<CUgraph>(), 0);),
        CALL(cuGraphDestroy, kOk, true, return api.cuGraphDestroy(*scratch<CUgraph>());),
        CALL(cuGraphClone, kOk, true,
             const CUresult result = api.cuGraphClone(scratch<CUgraph>(), s.graph);
             api.cuGraphDestroy(*scratch<CUgraph>()); return result;),
        CALL(cuGraphInstantiateWithFlags, kOk, true,
             return api.cuGraphInstantiateWithFlags(scratch<CUgraphExec>(), s.graph, 0);),
        CALL(cuGraphExecDestroy, kOk, true,
             return api.cuGraphExecDestroy(*scratch<CUgraphExec>());),
        CALL(cuGraphGetNodes, kOk, true,
             return api.cuGraphGetNodes(s.graph, nullptr, scratch<std::size_t>());),
        CALL(cuGraphGetRootNodes, kOk, true,
             return api.cuGraphGetRootNodes(s.graph, nullptr, scratch<std::size_t>());),
        CALL(cuGraphNodeFindInClone, CUDA_ERROR_INVALID_VALUE, true,
             return api.cuGraphNodeFindInClone(scratch<CUgraphNode>(), s.node, s.graph);),
        CALL(cuGraphNodeGetType, kOk, true,
             return api.cuGraphNodeGetType(s.node, scratch<CUgraphNodeType>());),
        CALL(cuGraphNodeGetDependencies, kOk, true,
             return api.cuGraphNodeGetDependencies(s.node, nullptr, scratch<std::size_t>());),
        CALL(
            cuGraphAddKernelNode, kOk, true, const auto kernel = s.kernel_node();
            return api.cuGraphAddKernelNode(scratch<CUgraphNode>(), s.graph, nullptr, 0, &kernel);),
        CALL(cuGraphKernelNodeGetParams, kOk, true,
             return api.cuGraphKernelNodeGetParams(s.node, scratch<CUDA_KERNEL_NODE_PARAMS>());),
        CALL(cuGraphKernelNodeSetParams, kOk, true, const auto kernel = s.kernel_node();
             return api.cuGraphKernelNodeSetParams(s.node, &kernel);),
        CALL(cuGraphExecKernelNodeSetParams, kOk, true, const auto kernel = s.kernel_node();
             return api.cuGraphExecKernelNodeSetParams(s.executable, s.node, &kernel);),
        CALL(cuGraphExecUpdate, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, true,
             // The graph has one more node by now.
             return api.cuGraphExecUpdate(s.executable, s.graph,
                                          scratch<CUgraphExecUpdateResultInfo>());),
        // Calls behind it find no such node.
        CALL(cuGraphDestroyNode, kOk, true, return api.cuGraphDestroyNode(s.node);),
  };
}

#undef CALL

std::vector<Call> all_calls() {
  std::vector<Call> calls = harmless();
  for (auto& more : {unsafe(), beside(), captured(), of_arrays(), of_green_contexts(),
                     of_streams_and_graphs()}) {
    calls.insert(calls.end(), more.begin(), more.end());
  }
  return calls;
}

}  // namespace

TEST_CASE(
    "sim capture: every call of the driver, what it returns and whether the capture survives") {
  Scene scene;
  std::set<std::string> names;
  for (const Call& call : all_calls()) {
    INFO(call.name);
    CHECK(names.insert(call.name).second);
    begin_capture(scene, scene.main, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(call.make(scene) == call.result);
    CHECK(capture_status(scene, scene.main) ==
          (call.survives ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED));
    if (!call.survives) {
      CHECK(scene.push(scene.main, scene.x, 1) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    CUgraph graph = nullptr;
    CHECK(scene.api.cuStreamEndCapture(scene.main, &graph) ==
          (call.survives ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
    if (graph != nullptr) CHECK(scene.api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  }
  // A reset ends the capture altogether; it has a test of its own.
  names.insert("cuDevicePrimaryCtxReset");
  std::set<std::string> expected;
  for_each_slot(scene.api, [&](const DriverRow& row, auto) { expected.insert(row.name); });
  CHECK(names == expected);
}
