// Takes a program's kernels from the caches and keeps the loaded modules of each device.
#include "jit/program.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "core/device.h"
#include "core/image/image_info.h"
#include "core/per_device.h"
#include "jit/cache/code_cache.h"
#include "jit/compile/target.h"
#include "jit/signature/variable_names.h"
#include "jit/sliced_kernel.h"
#include "jit/source/builtin_headers.h"
#include "jit/source/declared_kernels.h"
#include "jit/source/underscore.h"

namespace kernwright {

using Code = std::shared_ptr<const ObjectCode>;

namespace {

Source without_mark(Source source) {
  source.text = without_byte_order_mark(std::move(source.text));
  return source;
}

/// INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, UNSUPPORTED_PTX_VERSION: the image itself is at
/// fault.
bool is_refused_image(int code) { return code == 200 || code == 209 || code == 218 || code == 222; }

/// What a compile of the program takes. Modules may outlive the program and share it.
struct ProgramText {
  ProgramText(Source source_text, ProgramOptions program_options)
      : source(with_absolute_folder(without_mark(std::move(source_text)))),
        options(with_underscore_renamed(
            source,
            with_builtin_headers(source, with_absolute_folders(std::move(program_options))))) {
    validate(source);
    validate(options);
    if (!options.arch.empty()) parse_arch(options.arch);
    declared = scan_source(source.text);
    fields = program_fields(source, options);
  }
  explicit ProgramText(std::string name) : source{{}, std::move(name), 1, {}} {}

  const Source source;
  const ProgramOptions options;
  ScannedSource declared;
  ProgramFields fields;
};

}  // namespace

struct Program::Box : std::enable_shared_from_this<Program::Box> {
  /// Object code loaded on a device.
  struct Loaded {
    FoundCode found;
    Module module;
  };
  struct DeviceState {
    std::vector<Loaded> modules;
    std::map<std::string, Kernel> kernels;
    /// By the kernel's name, and whether it yields; null: refused for the reason in `refusals`.
    std::map<std::pair<std::string, bool>, std::shared_ptr<const SlicedKernel>> sliced;
    std::map<std::pair<std::string, bool>, std::string> refusals;
  };

  Box(Source source_text, ProgramOptions program_options, ProgramScope program_scope)
      : scope(program_scope),
        text(std::make_shared<const ProgramText>(std::move(source_text),
                                                 std::move(program_options))) {}
  Box(ObjectCode code, std::string name)
      : text(std::make_shared<const ProgramText>(std::move(name))),
        ready(std::make_shared<const ObjectCode>(std::move(code))) {}

  bool declares_all() const { return ready || declares_all_kernels(source, options, declared); }

  CodeRequest request_for(TargetRequest target, std::vector<std::string> names, bool with_declared,
                          bool with_lines) const {
    CodeRequest request{source,     options,          declared,     fields, std::move(target),
                        with_lines, std::move(names), with_declared};
    request.with_members = scope == ProgramScope::whole;
    return request;
  }

  CodeRequest request_for(Device& device, std::vector<std::string> names,
                          bool with_declared) const {
    TargetRequest target;
    target.device = DeviceTarget{};
    target.device->is_simulated = device.is_simulated();
    target.device->arch = options.arch;
    target.device->compute_capability = device.compute_capability().number();
    target.device->ptx_alone = device.is_simulated() && scope == ProgramScope::library;
    return request_for(std::move(target), std::move(names), with_declared, device.is_simulated());
  }

  Code compile_for(Device& device, const std::vector<std::string>& names,
                   bool with_declared) const {
    if (ready) return ready;
    return CodeCache::process().get(request_for(device, names, with_declared)).code;
  }

  bool is_declared(const std::string& name) const {
    return std::any_of(declared.kernels.begin(), declared.kernels.end(),
                       [&](const auto& k) { return k.name == name && !k.is_template; });
  }

  /// The kernels of one compile: every kernel but templates, or an instance and its companions.
  std::vector<std::string> names_with(const std::string& name,
                                      const std::vector<std::string>& companions) const {
    std::vector<std::string> names{name};
    names.insert(names.end(), companions.begin(), companions.end());
    if (!is_declared(name)) return names;
    names.clear();
    for (const KernelDeclaration& kernel : declared.kernels) {
      if (!kernel.is_template) names.push_back(kernel.name);
    }
    return names;
  }

