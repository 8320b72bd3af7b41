// Green contexts of the fake driver: multiprocessors are only counted.
#include "unit/core/fake_partitions.h"

namespace kernwright::testing {
namespace {

constexpr unsigned kUnit = 8;

FakeDriver& fake() { return FakeDriver::get(); }

CUdevResource processors(unsigned count) {
  CUdevResource resource{};
  resource.type = count == 0 ? CU_DEV_RESOURCE_TYPE_INVALID : CU_DEV_RESOURCE_TYPE_SM;
  resource.sm = {count, kUnit, kUnit};
  return resource;
}

CUresult split(CUdevResource* groups, unsigned* count, CUdevResource* remainder) {
  if (groups != nullptr) {
    for (unsigned i = 0; i < *count; ++i) groups[i] = processors(kUnit);
    *remainder = processors(fake().partition_remainder);
  }
  *count = fake().partition_groups;
  return CUDA_SUCCESS;
}

/// A descriptor and a context are numbers: of multiprocessors, and in the context an id above it.
constexpr std::uintptr_t kCountBits = 16;

CUresult describe(CUdevResourceDesc* descriptor, const CUdevResource* resources, unsigned count) {
  std::uintptr_t sum = 0;
  for (unsigned i = 0; i < count; ++i) sum += resources[i].sm.smCount;
  *descriptor = reinterpret_cast<CUdevResourceDesc>(sum);
  return CUDA_SUCCESS;
}

CUresult create(CUgreenCtx* context, CUdevResourceDesc descriptor) {
  static std::uintptr_t last = 0;
  const std::uintptr_t id = ++last << kCountBits;
  *context = reinterpret_cast<CUgreenCtx>(id | reinterpret_cast<std::uintptr_t>(descriptor));
  fake().made("green context", *context);
  return CUDA_SUCCESS;
}

}  // namespace

void fill_partitions(DriverApi& api) {
  KW_FAKE(cuDeviceGetDevResource, (CUdevice, CUdevResource * resource, CUdevResourceType),
          if (fake().partition_groups == 0) return CUDA_ERROR_NOT_SUPPORTED;
          *resource = processors(fake().partition_groups * kUnit + fake().partition_remainder);
          return CUDA_SUCCESS;);
  KW_FAKE(cuDevSmResourceSplitByCount,
          (CUdevResource * groups, unsigned* count, const CUdevResource*, CUdevResource* remainder,
           unsigned, unsigned),
          return split(groups, count, remainder););
  KW_FAKE(cuDevResourceGenerateDesc,
          (CUdevResourceDesc * descriptor, CUdevResource * resources, unsigned count),
          return describe(descriptor, resources, count););
  KW_FAKE(cuGreenCtxCreate,
          (CUgreenCtx * context, CUdevResourceDesc descriptor, CUdevice, unsigned),
          return create(context, descriptor););
  KW_FAKE(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green),
          *context = reinterpret_cast<CUcontext>(green);
          return CUDA_SUCCESS;);
  KW_FAKE(
      cuGreenCtxDestroy, (CUgreenCtx context),
      return fake().gone("green context", context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;);
  KW_FAKE(cuGreenCtxGetDevResource,
          (CUgreenCtx context, CUdevResource * resource, CUdevResourceType),
          const std::uintptr_t number = reinterpret_cast<std::uintptr_t>(context);
          *resource = processors(static_cast<unsigned>(number & ((1u << kCountBits) - 1)));
          return CUDA_SUCCESS;);
  KW_FAKE(cuGreenCtxStreamCreate, (CUstream * stream, CUgreenCtx, unsigned flags, int priority),
          return fake().api().cuStreamCreateWithPriority(stream, flags, priority););
}

}  // namespace kernwright::testing
