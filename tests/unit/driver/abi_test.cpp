// Our declarations of the driver's and NVRTC's ABI against NVIDIA's own headers, at compile time.
#include "driver/driver_api.h"
#include "driver/nvrtc_api.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>

// NOTE: cuda.h renames functions by macros (cuMemAlloc -> cuMemAlloc_v2), so the types of our slots
// get names of their own before it is included.
namespace slots {
using kernwright::DriverApi;
using kernwright::NvrtcApi;
#define KW_DRIVER(name, symbol, since, need, parameters) \
  using name##_type = decltype(DriverApi::name);
#define KW_DRIVER_EXTENSION(name, parameters)
#include "driver/driver_api.def"
#define KW_NVRTC(result, name, since, need, parameters) \
  using name##_type = decltype(NvrtcApi::name);
#include "driver/nvrtc_api.def"
}  // namespace slots

#ifdef NVIDIA_CUDA_H
#include NVIDIA_CUDA_H
#include NVIDIA_TYPEDEFS_H
#endif
#ifdef NVIDIA_NVRTC_H
#include NVIDIA_NVRTC_H
#include "nvrtc_present.h"
#endif

namespace {

/// Whether two types are passed alike: kind, size, signedness, and for pointers the type behind
/// them.
template <typename Ours, typename Theirs>
constexpr bool same_value();

template <typename Type>
concept Complete = requires {
  sizeof(Type);
};

template <typename Ours, typename Theirs>
constexpr bool same_pointee() {
  if constexpr (std::is_const_v<Ours> != std::is_const_v<Theirs>) {
    return false;
  } else if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> == std::is_void_v<Theirs>;
  } else if constexpr (std::is_function_v<Ours> || std::is_function_v<Theirs>) {
    return std::is_function_v<Ours> == std::is_function_v<Theirs>;
  } else if constexpr (Complete<Ours> && Complete<Theirs>) {
    return same_value<std::remove_const_t<Ours>, std::remove_const_t<Theirs>>();
  } else {
    return Complete<Ours> == Complete<Theirs>;  // handles: structs without a definition
  }
}

template <typename Type>
constexpr bool is_number = std::is_integral_v<Type> || std::is_enum_v<Type>;

template <typename Ours, typename Theirs>
constexpr bool same_value() {
  // CUDA 13 aligns CUtensorMap to more than CUDA 12 does: our type must satisfy both.
  if constexpr (sizeof(Ours) != sizeof(Theirs) || alignof(Ours) < alignof(Theirs)) {
    return false;
  } else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    return same_pointee<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
  } else if constexpr (std::is_enum_v<Ours> || std::is_enum_v<Theirs>) {
    return std::is_enum_v<Ours> == std::is_enum_v<Theirs>;
  } else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
    return std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
  } else {
    return std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs> &&
           std::is_class_v<Ours> == std::is_class_v<Theirs> &&
           std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
           is_number<Ours> == is_number<Theirs>;
  }
}

template <typename Ours, typename Theirs>
struct SameSignature : std::false_type {};

template <typename R1, typename... P1, typename R2, typename... P2>
requires(sizeof...(P1) == sizeof...(P2)) struct SameSignature<R1 (*)(P1...), R2 (*)(P2...)>
    : std::bool_constant<same_value<R1, R2>() && (same_value<P1, P2>() && ...)> {
};

template <typename Ours, typename Theirs>
constexpr bool same_signature = SameSignature<Ours, Theirs>::value;

// The comparison itself must be able to fail.
static_assert(same_signature<int (*)(const char*, void**), int (*)(const char*, void**)>);
static_assert(!same_signature<int (*)(const char*), int (*)(char*)>);
static_assert(!same_signature<int (*)(int), int (*)(unsigned)>);
static_assert(!same_signature<int (*)(int), int (*)(long)>);
static_assert(!same_signature<int (*)(int), int (*)(int, int)>);
static_assert(!same_signature<int (*)(int*), int (*)(long*)>);
static_assert(!same_signature<int (*)(int*), int (*)(void*)>);
static_assert(!same_signature<int (*)(float), int (*)(int)>);
static_assert(!same_signature<void* (*)(), long (*)()>);

}  // namespace