  static bool has_kernel(const ObjectCode& code, const std::string& name) {
    return std::any_of(code.kernels.begin(), code.kernels.end(), [&](const KernelSignature& k) {
      return k.name == name || k.lowered == name;
    });
  }

  /// Object code and the request for it.
  struct Answer {
    FoundCode found;
    CodeRequest request;
  };

  static Answer answer_to(CodeRequest request) {
    FoundCode found = CodeCache::process().get(request);
    return {std::move(found), std::move(request)};
  }

  /// Object code with the kernel: the code of all declared kernels if it contains the kernel.
  Answer code_with(Device& device, const std::string& name,
                   const std::vector<std::string>& companions = {}) const {
    if (ready) {
      ready->kernel(name);
      return {{ready}, request_for(device, {}, true)};
    }
    if (scope != ProgramScope::whole) {
      return answer_to(request_for(device, names_with(name, companions), false));
    }
    if (is_declared(name)) {
      Answer answer = answer_to(request_for(device, {}, true));
      if (has_kernel(*answer.found.code, name)) return answer;
    }
    std::vector<std::string> names{name};
    names.insert(names.end(), companions.begin(), companions.end());
    return answer_to(request_for(device, std::move(names), true));
  }

  /// Whether the code is the one for `arch`; then the device cannot run any such code.
  bool is_for_others(const Device& device, const ObjectCode& code) const {
    if (options.arch.empty()) return false;
    const Arch arch = parse_arch(options.arch);
    const std::string target = describe_image(code.code).target;
    const bool as_asked = target == arch.real() || target == Arch{false, arch.number, '\0'}.real();
    return as_asked && !can_run(arch, code.kind, device.compute_capability().number());
  }

  /// Makes the cubin of code that was compiled without one; null for other code.
  ResourceCubin cubin_of(const Answer& answer) const {
    const std::optional<DeviceTarget>& device = answer.request.target.device;
    if (!device || !device->ptx_alone || !answer.found.code->resource_cubin.empty()) return {};
    CodeRequest request = answer.request;
    request.target.device->ptx_alone = false;
    request.use_packs = false;  // their code has its cubin
    return [kept = text, request = std::move(request)] {
      return CodeCache::process().get(request).code->resource_cubin;
    };
  }

  /// Loads the answer's module on `device`, once. Code from the disk, if refused by the driver, is
  /// compiled once more where this may help. The caller holds the mutex.
  void load(Device& device, Answer& answer) {
    if (ready && device.is_simulated() && ready->kind == CodeKind::cubin) {
      throw Error(
          format("{} is a cubin for {}, which cannot run on {}: make PTX instead, with "
                 "`kernwright compile --emit ptx` or compile(\"ptx\")",
                 source.name, ready->arch, device.identify()));
    }
    std::vector<Loaded>& modules = devices[device].modules;
    for (bool is_replaced = false;; is_replaced = true) {
      const Code code = answer.found.code;
      if (std::any_of(modules.begin(), modules.end(),
                      [&](const Loaded& l) { return l.found.code == code; })) {
        return;
      }
      try {
        modules.push_back(
            {answer.found, Module::load(device, code->code, code->resource_cubin,
                                        {source.name, source.first_line}, cubin_of(answer))});
        return;
      } catch (const DriverError& error) {
        const bool may_help = !ready && !is_replaced && is_refused_image(error.code);
        if (!may_help || is_for_others(device, *code)) throw;
        FoundCode again = CodeCache::process().replace(answer.request, code);
        if (!again.code) throw;
        log(LogLevel::warning,
            "object code of {} from the disk cache was refused ({}) and replaced", source.name,
            error.name);
        answer.found = std::move(again);
      }
    }
  }

  /// A kernel of an already loaded module. The caller holds the mutex.
  const Kernel* find_kernel(Device& device, const std::string& name) {
    DeviceState& state = devices[device];
    if (const auto known = state.kernels.find(name); known != state.kernels.end()) {
      return &known->second;
    }
    for (const Loaded& loaded : state.modules) {
      if (!has_kernel(*loaded.found.code, name)) continue;
      const auto [made, inserted] =
          state.kernels.emplace(name, Kernel(loaded.module, loaded.found.code->kernel(name)));
      note_loaded(made->second, name);
      return &made->second;
    }
    return nullptr;
  }

