// The functions of the fake driver's table.
#include "unit/core/fake_driver.h"

#include "core/device.h"
#include "unit/core/fake_graph.h"
#include "unit/core/fake_partitions.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace kernwright::testing {
namespace {

struct Object {
  int device = 0;
  FakeKernel kernel;
  float time = 0;
};

thread_local CUcontext current = nullptr;

FakeDriver& fake() { return FakeDriver::get(); }

template <typename Handle>
Object* object_of(Handle handle) {
  return reinterpret_cast<Object*>(handle);
}

/// Primary contexts: one per ordinal, never freed.
CUcontext primary(int device) {
  static std::array<Object, 64> contexts;
  contexts[device].device = device;
  return reinterpret_cast<CUcontext>(&contexts[device]);
}

/// The objects behind handles. Those of a lost device stay here.
std::map<const void*, std::unique_ptr<Object>>& objects() {
  static auto* const all = new std::map<const void*, std::unique_ptr<Object>>;
  return *all;
}

template <typename Handle>
CUresult make(Handle* out, const char* kind, FakeKernel kernel = {}) {
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  auto made = std::make_unique<Object>(Object{object_of(current)->device, std::move(kernel), 0});
  *out = reinterpret_cast<Handle>(made.get());
  fake().made(kind, made.get());
  objects()[*out] = std::move(made);
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult destroy(Handle handle, const char* kind) {
  if (!fake().gone(kind, handle)) return CUDA_ERROR_INVALID_HANDLE;
  objects().erase(handle);
  return CUDA_SUCCESS;
}

/// Host bytes of [address, address + bytes) when they lie inside one piece of memory.
unsigned char* bytes_at(CUdeviceptr address, std::size_t bytes) {
  auto& memory = fake().memory;
  auto next = memory.upper_bound(address);
  if (next == memory.begin()) return nullptr;
  const auto& [start, storage] = *std::prev(next);
  if (address + bytes > start + storage->size()) return nullptr;
  return storage->data() + (address - start);
}

CUresult allocate(CUdeviceptr* out, std::size_t bytes) {
  static std::uint64_t next = std::uint64_t{1} << 40;
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > fake().total_memory - fake().used_memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = next;
  next += (bytes + 511) / 256 * 256;
  fake().memory[*out] = new std::vector<unsigned char>(bytes, 0xcd);
  fake().used_memory += bytes;
  return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr address) {
  const auto found = fake().memory.find(address);
  if (found == fake().memory.end()) return CUDA_ERROR_INVALID_VALUE;
  fake().used_memory -= found->second->size();
  delete found->second;
  fake().memory.erase(found);
  return CUDA_SUCCESS;
}

CUresult copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (to == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::memmove(to, from, bytes);
  return CUDA_SUCCESS;
}

template <typename Value>
CUresult set_bytes(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,
                   std::size_t height) {
  for (std::size_t row = 0; row < height; ++row) {
    unsigned char* at = bytes_at(to + row * pitch, width * sizeof(Value));
    if (at == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < width; ++i)
      std::memcpy(at + i * sizeof(Value), &value, sizeof value);
  }
  return CUDA_SUCCESS;
}

int default_attribute(int which) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 2147483647;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 232448;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 4;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    default:
      return 0;
  }
}

int function_attribute(const FakeKernel& kernel, CUfunction_attribute which) {
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return kernel.max_threads;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return kernel.shared_bytes;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return kernel.registers;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 90;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return 49152 - kernel.shared_bytes;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      return kernel.required_cluster[0];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      return kernel.required_cluster[1];
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return kernel.required_cluster[2];
    default:
      return 0;
  }
}

std::size_t parameter_offset(const FakeKernel& kernel, std::size_t index) {
  std::size_t end = 0;
  for (std::size_t i = 0;; ++i) {
    const std::size_t size = kernel.parameter_sizes[i];
    const std::size_t alignment = std::min<std::size_t>(size & (~size + 1), 16);
    end = (end + alignment - 1) / alignment * alignment;
    if (i == index) return end;
    end += size;
  }
}

CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters) {
  const FakeKernel& kernel = object_of(function)->kernel;
  FakeLaunch record;
  record.kernel = kernel.name;
  record.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  record.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  record.shared_bytes = config->sharedMemBytes;
  record.stream = config->hStream;
  record.attributes.assign(config->attrs, config->attrs + config->numAttrs);
  for (std::size_t i = 0; i < kernel.parameter_sizes.size(); ++i) {
    record.arguments.emplace_back(static_cast<const char*>(parameters[i]),
                                  kernel.parameter_sizes[i]);
  }
  if (!capture_launch(function, record)) fake().launches.push_back(std::move(record));
  return CUDA_SUCCESS;
}

}  // namespace

namespace {

void fill_devices(DriverApi& api) {
  KW_FAKE(cuInit, (unsigned), return CUDA_SUCCESS;);
  KW_FAKE(cuDriverGetVersion, (int* version), *version = 12080; return CUDA_SUCCESS;);
  KW_FAKE(cuGetErrorString, (CUresult, const char** text), *text = "as the test planned";
          return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceGetCount, (int* count), *count = fake().device_count; return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceGet, (CUdevice * device, int ordinal), *device = ordinal; return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceGetName, (char* name, int, CUdevice), std::strcpy(name, "Fake GPU");
          return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device),
          for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(0xa0 + i);
          uuid->bytes[15] = static_cast<char>(device); return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceGetPCIBusId, (char* text, int, CUdevice device),
          std::strcpy(text, device == 0 ? "0000:65:00.0" : "0000:66:00.0");
          return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceGetAttribute, (int* value, CUdevice_attribute which, CUdevice),
          if (which == 9999) return CUDA_ERROR_INVALID_VALUE;
          const auto found = fake().attributes.find(which);
          *value = found != fake().attributes.end() ? found->second : default_attribute(which);
          return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceCanAccessPeer, (int* can, CUdevice device, CUdevice peer),
          *can = device != peer && fake().peers ? 1 : 0;
          return CUDA_SUCCESS;);
  KW_FAKE(cuCtxEnablePeerAccess, (CUcontext, unsigned), return CUDA_SUCCESS;);
  KW_FAKE(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
          *context = primary(device);
          return CUDA_SUCCESS;);
  KW_FAKE(cuCtxGetCurrent, (CUcontext * context), *context = current; return CUDA_SUCCESS;);
  KW_FAKE(cuCtxSetCurrent, (CUcontext context), current = context; return CUDA_SUCCESS;);
  KW_FAKE(cuCtxSynchronize, (), return CUDA_SUCCESS;);
  KW_FAKE(cuCtxGetStreamPriorityRange, (int* least, int* greatest), *least = 0; *greatest = -5;
          return CUDA_SUCCESS;);
}

/// A load writes the driver's log even if it fails by plan.
CUresult load_module(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                     void** values) {
  const std::lock_guard lock(fake().mutex);
  fake().image = static_cast<const char*>(image);
  const auto planned = fake().enter("cuModuleLoadDataEx");
  if (!planned) return make(module, "module");
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
      std::strcpy(static_cast<char*>(values[i]), fake().load_log.c_str());
    }
  }
  return *planned;
}

/// Functions live as long as the process, as those of a driver's module may be asked for again.
CUfunction make_function(const FakeKernel& kernel) {
  static auto* const functions = new std::vector<std::unique_ptr<Object>>;
  functions->push_back(std::make_unique<Object>(Object{0, kernel, 0}));
  return reinterpret_cast<CUfunction>(functions->back().get());
}