#ifdef NVIDIA_CUDA_H

#define KW_ENUM(type) static_assert(sizeof(kernwright::type) == sizeof(::type), #type);
#define KW_VALUE(type, name, value) \
  static_assert(static_cast<int>(kernwright::name) == static_cast<int>(::name), #name);
#define KW_ENUM_END(type)
#if CUDA_VERSION >= 13000
#include "driver/driver_enums.def"
#endif

// The version in the name of NVIDIA's typedef is the version for cuGetProcAddress.
#define KW_DRIVER(name, symbol, since, need, parameters) \
  static_assert(same_signature<slots::name##_type, PFN_##name##_v##since>, #name);
#define KW_DRIVER_EXTENSION(name, parameters)
#include "driver/driver_api.def"

#define SAME_STRUCT(type)                                           \
  static_assert(sizeof(kernwright::type) == sizeof(::type), #type); \
  static_assert(alignof(kernwright::type) == alignof(::type), #type)
#define SAME_FIELD(type, field)                                                        \
  static_assert(offsetof(kernwright::type, field) == offsetof(::type, field), #field); \
  static_assert(sizeof(kernwright::type::field) == sizeof(::type::field), #field)

SAME_STRUCT(CUuuid);
SAME_STRUCT(CUmemLocation);
SAME_FIELD(CUmemLocation, type);
SAME_FIELD(CUmemLocation, id);
SAME_STRUCT(CUmemAccessDesc);
SAME_FIELD(CUmemAccessDesc, flags);
SAME_STRUCT(CUmemAllocationProp);
SAME_FIELD(CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(CUmemAllocationProp, location);
SAME_FIELD(CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(CUmemAllocationProp, allocFlags);
SAME_STRUCT(CUmemPoolProps);
SAME_FIELD(CUmemPoolProps, handleTypes);
SAME_FIELD(CUmemPoolProps, location);
SAME_FIELD(CUmemPoolProps, win32SecurityAttributes);
SAME_FIELD(CUmemPoolProps, maxSize);
SAME_FIELD(CUmemPoolProps, reserved);
SAME_STRUCT(CUaccessPolicyWindow);
SAME_FIELD(CUaccessPolicyWindow, num_bytes);
SAME_FIELD(CUaccessPolicyWindow, hitRatio);
SAME_FIELD(CUaccessPolicyWindow, missProp);
SAME_STRUCT(CUlaunchMemSyncDomainMap);
SAME_STRUCT(CUlaunchAttributeValue);
SAME_FIELD(CUlaunchAttributeValue, clusterDim);
SAME_FIELD(CUlaunchAttributeValue, programmaticEvent);
SAME_FIELD(CUlaunchAttributeValue, launchCompletionEvent);
SAME_FIELD(CUlaunchAttributeValue, deviceUpdatableKernelNode);
SAME_FIELD(CUlaunchAttributeValue, programmaticEvent.triggerAtBlockStart);
SAME_STRUCT(CUlaunchAttribute);
SAME_FIELD(CUlaunchAttribute, id);
SAME_FIELD(CUlaunchAttribute, value);
SAME_STRUCT(CUlaunchConfig);
SAME_FIELD(CUlaunchConfig, gridDimX);
SAME_FIELD(CUlaunchConfig, blockDimX);
SAME_FIELD(CUlaunchConfig, blockDimZ);
SAME_FIELD(CUlaunchConfig, sharedMemBytes);
SAME_FIELD(CUlaunchConfig, hStream);
SAME_FIELD(CUlaunchConfig, attrs);
SAME_FIELD(CUlaunchConfig, numAttrs);
SAME_STRUCT(CUDA_KERNEL_NODE_PARAMS);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, func);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimX);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, extra);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kern);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, ctx);
SAME_STRUCT(CUgraphExecUpdateResultInfo);
SAME_FIELD(CUgraphExecUpdateResultInfo, result);
SAME_FIELD(CUgraphExecUpdateResultInfo, errorNode);
SAME_FIELD(CUgraphExecUpdateResultInfo, errorFromNode);
#if CUDA_VERSION >= 13000
SAME_STRUCT(CUtensorMap);
#endif
SAME_FIELD(CUtensorMap, opaque);
SAME_STRUCT(CUDA_ARRAY_DESCRIPTOR);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, Width);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, Height);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, Format);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_STRUCT(CUDA_ARRAY3D_DESCRIPTOR);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Height);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_STRUCT(CUDA_MEMCPY2D);
SAME_FIELD(CUDA_MEMCPY2D, srcXInBytes);
SAME_FIELD(CUDA_MEMCPY2D, srcY);
SAME_FIELD(CUDA_MEMCPY2D, srcMemoryType);
SAME_FIELD(CUDA_MEMCPY2D, srcHost);
SAME_FIELD(CUDA_MEMCPY2D, srcDevice);
SAME_FIELD(CUDA_MEMCPY2D, srcArray);
SAME_FIELD(CUDA_MEMCPY2D, srcPitch);
SAME_FIELD(CUDA_MEMCPY2D, dstXInBytes);
SAME_FIELD(CUDA_MEMCPY2D, dstY);
SAME_FIELD(CUDA_MEMCPY2D, dstMemoryType);
SAME_FIELD(CUDA_MEMCPY2D, dstHost);
SAME_FIELD(CUDA_MEMCPY2D, dstDevice);
SAME_FIELD(CUDA_MEMCPY2D, dstArray);
SAME_FIELD(CUDA_MEMCPY2D, dstPitch);
SAME_FIELD(CUDA_MEMCPY2D, WidthInBytes);
SAME_FIELD(CUDA_MEMCPY2D, Height);
SAME_STRUCT(CUDA_MEMCPY3D);
SAME_FIELD(CUDA_MEMCPY3D, srcXInBytes);
SAME_FIELD(CUDA_MEMCPY3D, srcY);
SAME_FIELD(CUDA_MEMCPY3D, srcZ);
SAME_FIELD(CUDA_MEMCPY3D, srcLOD);
SAME_FIELD(CUDA_MEMCPY3D, srcMemoryType);
SAME_FIELD(CUDA_MEMCPY3D, srcHost);
SAME_FIELD(CUDA_MEMCPY3D, srcDevice);
SAME_FIELD(CUDA_MEMCPY3D, srcArray);
SAME_FIELD(CUDA_MEMCPY3D, srcPitch);
SAME_FIELD(CUDA_MEMCPY3D, srcHeight);
SAME_FIELD(CUDA_MEMCPY3D, dstXInBytes);
SAME_FIELD(CUDA_MEMCPY3D, dstY);
SAME_FIELD(CUDA_MEMCPY3D, dstZ);
SAME_FIELD(CUDA_MEMCPY3D, dstLOD);
SAME_FIELD(CUDA_MEMCPY3D, dstMemoryType);
SAME_FIELD(CUDA_MEMCPY3D, dstHost);
SAME_FIELD(CUDA_MEMCPY3D, dstDevice);
SAME_FIELD(CUDA_MEMCPY3D, dstArray);
SAME_FIELD(CUDA_MEMCPY3D, dstPitch);
SAME_FIELD(CUDA_MEMCPY3D, dstHeight);
SAME_FIELD(CUDA_MEMCPY3D, WidthInBytes);
SAME_FIELD(CUDA_MEMCPY3D, Height);
SAME_FIELD(CUDA_MEMCPY3D, Depth);
SAME_STRUCT(CUDA_RESOURCE_DESC);
SAME_FIELD(CUDA_RESOURCE_DESC, resType);
SAME_FIELD(CUDA_RESOURCE_DESC, res.array.hArray);
SAME_FIELD(CUDA_RESOURCE_DESC, res.mipmap.hMipmappedArray);
SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.devPtr);
SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.format);
SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.numChannels);
SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.devPtr);
SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.format);
SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.numChannels);
SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.width);
SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.height);
SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
SAME_FIELD(CUDA_RESOURCE_DESC, flags);
SAME_STRUCT(CUDA_TEXTURE_DESC);
SAME_FIELD(CUDA_TEXTURE_DESC, addressMode);
SAME_FIELD(CUDA_TEXTURE_DESC, filterMode);
SAME_FIELD(CUDA_TEXTURE_DESC, flags);
SAME_FIELD(CUDA_TEXTURE_DESC, maxAnisotropy);
SAME_FIELD(CUDA_TEXTURE_DESC, mipmapFilterMode);
SAME_FIELD(CUDA_TEXTURE_DESC, mipmapLevelBias);
SAME_FIELD(CUDA_TEXTURE_DESC, minMipmapLevelClamp);
SAME_FIELD(CUDA_TEXTURE_DESC, maxMipmapLevelClamp);
SAME_FIELD(CUDA_TEXTURE_DESC, borderColor);
SAME_STRUCT(CUDA_RESOURCE_VIEW_DESC);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, format);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, width);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, height);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, depth);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, firstMipmapLevel);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, lastMipmapLevel);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, firstLayer);
SAME_FIELD(CUDA_RESOURCE_VIEW_DESC, lastLayer);
#if CUDA_VERSION >= 13000
SAME_STRUCT(CUdevSmResource);
SAME_FIELD(CUdevSmResource, smCount);
SAME_FIELD(CUdevSmResource, minSmPartitionSize);
SAME_FIELD(CUdevSmResource, smCoscheduledAlignment);
SAME_STRUCT(CUdevResource);
SAME_FIELD(CUdevResource, type);
SAME_FIELD(CUdevResource, sm);
#endif
static_assert(sizeof(kernwright::CUtexObject) == sizeof(::CUtexObject));
static_assert(sizeof(kernwright::CUsurfObject) == sizeof(::CUsurfObject));
static_assert(kernwright::kArrayLayered == CUDA_ARRAY3D_LAYERED);
static_assert(kernwright::kArraySurface == CUDA_ARRAY3D_SURFACE_LDST);
static_assert(kernwright::kArrayCubemap == CUDA_ARRAY3D_CUBEMAP);
static_assert(kernwright::kArrayGather == CUDA_ARRAY3D_TEXTURE_GATHER);
static_assert(kernwright::kTextureReadAsInteger == CU_TRSF_READ_AS_INTEGER);
static_assert(kernwright::kTextureNormalizedCoordinates == CU_TRSF_NORMALIZED_COORDINATES);
static_assert(kernwright::kTextureNoTrilinearOptimization ==
              CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
static_assert(kernwright::kDeviceCpu == CU_DEVICE_CPU);
static_assert(sizeof(kernwright::CUdeviceptr) == sizeof(::CUdeviceptr));
static_assert(sizeof(kernwright::CUdevice) == sizeof(::CUdevice));
static_assert(kernwright::kMemHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kernwright::kMemHostAllocDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(kernwright::kMemHostAllocWriteCombined == CU_MEMHOSTALLOC_WRITECOMBINED);
static_assert(kernwright::kMemHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(kernwright::kMemHostRegisterDeviceMap == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(kernwright::kMemHostRegisterIoMemory == CU_MEMHOSTREGISTER_IOMEMORY);
static_assert(kernwright::kMemHostRegisterReadOnly == CU_MEMHOSTREGISTER_READ_ONLY);

TEST_CASE("abi: constants that cuda.h spells as macros") {
  // Casts from integers to pointers are no constant expressions.
  CHECK(static_cast<void*>(kernwright::kStreamLegacy) == static_cast<void*>(CU_STREAM_LEGACY));
  CHECK(static_cast<void*>(kernwright::kStreamPerThread) ==
        static_cast<void*>(CU_STREAM_PER_THREAD));
  CHECK(kernwright::kLaunchParamEnd == CU_LAUNCH_PARAM_END);
  CHECK(kernwright::kLaunchParamBufferPointer == CU_LAUNCH_PARAM_BUFFER_POINTER);
  CHECK(kernwright::kLaunchParamBufferSize == CU_LAUNCH_PARAM_BUFFER_SIZE);
  MESSAGE("driver ABI compared with cuda.h of CUDA ", CUDA_VERSION / 1000, ".",
          CUDA_VERSION % 1000 / 10);
}

#else

TEST_CASE("abi: no cuda.h on this machine") {
  MESSAGE("the driver's ABI was NOT compared: no cuda.h and cudaTypedefs.h were found");
}

#endif

#ifdef NVIDIA_NVRTC_H

#define COMPARE_PRESENT(name) \
  static_assert(same_signature<slots::name##_type, decltype(&::name)>, #name);
#define COMPARE_ABSENT(name)
#define COMPARE_EXPANDED(presence, name) COMPARE_##presence(name)
#define COMPARE(presence, name) COMPARE_EXPANDED(presence, name)
#define KW_NVRTC(result, name, since, need, parameters) COMPARE(NVIDIA_HAS_##name, name)
#include "driver/nvrtc_api.def"

#define SAME_VALUE(name) \
  static_assert(static_cast<int>(kernwright::name) == static_cast<int>(::name), #name)
SAME_VALUE(NVRTC_SUCCESS);
SAME_VALUE(NVRTC_ERROR_OUT_OF_MEMORY);
SAME_VALUE(NVRTC_ERROR_PROGRAM_CREATION_FAILURE);
SAME_VALUE(NVRTC_ERROR_INVALID_INPUT);
SAME_VALUE(NVRTC_ERROR_INVALID_PROGRAM);
SAME_VALUE(NVRTC_ERROR_INVALID_OPTION);
SAME_VALUE(NVRTC_ERROR_COMPILATION);
SAME_VALUE(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE);
SAME_VALUE(NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
SAME_VALUE(NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
SAME_VALUE(NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
SAME_VALUE(NVRTC_ERROR_INTERNAL_ERROR);
SAME_VALUE(NVRTC_ERROR_TIME_FILE_WRITE_FAILED);
SAME_VALUE(NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED);
SAME_VALUE(NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED);
SAME_VALUE(NVRTC_ERROR_PCH_CREATE);
SAME_VALUE(NVRTC_ERROR_CANCELLED);
SAME_VALUE(NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED);

#ifdef NVRTC_INSTALL_HEADERS_SKIP_IF_EXISTS
SAME_VALUE(NVRTC_ERROR_BUSY);
static_assert(sizeof(kernwright::nvrtcBundledHeadersInfo) == sizeof(::nvrtcBundledHeadersInfo));
static_assert(offsetof(kernwright::nvrtcBundledHeadersInfo, numFiles) ==
              offsetof(::nvrtcBundledHeadersInfo, numFiles));
static_assert(offsetof(kernwright::nvrtcBundledHeadersInfo, uncompressedSize) ==
              offsetof(::nvrtcBundledHeadersInfo, uncompressedSize));
static_assert(kernwright::kInstallHeadersSkipIfExists == NVRTC_INSTALL_HEADERS_SKIP_IF_EXISTS);
static_assert(kernwright::kInstallHeadersForceOverwrite == NVRTC_INSTALL_HEADERS_FORCE_OVERWRITE);
static_assert(kernwright::kInstallHeadersNoWait == NVRTC_INSTALL_HEADERS_NO_WAIT);
#endif

TEST_CASE("abi: NVRTC's declarations") { MESSAGE("NVRTC's ABI compared with ", NVIDIA_NVRTC_H); }

#else

TEST_CASE("abi: no nvrtc.h on this machine") {
  MESSAGE("NVRTC's ABI was NOT compared: no nvrtc.h was found");
}

#endif