  /// Where a loaded kernel comes from.
  struct Origin {
    std::weak_ptr<Box> box;
    std::string name;
  };
  /// Never destroyed. A function's handle may come again once its module is unloaded; then the box
  /// of the former one is gone.
  struct LoadedKernels {
    std::mutex mutex;
    std::unordered_map<CUfunction, Origin> origins;
  };
  static LoadedKernels& loaded_kernels() {
    static LoadedKernels& instance = *new LoadedKernels;
    return instance;
  }
  void note_loaded(const Kernel& kernel, const std::string& name) {
    LoadedKernels& loaded = loaded_kernels();
    const std::lock_guard lock(loaded.mutex);
    loaded.origins[kernel.handle()] = {weak_from_this(), name};
  }

  std::shared_ptr<const SlicedKernel> sliced(const Kernel& kernel, const std::string& name,
                                             bool yields);

  /// The module first loaded on `device`, made when there is none.
  Loaded first_module(Device& device) {
    {
      const std::lock_guard lock(mutex);
      const DeviceState& state = devices[device];
      if (!state.modules.empty()) return state.modules.front();
    }
    CodeRequest request = request_for(device, {}, true);
    Answer answer = ready ? Answer{{ready}, std::move(request)} : answer_to(std::move(request));
    const std::lock_guard lock(mutex);
    load(device, answer);
    return devices[device].modules.front();
  }

  /// A variable nobody asked about at the time of the compile, such as an instance of a template,
  /// in the loaded modules. Throws NameNotFound with the list of variables.
  std::pair<Module, std::string> find_variable(Device& device, const std::string& name) {
    const std::lock_guard lock(mutex);
    const std::string wanted = without_blanks(name);
    std::set<std::string> names;
    for (const Loaded& loaded : devices[device].modules) {
      for (const auto& [symbol, lowered] : loaded.found.code->symbols) names.insert(symbol);
      for (const auto& [symbol, lowered] : mangled_variables(loaded.found.code->code)) {
        if (without_blanks(symbol) == wanted) return {loaded.module, lowered};
        if (symbol.find('<') != std::string::npos) names.insert(symbol);
      }
    }
    // Object code of earlier releases, in packs and on the disk, does not list them.
    const bool is_managed =
        std::any_of(declared.symbols.begin(), declared.symbols.end(),
                    [&](const SymbolDeclaration& s) { return s.is_managed && s.name == wanted; });
    if (is_managed) return {devices[device].modules.front().module, lowered_variable(wanted)};
    throw NameNotFound(format(
        "no __device__, __constant__ or __managed__ variable {} in {}{}", printable(name),
        source.name, describe_names(name, std::vector<std::string>(names.begin(), names.end()))));
  }

  const ProgramScope scope = ProgramScope::whole;
  const std::shared_ptr<const ProgramText> text;
  const Source& source = text->source;
  const ProgramOptions& options = text->options;
  const ScannedSource& declared = text->declared;
  const ProgramFields& fields = text->fields;
  const Code ready;  ///< null for a source
  std::mutex mutex;
  PerDevice<DeviceState> devices;
};

Program::Program(Source source, ProgramOptions options, ProgramScope scope)
    : box_(std::make_shared<Box>(std::move(source), std::move(options), scope)) {}

Program::Program(ObjectCode code, std::string name)
    : box_(std::make_shared<Box>(std::move(code), std::move(name))) {}

const Source& Program::source() const noexcept { return box_->source; }
const ProgramOptions& Program::options() const noexcept { return box_->options; }
const std::vector<KernelDeclaration>& Program::declarations() const noexcept {
  return box_->declared.kernels;
}

const std::vector<SymbolDeclaration>& Program::symbol_declarations() const noexcept {
  return box_->declared.symbols;
}

const Code& Program::loaded_code() const noexcept { return box_->ready; }

bool Program::declares_all() const noexcept { return box_->declares_all(); }

std::vector<std::string> Program::kernel_names(Device* device) const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  const bool is_told = box_->ready == nullptr && declares_all();
  for (const KernelDeclaration& kernel : declarations()) {
    if (is_told || kernel.is_template) add(kernel.name);
  }
  if (is_told) return names;
  const Code code = device != nullptr ? compile_for(*device)
                    : box_->ready     ? box_->ready
                                      : std::make_shared<ObjectCode>(compile(CodeKind::ptx));
  for (const KernelSignature& kernel : code->kernels) add(kernel.name);
  return names;
}