void fill_modules(DriverApi& api) {
  api.cuModuleLoadDataEx = load_module;
  KW_FAKE(cuModuleUnload, (CUmodule module), return destroy(module, "module"););
  KW_FAKE(
      cuModuleGetFunction, (CUfunction * function, CUmodule, const char* name),
      for (const FakeKernel& kernel
           : fake().kernels) {
        if (kernel.name == name) {
          *function = make_function(kernel);
          return CUDA_SUCCESS;
        }
      } return CUDA_ERROR_NOT_FOUND;);
  KW_FAKE(cuModuleGetGlobal,
          (CUdeviceptr * address, std::size_t * bytes, CUmodule, const char* name),
          const auto found = fake().globals.find(name);
          if (found == fake().globals.end()) return CUDA_ERROR_NOT_FOUND; *address = 0x1000;
          *bytes = found->second; return CUDA_SUCCESS;);
  KW_FAKE(cuModuleGetFunctionCount, (unsigned* count, CUmodule),
          *count = static_cast<unsigned>(fake().kernels.size());
          return CUDA_SUCCESS;);
  KW_FAKE(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned count, CUmodule),
          for (unsigned i = 0; i < count; ++i) functions[i] = make_function(fake().kernels[i]);
          return CUDA_SUCCESS;);
  KW_FAKE(cuFuncGetName, (const char** name, CUfunction function),
          *name = object_of(function)->kernel.name.c_str();
          return CUDA_SUCCESS;);
  KW_FAKE(cuFuncGetAttribute, (int* value, CUfunction_attribute which, CUfunction function),
          *value = function_attribute(object_of(function)->kernel, which);
          return CUDA_SUCCESS;);
  KW_FAKE(cuFuncSetAttribute, (CUfunction, CUfunction_attribute which, int value),
          fake().notes.emplace_back(which, static_cast<CUresult>(value));
          return CUDA_SUCCESS;);
  KW_FAKE(cuFuncGetParamInfo,
          (CUfunction function, std::size_t index, std::size_t * offset, std::size_t * size),
          const FakeKernel& kernel = object_of(function)->kernel;
          if (!fake().tells_parameters) return CUDA_ERROR_NOT_SUPPORTED;
          if (index >= kernel.parameter_sizes.size()) return CUDA_ERROR_INVALID_VALUE;
          *offset = parameter_offset(kernel, index); *size = kernel.parameter_sizes[index];
          return CUDA_SUCCESS;);
  KW_FAKE(cuLaunchKernelEx,
          (const CUlaunchConfig* config, CUfunction function, void** parameters, void**),
          return launch(config, function, parameters););
  KW_FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor,
          (int* blocks, CUfunction, int block_size, std::size_t), *blocks = 2048 / block_size;
          return CUDA_SUCCESS;);
  KW_FAKE(cuOccupancyMaxPotentialClusterSize, (int* blocks, CUfunction, const CUlaunchConfig*),
          *blocks = 12;
          return CUDA_SUCCESS;);
  KW_FAKE(cuOccupancyMaxPotentialBlockSize,
          (int* grid, int* block, CUfunction function, CUoccupancyB2DSize, std::size_t, int),
          *grid = 8;
          *block = object_of(function)->kernel.max_threads; return CUDA_SUCCESS;);
}

void fill_streams(DriverApi& api) {
  KW_FAKE(cuStreamCreateWithPriority, (CUstream * stream, unsigned, int priority),
          fake().notes.emplace_back(priority, CUDA_SUCCESS);
          return make(stream, "stream"););
  KW_FAKE(cuStreamDestroy, (CUstream stream), return destroy(stream, "stream"););
  KW_FAKE(cuStreamSynchronize, (CUstream), return CUDA_SUCCESS;);
  KW_FAKE(cuStreamQuery, (CUstream), return CUDA_SUCCESS;);
  KW_FAKE(cuStreamGetPriority, (CUstream, int* priority), *priority = -3; return CUDA_SUCCESS;);
  KW_FAKE(cuEventCreate, (CUevent * event, unsigned), return make(event, "event"););
  KW_FAKE(cuEventDestroy, (CUevent event), return destroy(event, "event"););
  KW_FAKE(cuEventRecord, (CUevent event, CUstream stream), static float now = 0;
          capture_event(event, stream); object_of(event)->time = now += 1.5F; return CUDA_SUCCESS;);
  KW_FAKE(cuEventSynchronize, (CUevent), return CUDA_SUCCESS;);
  KW_FAKE(cuEventQuery, (CUevent), return CUDA_SUCCESS;);
  KW_FAKE(cuEventElapsedTime, (float* ms, CUevent start, CUevent end),
          *ms = object_of(end)->time - object_of(start)->time;
          return CUDA_SUCCESS;);
}

