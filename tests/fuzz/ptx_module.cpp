// Whole modules, laid out and decoded in every form: what is refused is refused while it is loaded,
// and no variable stays behind.
#include "base/errors.h"
#include "fuzz/targets.h"
#include "sim/device/module/loader.h"
#include "sim/ptx/parse/parser.h"

#include <optional>
#include <stdexcept>
#include <string>

namespace kernwright::fuzz {
namespace {

constexpr std::uint64_t kCapacity = std::uint64_t{1} << 28;

void load(std::string_view bytes, sim::Memory& memory) {
  std::optional<sim::LoadedModule> module;
  try {
    module.emplace(std::string(bytes), memory);
  } catch (const sim::ptx::PtxError&) {
    return;
  } catch (const OutOfMemory&) {
    return;
  }
  module->checked(sim::CodeForm::fast);
  module->observed(false);
  module->observed(true);
}

}  // namespace

void ptx_module(std::string_view bytes) {
  static sim::Memory memory(kCapacity);
  load(bytes, memory);
  if (memory.used() != 0) throw std::logic_error("a variable was not freed");
}

}  // namespace kernwright::fuzz
