// Our own declaration of the DLPack ABI, versions 0 (unversioned) and 1.x.
// NOTE: names are DLPack's own; the values follow its specification.
#pragma once

#include <cstdint>

namespace kernwright {

inline constexpr std::uint32_t kDLPackMajor = 1;
inline constexpr std::uint32_t kDLPackMinor = 1;

enum DLDeviceType : std::int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
};

enum DLDataTypeCode : std::uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e5m2 = 12,
};

struct DLDevice {
  DLDeviceType device_type;
  std::int32_t device_id;
};

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< in elements; null: row-major
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

inline constexpr std::uint64_t kDLPackReadOnly = 1;
inline constexpr std::uint64_t kDLPackIsCopied = 2;

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

/// The head of every version of the exchange table; `prev_api` leads to older ones.
struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  const DLPackExchangeAPIHeader* prev_api;
};

/// The table behind type(x).__dlpack_c_exchange_api__ (DLPack 1.3). Functions return 0, or -1 with
/// a Python error set; none of them orders streams. Slots not called here are untyped.
struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  void* managed_tensor_allocator;
  void* managed_tensor_from_py_object_no_sync;
  void* managed_tensor_to_py_object_no_sync;
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out);  ///< may be null
  int (*current_work_stream)(DLDeviceType type, std::int32_t device, void** stream);
};

}  // namespace kernwright
