// Driver functions of modules: PTX text becomes a program, its entries and variables get names.
#include "base/errors.h"
#include "base/format.h"
#include "sim/device/module/jit_options.h"
#include "sim/device/sim_driver.h"
#include "sim/ptx/parse/parser.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace kernwright::sim {
namespace {

/// Whether the image is a cubin or a fat binary.
bool is_machine_code(const char* image) {
  return std::strncmp(image, "\x7f\x45\x4c\x46", 4) == 0 ||
         std::strncmp(image, "\x50\xed\x55\xba", 4) == 0;
}

bool may_be_text(char first) {
  const bool printable = first >= ' ' && first < 0x7f && first != 'P';
  return printable || first == '\n' || first == '\r' || first == '\t';
}

[[noreturn]] void refuse(const JitOptions& options, CUresult code, const std::string& message) {
  options.write_error_log(message);
  fail_call(code, FaultKind::invalid_ptx, message);
}

/// Without the place in front: whoever shows the report knows where the kernel's text begins.
std::string without_place(const ptx::PtxError& error) {
  const std::string_view text = error.what();
  for (const std::string& place :
       {format("PTX line {} ({}:{}): ", error.ptx_line, error.file, error.source.line),
        format("PTX line {}: ", error.ptx_line)}) {
    if (text.starts_with(place)) return std::string(text.substr(place.size()));
  }
  return std::string(text);
}

[[noreturn]] void refuse(const JitOptions& options, const ptx::PtxError& error) {
  std::string message = without_place(error);
  if (error.ptx_line > 0) {
    message = message == error.what() ? format("PTX line {}: {}", error.ptx_line, message)
                                      : std::string(error.what());
  }
  options.write_error_log(message);
  Fault report;
  report.kind = error.opcode.empty() ? FaultKind::invalid_ptx : FaultKind::unsupported;
  report.message = without_place(error);
  report.file = error.file;
  report.line = error.source.line;
  report.ptx_line = error.ptx_line;
  report.opcode = error.opcode;
  throw Failure{CUDA_ERROR_INVALID_PTX, std::move(report)};
}

std::unique_ptr<LoadedModule> load_code(Context& context, const void* image,
                                        const JitOptions& options) {
  const auto* const text = static_cast<const char*>(image);
  if (is_machine_code(text)) {
    refuse(options, CUDA_ERROR_NO_BINARY_FOR_GPU,
           "the simulated device runs PTX text; the image is machine code of a GPU. Compile for "
           "a virtual architecture (compute_80)");
  }
  if (!may_be_text(*text))
    refuse(options, CUDA_ERROR_INVALID_IMAGE, "the image is neither PTX text nor a cubin");
  try {
    return std::make_unique<LoadedModule>(text, context.device.memory);
  } catch (const ptx::PtxError& error) {
    refuse(options, error);
  } catch (const OutOfMemory& error) {
    options.write_error_log(error.what());
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
}

/// Compute capability of `.target sm_80a` as 80.
int module_target(const ptx::Module& module) {
  int target = 0;
  for (const char c : module.target.substr(std::min<std::size_t>(3, module.target.size()))) {
    if (c < '0' || c > '9') break;
    target = target * 10 + (c - '0');
  }
  return target;
}

void require_target(const LoadedModule& code, const JitOptions& options) {
  const int native = device_profile().capability();
  if (module_target(*code.program().module) <= native) return;
  refuse(options, CUDA_ERROR_NO_BINARY_FOR_GPU,
         format("the PTX is for {}; the simulated device has compute capability {}.{}. Compile for "
                "compute_{}{}",
                code.program().module->target, native / 10, native % 10, native,
                module_target(*code.program().module) <= 90
                    ? ", or set KERNWRIGHT_SIM_CAPABILITY=9.0 before the program starts"
                    : ""));
}

void set_resources(Function& function, const KernelResources& resources) {
  function.registers = resources.registers;
  function.local_bytes = resources.local_bytes;
}

std::shared_ptr<Function> make_function(const std::shared_ptr<Module>& module,
                                        std::uint32_t index) {
  const FunctionInfo& info = module->code->program().functions[index];
  auto function = std::make_shared<Function>();
  function->context = module->context;
  function->module = module;
  function->code = module->code.get();
  function->module_handle = module->handle;
  function->index = index;
  function->name = info.name;
  function->shared_bytes = info.shared_bytes;
  function->constant_bytes = static_cast<std::uint32_t>(module->code->constant_bytes());
  function->max_threads = info.max_threads;
  set_resources(*function, estimate_resources(info));
  const int shared = device_profile().required(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  function->max_dynamic_shared = std::max(0, shared - static_cast<int>(info.shared_bytes));
  return function;
}

CUmodule load(const void* image, const JitOptions& options) {
  const auto context = current_context();
  require(image != nullptr);
  const auto begin = std::chrono::steady_clock::now();
  SimDriver& instance = sim_driver();
  auto module = std::make_shared<Module>();
  module->driver = &instance;
  module->context = context;
  module->code = load_code(*context, image, options);
  require_target(*module->code, options);
  module->handle = instance.modules.insert(module);
  const auto& functions = module->code->program().functions;
  for (std::uint32_t index = 0; index < functions.size(); ++index) {
    if (!functions[index].is_entry) continue;
    module->functions.push_back(instance.functions.insert(make_function(module, index)));
  }
  const std::chrono::duration<float, std::milli> time = std::chrono::steady_clock::now() - begin;
  options.write_wall_time(time.count());
  options.write_info_log("");
  options.write_error_log("");
  return module->handle;
}

std::shared_ptr<Module> find_module(CUmodule handle) {
  auto module = sim_driver().modules.find(handle);
  require(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return module;
}

}  // namespace

void calls::kwSetModuleResources(CUmodule handle, const void* cubin, std::size_t bytes) {
  require(cubin != nullptr || bytes == 0);
  const auto module = find_module(handle);
  const auto resources = read_cubin_resources({static_cast<const std::byte*>(cubin), bytes});
  for (const CUfunction candidate : module->functions) {
    const auto function = sim_driver().functions.find(candidate);
    if (function == nullptr) continue;
    const auto known = resources.find(function->name);
    if (known != resources.end()) set_resources(*function, known->second);
    // The compiler keeps launch bounds, which the estimate does, too.
    if (bytes == 0 && function->max_threads == 0) function->registers = kMostRegisters;
  }
}

void calls::cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int option_count,
                               CUjit_option* options, void** option_values) {
  require(module != nullptr);
  // Allowed in any capture: lazy loading makes it safe (measured in docs/driver_behaviour.md).
  *module = load(image, JitOptions(option_count, options, option_values));
}

void calls::cuModuleLoadData(CUmodule* module, const void* image) {
  cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

void calls::cuModuleUnload(CUmodule handle) {
  current_context();
  sim_driver().captures.forbid_unsafe();
  const auto module = find_module(handle);
  sim_driver().queues.finish(*module->context);  // work in flight still needs it
  require(sim_driver().modules.remove(handle) != nullptr, CUDA_ERROR_INVALID_HANDLE);
  for (const CUfunction function : module->functions) sim_driver().functions.remove(function);
}

void calls::cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  current_context();
  require(function != nullptr && name != nullptr && *name != '\0');
  const auto module = find_module(handle);
  for (const CUfunction candidate : module->functions) {
    const auto object = sim_driver().functions.find(candidate);
    if (object == nullptr || object->name != name) continue;
    *function = candidate;
    return;
  }
  fail(CUDA_ERROR_NOT_FOUND);
}

void calls::cuModuleGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUmodule handle,
                              const char* name) {
  current_context();
  require(name != nullptr && *name != '\0' && (address != nullptr || bytes != nullptr));
  const auto module = find_module(handle);
  const ModuleVariable* const variable = module->code->variable(name);
  require(variable != nullptr, CUDA_ERROR_NOT_FOUND);
  if (address != nullptr) *address = variable->address;
  if (bytes != nullptr) *bytes = variable->bytes;
}

void calls::cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  require(mode != nullptr);
  *mode = CU_MODULE_EAGER_LOADING;
}

void calls::cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  require(count != nullptr);
  *count = static_cast<unsigned int>(find_module(handle)->functions.size());
}

void calls::cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule handle) {
  const auto module = find_module(handle);
  require(functions != nullptr && count > 0);
  const std::size_t number = std::min<std::size_t>(count, module->functions.size());
  std::copy_n(module->functions.begin(), number, functions);
}

Module::~Module() {
  if (code == nullptr) return;
  const std::lock_guard execution(driver->execution);
  code.reset();
  for (const auto& device : driver->devices) device->memory.expire_cached_ranges();
}

}  // namespace kernwright::sim
