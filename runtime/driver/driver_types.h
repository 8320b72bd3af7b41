// Our own declarations of the CUDA driver ABI, so no toolkit is needed. NOTE: names are CUDA's own;
// a macro of CUDA is a constant with a name of ours.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernwright {

using cuuint32_t = std::uint32_t;
using cuuint64_t = std::uint64_t;

using CUdevice = int;                    ///< ordinal of a device
using CUdeviceptr = unsigned long long;  ///< address in a device's memory

using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUkernel = struct CUkern_st*;
using CUgraphDeviceNode = struct CUgraphDeviceUpdatableNode_st*;
using CUarray = struct CUarray_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;
using CUtexObject = unsigned long long;   ///< what a kernel's cudaTextureObject_t holds
using CUsurfObject = unsigned long long;  ///< what a kernel's cudaSurfaceObject_t holds

using CUhostFn = void (*)(void* user_data);
using CUoccupancyB2DSize = std::size_t (*)(int block_size);

// The enumerations have a fixed underlying type: a value from a newer driver stays representable.
// clang-format off
#define KW_ENUM(type) enum type : int {
#define KW_VALUE(type, name, value) name = value,
#define KW_ENUM_END(type) };
// clang-format on
#include "driver/driver_enums.def"

struct CUuuid {
  char bytes[16];
};

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};

struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};

struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};

struct CUmemPoolProps {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void* win32SecurityAttributes;
  std::size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

struct CUaccessPolicyWindow {
  void* base_ptr;
  std::size_t num_bytes;
  float hitRatio;
  CUaccessProperty hitProp;
  CUaccessProperty missProp;
};

struct CUlaunchMemSyncDomainMap {
  unsigned char default_;
  unsigned char remote;
};

struct CUlaunchDim3 {
  unsigned int x, y, z;
};

struct CUlaunchProgrammaticEvent {
  CUevent event;
  int flags;
  int triggerAtBlockStart;
};

struct CUlaunchCompletionEvent {
  CUevent event;
  int flags;
};

struct CUlaunchDeviceUpdatableNode {
  int deviceUpdatable;
  CUgraphDeviceNode devNode;
};

union CUlaunchAttributeValue {
  char pad[64];
  CUaccessPolicyWindow accessPolicyWindow;
  int cooperative;
  CUsynchronizationPolicy syncPolicy;
  CUlaunchDim3 clusterDim;
  CUclusterSchedulingPolicy clusterSchedulingPolicyPreference;
  int programmaticStreamSerializationAllowed;
  CUlaunchProgrammaticEvent programmaticEvent;
  CUlaunchCompletionEvent launchCompletionEvent;
  int priority;
  CUlaunchMemSyncDomainMap memSyncDomainMap;
  CUlaunchMemSyncDomain memSyncDomain;
  CUlaunchDim3 preferredClusterDim;
  CUlaunchDeviceUpdatableNode deviceUpdatableKernelNode;
  unsigned int sharedMemCarveout;
  unsigned int nvlinkUtilCentricScheduling;
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned int numAttrs;
};

/// CUDA_KERNEL_NODE_PARAMS_v2: kernel nodes from CUDA 12.0 on.
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  void** kernelParams;
  void** extra;
  CUkernel kern;
  CUcontext ctx;
};

struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode errorNode;
  CUgraphNode errorFromNode;
};

/// Descriptor of a tensor copy: opaque, passed by value as a __grid_constant__ parameter.
/// NOTE: the driver asks for 64 bytes of alignment, the declaration in CUDA 13's cuda.h for 128.
struct CUtensorMap {
  alignas(128) cuuint64_t opaque[16];
};

/// 1-D and 2-D arrays: a height of 0 makes it 1-D.
struct CUDA_ARRAY_DESCRIPTOR {
  std::size_t Width, Height;
  CUarray_format Format;
  unsigned int NumChannels;
};

/// Arrays of all kinds. A height or depth of 0: the array does not have that dimension. The depth
/// of a layered array is its number of layers; a cubemap has six faces each.
struct CUDA_ARRAY3D_DESCRIPTOR {
  std::size_t Width, Height, Depth;
  CUarray_format Format;
  unsigned int NumChannels;
  unsigned int Flags;
};

