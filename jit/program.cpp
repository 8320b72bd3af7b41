// Compiles a program's kernels through the memory cache and keeps what is loaded per device.
#include "jit/program.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "driver/nvrtc_loader.h"
#include "jit/cache_key.h"
#include "jit/compiler.h"
#include "jit/cuda_headers.h"
#include "jit/include_closure.h"
#include "jit/memory_cache.h"
#include "jit/nearest_name.h"
#include "jit/target.h"

namespace kernwright {

using Code = std::shared_ptr<const ObjectCode>;

struct Program::Box {
  /// Object code that was loaded on a device.
  struct Loaded {
    Code code;
    Module module;
  };
  struct DeviceState {
    std::vector<Loaded> modules;
    std::map<std::string, Kernel> kernels;
  };

  Box(Source source_text, ProgramOptions program_options)
      : source(std::move(source_text)), options(std::move(program_options)) {
    validate(source);
    validate(options);
    if (!options.arch.empty()) parse_arch(options.arch);
    declared = scan_source(source.text);
  }

  Code compile(const LoadedNvrtc& library, const Target& target, bool with_lines,
               const std::vector<std::string>& names, bool with_declared) const {
    CompileRequest request{source, options, target, declared, names, with_declared, {}};
    if (with_lines) request.options.lineinfo = true;
    const IncludeClosure included = include_closure(source, options);
    if (included.needs_cuda_headers) {
      const CudaHeaders headers = cuda_headers(library);
      if (!headers.note.empty()) log(LogLevel::warning, "{}", headers.note);
      request.header_folders = headers.folders;
    }
    return MemoryCache::process().get(cache_key(request, included, library), [&] {
      ObjectCode code = Compiler(library).compile(request);
      log(LogLevel::info, "compiled {} for {} with NVRTC {}: {} kernels, {} bytes, {:.1f} ms",
          source.name, code.arch, code.nvrtc_version, code.kernels.size(), code.code.size(),
          code.compile_ms);
      return code;
    });
  }

  Code compile_for(Device& device, const std::vector<std::string>& names,
                   bool with_declared) const {
    const LoadedNvrtc& library = nvrtc();
    TargetRequest wanted;
    wanted.is_simulated = device.is_simulated();
    wanted.arch = options.arch;
    wanted.wants_arch_specific = asks_for_arch_specific(source.text);
    wanted.compute_capability = device.compute_capability().number();
    const Target target = target_for_device(wanted, library.archs, library.version());
    return compile(library, target, device.is_simulated(), names, with_declared);
  }

  bool is_declared(const std::string& name) const {
    return std::any_of(declared.kernels.begin(), declared.kernels.end(),
                       [&](const auto& k) { return k.name == name && !k.is_template; });
  }

  static bool has_kernel(const ObjectCode& code, const std::string& name) {
    return std::any_of(code.kernels.begin(), code.kernels.end(),
                       [&](const KernelSignature& k) { return k.name == name; });
  }

  /// Object code that holds the kernel: the one of all declared kernels where that does.
  Code code_with(Device& device, const std::string& name) const {
    if (is_declared(name)) {
      Code code = compile_for(device, {}, true);
      if (has_kernel(*code, name)) return code;
    }
    return compile_for(device, {name}, true);
  }

  /// The module of `code` on `device`. The caller holds the mutex.
  const Module& load(Device& device, const Code& code) {
    std::vector<Loaded>& modules = devices[&device].modules;
    const auto found = std::find_if(modules.begin(), modules.end(),
                                    [&](const Loaded& l) { return l.code == code; });
    if (found != modules.end()) return found->module;
    modules.push_back({code, Module::load(device, code->code, code->resource_cubin,
                                          {source.name, source.first_line})});
    return modules.back().module;
  }

  /// A kernel of a module that is loaded already. The caller holds the mutex.
  const Kernel* find_kernel(Device& device, const std::string& name) {
    DeviceState& state = devices[&device];
    if (const auto known = state.kernels.find(name); known != state.kernels.end()) {
      return &known->second;
    }
    for (const Loaded& loaded : state.modules) {
      if (!has_kernel(*loaded.code, name)) continue;
      const auto [made, inserted] =
          state.kernels.emplace(name, Kernel(loaded.module, loaded.code->kernel(name)));
      return &made->second;
    }
    return nullptr;
  }

  /// The module first loaded on `device`, made when there is none.
  Loaded first_module(Device& device) {
    {
      const std::lock_guard lock(mutex);
      const DeviceState& state = devices[&device];
      if (!state.modules.empty()) return state.modules.front();
    }
    const Code code = compile_for(device, {}, true);
    const std::lock_guard lock(mutex);
    load(device, code);
    return devices[&device].modules.front();
  }

  [[noreturn]] void unknown_symbol(const ObjectCode& code, const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& [symbol, lowered] : code.symbols) names.push_back(symbol);
    throw NameNotFound(format("no __device__ or __constant__ variable {} in {}{}", name,
                              source.name, describe_names(name, names)));
  }

  const Source source;
  const ProgramOptions options;
  ScannedSource declared;
  std::mutex mutex;
  std::map<Device*, DeviceState> devices;
};

Program::Program(Source source, ProgramOptions options)
    : box_(std::make_shared<Box>(std::move(source), std::move(options))) {}

const Source& Program::source() const noexcept { return box_->source; }
const ProgramOptions& Program::options() const noexcept { return box_->options; }
const std::vector<KernelDeclaration>& Program::declarations() const noexcept {
  return box_->declared.kernels;
}

ObjectCode Program::compile(CodeKind kind, const std::vector<std::string>& names) const {
  const LoadedNvrtc& library = nvrtc();
  const Target target = target_for_kind(kind, box_->options.arch, library.archs, library.version());
  return *box_->compile(library, target, false, names, names.empty());
}

Code Program::compile_for(Device& device, const std::vector<std::string>& names) const {
  return box_->compile_for(device, names, names.empty());
}

Code Program::object_code(Device& device, const std::string& name) const {
  return box_->code_with(device, name);
}

Kernel Program::kernel(Device& device, const std::string& name) const {
  {
    const std::lock_guard lock(box_->mutex);
    if (const Kernel* known = box_->find_kernel(device, name)) return *known;
  }
  // Compiled without the lock: other kernels of this program stay usable meanwhile.
  const Code code = box_->code_with(device, name);
  const std::lock_guard lock(box_->mutex);
  box_->load(device, code);
  return *box_->find_kernel(device, name);
}

Module Program::module(Device& device) const { return box_->first_module(device).module; }

ModuleSymbol Program::symbol(Device& device, const std::string& name) const {
  const Box::Loaded loaded = box_->first_module(device);
  const auto found = loaded.code->symbols.find(name);
  if (found == loaded.code->symbols.end()) box_->unknown_symbol(*loaded.code, name);
  return loaded.module.symbol(found->second);
}

SymbolType Program::symbol_type(Device& device, const std::string& name) const {
  const Code code = box_->first_module(device).code;
  if (!code->symbols.contains(name)) box_->unknown_symbol(*code, name);
  const auto found = code->symbol_types.find(name);
  return found == code->symbol_types.end() ? SymbolType{} : found->second;
}

}  // namespace kernwright