void fill_memory(DriverApi& api) {
  KW_FAKE(cuMemAlloc, (CUdeviceptr * address, std::size_t bytes), return allocate(address, bytes););
  KW_FAKE(cuMemFree, (CUdeviceptr address), return release(address););
  KW_FAKE(cuMemAllocAsync, (CUdeviceptr * address, std::size_t bytes, CUstream),
          return allocate(address, bytes););
  KW_FAKE(cuMemFreeAsync, (CUdeviceptr address, CUstream), return release(address););
  KW_FAKE(cuMemGetInfo, (std::size_t * free, std::size_t * total),
          *free = fake().total_memory - fake().used_memory;
          *total = fake().total_memory; return CUDA_SUCCESS;);
  KW_FAKE(cuMemHostAlloc, (void** address, std::size_t bytes, unsigned),
          *address = std::malloc(bytes);
          fake().made("host", *address); return CUDA_SUCCESS;);
  KW_FAKE(cuMemFreeHost, (void* address),
          if (!fake().gone("host", address)) return CUDA_ERROR_INVALID_VALUE;
          std::free(address); return CUDA_SUCCESS;);
  KW_FAKE(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device),
          *pool = reinterpret_cast<CUmemoryPool>(primary(device));
          return CUDA_SUCCESS;);
  KW_FAKE(cuMemPoolSetAttribute, (CUmemoryPool, CUmemPool_attribute, void*), return CUDA_SUCCESS;);
  KW_FAKE(cuMemPoolGetAttribute, (CUmemoryPool, CUmemPool_attribute, void* value),
          *static_cast<cuuint64_t*>(value) = fake().used_memory;
          return CUDA_SUCCESS;);
  KW_FAKE(cuMemPoolTrimTo, (CUmemoryPool, std::size_t), return CUDA_SUCCESS;);
  KW_FAKE(cuPointerGetAttribute, (void* value, CUpointer_attribute which, CUdeviceptr address),
          if (which != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
              bytes_at(address, 1) == nullptr) return CUDA_ERROR_INVALID_VALUE;
          *static_cast<int*>(value) = 0; return CUDA_SUCCESS;);
}

void fill_copies(DriverApi& api) {
  KW_FAKE(cuMemcpyHtoD, (CUdeviceptr to, const void* from, std::size_t bytes),
          return copy_bytes(bytes_at(to, bytes), from, bytes););
  KW_FAKE(cuMemcpyHtoDAsync, (CUdeviceptr to, const void* from, std::size_t bytes, CUstream),
          return copy_bytes(bytes_at(to, bytes), from, bytes););
  KW_FAKE(cuMemcpyDtoH, (void* to, CUdeviceptr from, std::size_t bytes),
          return copy_bytes(to, bytes_at(from, bytes), bytes););
  KW_FAKE(cuMemcpyDtoHAsync, (void* to, CUdeviceptr from, std::size_t bytes, CUstream),
          return copy_bytes(to, bytes_at(from, bytes), bytes););
  KW_FAKE(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream),
          return copy_bytes(bytes_at(to, bytes), bytes_at(from, bytes), bytes););
  KW_FAKE(cuMemcpyPeer, (CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t bytes),
          return copy_bytes(bytes_at(to, bytes), bytes_at(from, bytes), bytes););
  KW_FAKE(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, std::size_t count, CUstream),
          return set_bytes(to, 0, value, count, 1););
  KW_FAKE(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, std::size_t count, CUstream),
          return set_bytes(to, 0, value, count, 1););
  KW_FAKE(cuMemsetD32Async, (CUdeviceptr to, unsigned value, std::size_t count, CUstream),
          return set_bytes(to, 0, value, count, 1););
  KW_FAKE(cuMemsetD2D32Async,
          (CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
           CUstream),
          return set_bytes(to, pitch, value, width, height););
  KW_FAKE(kwTakeReport, (CUcontext, Fault * report),
          if (!fake().report) return CUDA_ERROR_NOT_FOUND;
          *report = *fake().report; fake().report.reset(); return CUDA_SUCCESS;);
  KW_FAKE(kwSetModuleResources, (CUmodule, const void* cubin, std::size_t bytes),
          if (bytes != 0) fake().resource_image.assign(static_cast<const char*>(cubin), bytes);
          return CUDA_SUCCESS;);
}

}  // namespace