ObjectCode Program::compile(CodeKind kind, const std::vector<std::string>& names) const {
  if (box_->ready) {
    if (box_->ready->kind == kind) return *box_->ready;
    throw Error(format("{} is {} and has no source to compile to {}", box_->source.name,
                       code_kind_name(box_->ready->kind), code_kind_name(kind)));
  }
  TargetRequest target;
  target.kind = kind;
  target.arch = box_->options.arch;
  return *CodeCache::process()
              .get(box_->request_for(std::move(target), names, names.empty(), false))
              .code;
}

Code Program::compile_for(Device& device, const std::vector<std::string>& names) const {
  return box_->compile_for(device, names, names.empty());
}

Code Program::object_code(Device& device, const std::string& name) const {
  return found_code(device, name).code;
}

FoundCode Program::found_code(Device& device, const std::string& name) const {
  {
    // kernel() hands out the loaded code, whatever the caches hold.
    const std::lock_guard lock(box_->mutex);
    for (const Box::Loaded& loaded : box_->devices[device].modules) {
      if (Box::has_kernel(*loaded.found.code, name)) return loaded.found;
    }
  }
  return box_->code_with(device, name).found;
}

Kernel Program::kernel(Device& device, const std::string& name,
                       const std::vector<std::string>& companions) const {
  return compile_kernel(device, name, companions)();
}

std::function<Kernel()> Program::compile_kernel(Device& device, const std::string& name,
                                                const std::vector<std::string>& companions) const {
  {
    const std::lock_guard lock(box_->mutex);
    if (const Kernel* known = box_->find_kernel(device, name))
      return [kernel = *known] { return kernel; };
  }
  // Compiled without the lock: other kernels of this program stay usable meanwhile.
  Program::Box::Answer made = box_->code_with(device, name, companions);
  return [box = box_, answer = std::move(made), &device, name]() mutable {
    const std::lock_guard lock(box->mutex);
    box->load(device, answer);
    return *box->find_kernel(device, name);
  };
}

std::shared_ptr<const SlicedKernel> Program::Box::sliced(const Kernel& kernel,
                                                         const std::string& name, bool yields) {
  Device& device = kernel.device();
  const std::pair key{name, yields};
  {
    const std::lock_guard lock(mutex);
    const DeviceState& state = devices[device];
    if (const auto known = state.sliced.find(key); known != state.sliced.end()) {
      if (known->second) return known->second;
      throw NotSliceable(state.refusals.at(key));
    }
  }
  std::shared_ptr<const SlicedKernel> made;
  std::string refusal;
  try {
    made = std::make_shared<const SlicedKernel>(
        make_sliced_kernel(Program(shared_from_this()), scope, kernel, name, yields));
  } catch (const NotSliceable& error) {
    refusal = error.what();
  }
  const std::lock_guard lock(mutex);
  DeviceState& state = devices[device];
  state.sliced.emplace(key, made);
  if (made) return state.sliced.at(key);
  state.refusals.emplace(key, refusal);
  throw NotSliceable(refusal);
}

Program::Program(std::shared_ptr<Box> box) noexcept : box_(std::move(box)) {}

std::shared_ptr<const SlicedKernel> Program::sliced(const Kernel& kernel, bool yields) {
  std::shared_ptr<Box> box;
  std::string name;
  {
    Box::LoadedKernels& loaded = Box::loaded_kernels();
    const std::lock_guard lock(loaded.mutex);
    if (const auto found = loaded.origins.find(kernel.handle()); found != loaded.origins.end()) {
      box = found->second.box.lock();
      name = found->second.name;
    }
  }
  if (box) return box->sliced(kernel, name, yields);
  throw NotSliceable(
      format("{} cannot be cut into slices: it was loaded without a program; load it by "
             "kw.module(path), or from its text",
             kernel.signature().name));
}

Module Program::module(Device& device) const { return box_->first_module(device).module; }

ModuleSymbol Program::symbol(Device& device, const std::string& name) const {
  const Box::Loaded loaded = box_->first_module(device);
  const auto& symbols = loaded.found.code->symbols;
  const auto found = symbols.find(name);
  if (found != symbols.end()) return loaded.module.symbol(found->second);
  const auto [module, lowered] = box_->find_variable(device, name);
  return module.symbol(lowered);
}

SymbolType Program::symbol_type(Device& device, const std::string& name) const {
  const Code code = box_->first_module(device).found.code;
  if (!code->symbols.contains(name)) box_->find_variable(device, name);
  const auto found = code->symbol_types.find(name);
  return found == code->symbol_types.end() ? SymbolType{} : found->second;
}

}  // namespace kernwright
