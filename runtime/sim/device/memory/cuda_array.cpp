// Driver functions of CUDA arrays: the rules of driver/texture_parameters.h, and copies of boxes.
#include "driver/texture_parameters.h"
#include "sim/device/memory/copy.h"
#include "sim/device/profile.h"
#include "sim/device/sim_driver.h"
#include "sim/device/teardown.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

std::shared_ptr<CudaArray> find_array(CUarray handle) {
  auto array = sim_driver().arrays.find(handle);
  require(array != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return array;
}

void create_array(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  const auto context = current_context();
  require(handle != nullptr && check_array(descriptor, ProfileLimits{}).empty());
  sim_driver().captures.forbid_unsafe();
  auto array = std::make_shared<CudaArray>();
  array->context = context;
  array->descriptor = descriptor;
  array->element = texel_bytes(descriptor.Format, descriptor.NumChannels);
  array->row = array->element * descriptor.Width;
  array->slice = array->row * std::max<std::size_t>(descriptor.Height, 1);
  const std::size_t bytes = array->slice * std::max<std::size_t>(descriptor.Depth, 1);
  array->address = allocate_for(*context, bytes, {});
  try {
    *handle = sim_driver().arrays.insert(array);
  } catch (...) {
    discard_allocation(array->address);
    throw;
  }
}

/// One side of a copy of a box, as CUDA_MEMCPY3D gives it.
struct BoxSide {
  CUmemorytype type;
  std::uint64_t host, device;
  CUarray array;
  std::size_t x, y, z;
  std::size_t pitch, height;
};

struct BoxExtent {
  std::size_t bytes, rows, slices;
};

struct BoxPlace {
  std::uint64_t address;
  Side side;
  CopyPitch pitch;
};

BoxPlace locate_array(const BoxSide& side, const BoxExtent& box) {
  const auto array = find_array(side.array);
  const CUDA_ARRAY3D_DESCRIPTOR& d = array->descriptor;
  const auto fits = [](std::size_t first, std::size_t count, std::size_t all) {
    return count <= all && first <= all - count;
  };
  require(side.x % array->element == 0 && box.bytes % array->element == 0);
  require(fits(side.x, box.bytes, array->row));
  require(fits(side.y, box.rows, std::max<std::size_t>(d.Height, 1)));
  require(fits(side.z, box.slices, std::max<std::size_t>(d.Depth, 1)));
  return {array->address + side.x + side.y * array->row + side.z * array->slice,
          Side::device,
          {array->row, array->slice}};
}

/// For one row the pitch does not matter, nor the height for one slice.
BoxPlace locate_box(const BoxSide& side, const BoxExtent& box) {
  if (side.type == CU_MEMORYTYPE_ARRAY) return locate_array(side, box);
  const bool one_row = box.rows <= 1 && box.slices <= 1 && side.y == 0 && side.z == 0;
  const bool one_slice = box.slices <= 1 && side.z == 0;
  require(one_row || (side.pitch >= box.bytes && side.x <= side.pitch - box.bytes));
  require(one_slice || (side.height >= box.rows && side.y <= side.height - box.rows));
  const std::size_t slice = side.pitch * side.height;
  const std::size_t offset = side.x + side.y * side.pitch + side.z * slice;
  const CopyPitch pitch{side.pitch, slice};
  switch (side.type) {
    case CU_MEMORYTYPE_HOST: return {side.host + offset, Side::host, pitch};
    case CU_MEMORYTYPE_DEVICE: return {side.device + offset, Side::device, pitch};
    default:
      require(side.type == CU_MEMORYTYPE_UNIFIED);
      return {side.device + offset, Side::any, pitch};
  }
}

CopyWork box_copy(const char* call, const BoxSide& from, const BoxSide& to, const BoxExtent& box) {
  const BoxPlace source = locate_box(from, box), target = locate_box(to, box);
  return {call, target.address, source.address, box.bytes,    target.side, source.side,
          {},   box.rows,       box.slices,     target.pitch, source.pitch};
}

std::uint64_t address_number(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

CopyWork make_copy(const char* call, const CUDA_MEMCPY2D* copy) {
  require(copy != nullptr);
  return box_copy(call,
                  {copy->srcMemoryType, address_number(copy->srcHost), copy->srcDevice,
                   copy->srcArray, copy->srcXInBytes, copy->srcY, 0, copy->srcPitch, 0},
                  {copy->dstMemoryType, address_number(copy->dstHost), copy->dstDevice,
                   copy->dstArray, copy->dstXInBytes, copy->dstY, 0, copy->dstPitch, 0},
                  {copy->WidthInBytes, copy->Height, 1});
}

CopyWork make_copy(const char* call, const CUDA_MEMCPY3D* copy) {
  require(copy != nullptr && copy->srcLOD == 0 && copy->dstLOD == 0);
  require(copy->reserved0 == nullptr && copy->reserved1 == nullptr);
  return box_copy(
      call,
      {copy->srcMemoryType, address_number(copy->srcHost), copy->srcDevice, copy->srcArray,
       copy->srcXInBytes, copy->srcY, copy->srcZ, copy->srcPitch, copy->srcHeight},
      {copy->dstMemoryType, address_number(copy->dstHost), copy->dstDevice, copy->dstArray,
       copy->dstXInBytes, copy->dstY, copy->dstZ, copy->dstPitch, copy->dstHeight},
      {copy->WidthInBytes, copy->Height, copy->Depth});
}

}  // namespace

void calls::cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  require(descriptor != nullptr);
  create_array(array, {descriptor->Width, descriptor->Height, 0, descriptor->Format,
                       descriptor->NumChannels, 0});
}

void calls::cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  require(descriptor != nullptr);
  create_array(array, *descriptor);
}

void calls::cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array) {
  current_context();
  require(descriptor != nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR all = find_array(array)->descriptor;
  *descriptor = {all.Width, all.Height, all.Format, all.NumChannels};
}

void calls::cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  current_context();
  require(descriptor != nullptr);
  *descriptor = find_array(array)->descriptor;
}

/// Waits for the device, as cuMemFree does. Objects over the array are found at their next use.
void calls::cuArrayDestroy(CUarray array) {
  const auto context = current_context();
  find_array(array);
  sim_driver().captures.forbid_unsafe();
  sim_driver().queues.finish(*context);
  sim_driver().order.host_learns(*context, false);
  const auto gone = sim_driver().arrays.remove(array);
  require(gone != nullptr, CUDA_ERROR_INVALID_HANDLE);
  discard_allocation(gone->address);
}

void calls::cuMemcpy2D(const CUDA_MEMCPY2D* copy) { copy_now(make_copy("cuMemcpy2D", copy), true); }
void calls::cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  const StreamUse use = use_stream(stream);
  copy_async(use, make_copy("cuMemcpy2DAsync", copy));
}

void calls::cuMemcpy3D(const CUDA_MEMCPY3D* copy) { copy_now(make_copy("cuMemcpy3D", copy), true); }
void calls::cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  const StreamUse use = use_stream(stream);
  copy_async(use, make_copy("cuMemcpy3DAsync", copy));
}

}  // namespace kernwright::sim