FakeDriver::FakeDriver() {
  fill_devices(api_);
  fill_modules(api_);
  fill_streams(api_);
  fill_partitions(api_);
  fill_memory(api_);
  fill_copies(api_);
  fill_graphs(api_);
}

FakeDriver& FakeDriver::get() {
  static auto* const instance = new FakeDriver;
  return *instance;
}

void FakeDriver::reset() {
  const std::lock_guard lock(mutex);
  reset_captures();
  failures_.clear();
  calls_.clear();
  for (auto& [address, storage] : memory) delete storage;
  memory.clear();
  handles.clear();
  used_memory = 0;
  device_count = 2;
  peers = true;
  attributes.clear();
  total_memory = 1 << 30;
  partition_groups = partition_remainder = 0;
  kernels.clear();
  globals.clear();
  tells_parameters = true;
  load_log.clear();
  launches.clear();
  report.reset();
  image.clear();
  resource_image.clear();
  notes.clear();
  current = nullptr;
}

void FakeDriver::fail(const std::string& function, CUresult result, int times, int skip) {
  const std::lock_guard lock(mutex);
  failures_[function] = {result, skip, times};
}

int FakeDriver::calls(const std::string& function) {
  const std::lock_guard lock(mutex);
  return calls_[function];
}

int FakeDriver::live(const std::string& kind) {
  const std::lock_guard lock(mutex);
  if (kind == "memory") return static_cast<int>(memory.size());
  return static_cast<int>(std::count_if(handles.begin(), handles.end(),
                                        [&](const auto& entry) { return entry.second == kind; }));
}

std::optional<CUresult> FakeDriver::enter(const char* function) {
  ++calls_[function];
  const auto found = failures_.find(function);
  if (found == failures_.end()) return std::nullopt;
  if (found->second.skip-- > 0) return std::nullopt;
  const CUresult result = found->second.result;
  if (--found->second.times <= 0) {
    failures_.erase(found);
  } else {
    found->second.skip = 0;
  }
  return result;
}

void FakeDriver::made(const char* kind, const void* handle) { handles[handle] = kind; }

bool FakeDriver::gone(const char* kind, const void* handle) {
  const auto found = handles.find(handle);
  if (found == handles.end() || found->second != kind) return false;
  handles.erase(found);
  return true;
}

namespace {

std::unique_ptr<DeviceRegistry>& registry_slot() {
  static auto* const slot = new std::unique_ptr<DeviceRegistry>;
  return *slot;
}

/// Replaced registries, kept because objects of a test may still refer to their devices.
std::vector<std::unique_ptr<DeviceRegistry>>& retired() {
  static auto* const list = new std::vector<std::unique_ptr<DeviceRegistry>>;
  return *list;
}

}  // namespace

DeviceRegistry& fake_registry() {
  auto& slot = registry_slot();
  if (slot != nullptr) retired().push_back(std::move(slot));
  FakeDriver& driver = FakeDriver::get();
  driver.reset();
  slot = std::make_unique<DeviceRegistry>(DeviceRegistry::Options{
      .cuda = &driver.api(), .cuda_reason = {}, .sim = nullptr, .wanted = "auto"});
  return *slot;
}

Device& fresh_device(int index) { return fake_registry().by_index(index); }

CUcontext fake_current_context() { return current; }

void set_fake_current_context(CUcontext context) { current = context; }

}  // namespace kernwright::testing
