// Kernels of a module run: plain, under all checks, in two schedules, and watched. Whatever they
// do ends within the budget, in a finding at worst, and changes no byte that is not theirs. How
// they are launched stands behind the text's zero byte.
#include "base/errors.h"
#include "fuzz/canaries.h"
#include "fuzz/targets.h"
#include "sim/check/checked_launch.h"
#include "sim/device/launch/grid.h"
#include "sim/device/module/loader.h"
#include "sim/exec/heap.h"
#include "sim/exec/texture.h"
#include "sim/observe/observed_launch.h"
#include "sim/ptx/parse/parser.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::fuzz {
namespace {

constexpr std::uint64_t kCapacity = std::uint64_t{1} << 28;
constexpr std::uint64_t kHeapBytes = 1 << 16;
constexpr std::uint64_t kBudget = 4000;  ///< instructions of a warp
constexpr std::uint32_t kMaxThreads = 96;
constexpr std::uint64_t kMaxLocalBytes = 16 << 20;
constexpr std::uint32_t kMaxSharedBytes = 256 << 10;
constexpr std::size_t kMaxEntries = 3;
constexpr std::uint64_t kBufferBytes = 3 * 1024 + 5;  ///< odd, so that each byte behind it counts

/// How to launch: numbers off the end of the input, zeros when nothing is left.
struct Shape {
  explicit Shape(std::string_view rest) {
    const auto take = [&]() -> std::uint32_t {
      if (rest.empty()) return 0;
      const auto value = static_cast<std::uint8_t>(rest[0]);
      rest.remove_prefix(1);
      return value;
    };
    threads = take() % kMaxThreads + 1;
    if (threads == 1) threads = 33;
    blocks = take() % 3 + 1;
    shared = take() * 16;
    number = take();
    cooperative = take() % 4 == 3;
  }
  std::uint32_t threads = 1, blocks = 1, shared = 0, number = 0;
  bool cooperative = false;
};

/// What outlives the modules.
struct Device {
  sim::Memory memory{kCapacity};
  sim::GlobalShadow shadow;
  sim::Ticks ticks;
  sim::TextureTable textures;
};

Device& device() {
  static Device made;
  return made;
}

/// Pointers into the buffer for what has 8 bytes, small numbers for the rest.
std::vector<std::byte> parameters_of(const sim::FunctionInfo& info, std::uint64_t buffer,
                                     std::uint32_t number) {
  std::vector<std::byte> block(info.parameter_bytes);
  for (const sim::ParameterSlot& slot : info.parameters) {
    const std::uint64_t value = slot.bytes == 8 ? buffer + number % 8 * 256 : number;
    std::memcpy(block.data() + slot.offset, &value, std::min<std::size_t>(slot.bytes, 8));
  }
  return block;
}

class EntryRun {
 public:
  EntryRun(const sim::LoadedModule& module, std::uint32_t function, const Shape& shape,
           std::uint64_t buffer)
      : module_(module),
        info_(module.program().functions[function]),
        shape_(shape),
        parameters_(parameters_of(info_, buffer, shape.number)) {
    launch_.function = function;
    launch_.memory = &device().memory;
    launch_.textures = &device().textures;
    launch_.heap = &heap_;
    launch_.instruction_budget = kBudget;
    launch_.dynamic_shared_bytes = shape.shared;
    launch_.parameters = parameters_.data();
    launch_.parameter_bytes = info_.parameter_bytes;
    launch_.copy_seed = shape.number;
    launch_.sm_count = 4;
    set_size();
  }

  bool fits() const {
    const std::uint64_t threads = std::uint64_t{launch_.block[0]} * launch_.block[1];
    return threads * launch_.block[2] <= 1024 && launch_.grid[0] <= 8 && launch_.grid[1] <= 8 &&
           launch_.grid[2] <= 8 && info_.shared_bytes <= kMaxSharedBytes &&
           threads * launch_.block[2] * info_.stack_bytes <= kMaxLocalBytes;
  }

  void run_all() {
    launch_.program = &module_.program();
    run(0);
    const sim::CheckedProgram& checked = module_.checked();
    launch_.program = &checked.program;
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{shape_.number} + 1}) {
      sim::CheckedLaunch checks(checked, {true, true, true}, device().shadow, device().ticks, seed,
                                1);
      launch_.checks = &checks;
      run(seed);
      checks.take();
      launch_.checks = nullptr;
    }
    const sim::ObservedProgram& program = module_.observed(false);
    sim::ObservedLaunch observed(program, nullptr, true);
    launch_.program = &program.program;
    launch_.observed = &observed;
    run(0);
    observed.total();
  }

 private:
  void set_size() {
    launch_.block = {shape_.threads, 1, 1};
    launch_.grid = {shape_.blocks, 1, 1};
    if (info_.required_threads[0] != 0) launch_.block = info_.required_threads;
    if (info_.required_cluster[0] != 0) launch_.grid = launch_.cluster = info_.required_cluster;
  }

  void run(std::uint64_t seed) {
    try {
      if (seed != 0) {
        sim::run_scheduled_grid(launch_, seed, false);
      } else if (shape_.cooperative) {
        sim::run_cooperative_grid(launch_, 1);
      } else {
        sim::run_grid(launch_, 1);
      }
    } catch (const std::bad_alloc&) {}
    device().memory.reclaim();
  }

  const sim::LoadedModule& module_;
  const sim::FunctionInfo& info_;
  const Shape& shape_;
  std::vector<std::byte> parameters_;
  sim::Heap heap_{device().memory, kHeapBytes};
  sim::LaunchContext launch_;
};

void run_entries(const sim::LoadedModule& module, const Shape& shape) {
  sim::Memory& memory = device().memory;
  const auto buffer = memory.allocate(kBufferBytes, sim::AllocationKind::device);
  if (!buffer) return;  // the module's variables leave no room
  std::memset(sim::host_pointer(*buffer), static_cast<int>(shape.number), kBufferBytes);
  Canaries canaries;
  canaries.watch(*buffer, kBufferBytes);
  for (const sim::ptx::Variable& variable : module.program().module->globals) {
    const sim::ModuleVariable* const place = module.variable(std::string(variable.name));
    if (place != nullptr) canaries.watch(place->address, place->bytes);
  }
  std::size_t entries = 0;
  for (std::uint32_t f = 0; f < module.program().functions.size(); ++f) {
    const sim::ptx::Function& function = module.program().module->functions[f];
    if (!function.is_entry || !function.has_body || entries++ == kMaxEntries) continue;
    EntryRun run(module, f, shape, *buffer);
    if (!run.fits()) continue;
    run.run_all();
    canaries.check();
  }
  memory.free(*buffer);
}

}  // namespace

void ptx_run(std::string_view bytes) {
  const std::string text(bytes.substr(0, bytes.find('\0')));
  const Shape shape(bytes.substr(std::min(bytes.size(), text.size() + 1)));
  std::optional<sim::LoadedModule> module;
  try {
    module.emplace(text, device().memory);
  } catch (const sim::ptx::PtxError&) {
    return;
  } catch (const OutOfMemory&) {
    return;
  }
  run_entries(*module, shape);
}

}  // namespace kernwright::fuzz