struct CUDA_MEMCPY2D {
  std::size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  std::size_t srcPitch;
  std::size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  std::size_t dstPitch;
  std::size_t WidthInBytes, Height;
};

struct CUDA_MEMCPY3D {
  std::size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void* srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  void* reserved0;
  std::size_t srcPitch, srcHeight;
  std::size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void* dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  void* reserved1;
  std::size_t dstPitch, dstHeight;
  std::size_t WidthInBytes, Height, Depth;
};

/// The data source of a texture or surface object.
struct CUDA_RESOURCE_DESC {
  CUresourcetype resType;
  union {
    struct {
      CUarray hArray;
    } array;
    struct {
      CUmipmappedArray hMipmappedArray;
    } mipmap;
    struct {
      CUdeviceptr devPtr;
      CUarray_format format;
      unsigned int numChannels;
      std::size_t sizeInBytes;
    } linear;
    struct {
      CUdeviceptr devPtr;
      CUarray_format format;
      unsigned int numChannels;
      std::size_t width, height, pitchInBytes;
    } pitch2D;
    struct {
      int reserved[32];
    } reserved;
  } res;
  unsigned int flags;
};

/// How a texture object is sampled.
struct CUDA_TEXTURE_DESC {
  CUaddress_mode addressMode[3];
  CUfilter_mode filterMode;
  unsigned int flags;
  unsigned int maxAnisotropy;
  CUfilter_mode mipmapFilterMode;
  float mipmapLevelBias;
  float minMipmapLevelClamp;
  float maxMipmapLevelClamp;
  float borderColor[4];
  int reserved[12];
};

/// Another view of an array's bytes, for cuTexObjectCreate.
struct CUDA_RESOURCE_VIEW_DESC {
  CUresourceViewFormat format;
  std::size_t width, height, depth;
  unsigned int firstMipmapLevel, lastMipmapLevel;
  unsigned int firstLayer, lastLayer;
  unsigned int reserved[16];
};

/// Multiprocessors of a device or of a green context.
struct CUdevSmResource {
  unsigned int smCount;
  unsigned int minSmPartitionSize;
  unsigned int smCoscheduledAlignment;
};

/// A resource of one kind. Its padding is the driver's: only whole copies are valid.
struct CUdevResource {
  CUdevResourceType type;
  unsigned char _internal_padding[92];
  union {
    CUdevSmResource sm;
    unsigned char _oversize[48];
  };
};

/// The legacy default stream and the per-thread default stream, which are no real handles.
inline const CUstream kStreamLegacy = reinterpret_cast<CUstream>(std::uintptr_t{1});
inline const CUstream kStreamPerThread = reinterpret_cast<CUstream>(std::uintptr_t{2});

/// Markers of the `extra` argument of cuLaunchKernel.
inline void* const kLaunchParamEnd = nullptr;
inline void* const kLaunchParamBufferPointer = reinterpret_cast<void*>(std::uintptr_t{1});
inline void* const kLaunchParamBufferSize = reinterpret_cast<void*>(std::uintptr_t{2});

/// As a device of cuMemAdvise and cuMemPrefetchAsync: the host.
inline constexpr CUdevice kDeviceCpu = -1;

/// Flags of cuMemHostAlloc.
inline constexpr unsigned kMemHostAllocPortable = 1;
inline constexpr unsigned kMemHostAllocDeviceMap = 2;
inline constexpr unsigned kMemHostAllocWriteCombined = 4;

/// Flags of cuMemHostRegister.
inline constexpr unsigned kMemHostRegisterPortable = 1;
inline constexpr unsigned kMemHostRegisterDeviceMap = 2;
inline constexpr unsigned kMemHostRegisterIoMemory = 4;
inline constexpr unsigned kMemHostRegisterReadOnly = 8;

/// Flags of cuArray3DCreate.
inline constexpr unsigned kArrayLayered = 1;
inline constexpr unsigned kArraySurface = 2;
inline constexpr unsigned kArrayCubemap = 4;
inline constexpr unsigned kArrayGather = 8;

/// Flags of CUDA_TEXTURE_DESC.
inline constexpr unsigned kTextureReadAsInteger = 1;
inline constexpr unsigned kTextureNormalizedCoordinates = 2;
inline constexpr unsigned kTextureNoTrilinearOptimization = 32;

}  // namespace kernwright
