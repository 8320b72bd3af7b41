// Lays out a module's variables and gives them their first values.
#include "sim/device/module/loader.h"

#include "base/errors.h"
#include "base/format.h"
#include "sim/ptx/parse/parser.h"

#include <algorithm>
#include <cstring>

namespace kernwright::sim {
namespace {

bool in_memory(const ptx::Variable& variable) {
  return variable.space == ptx::Space::global || variable.space == ptx::Space::constant;
}

}  // namespace

LoadedModule::LoadedModule(std::string text, Memory& memory) : memory_(memory) {
  std::unique_ptr<ptx::Module> module = ptx::parse(std::move(text));
  try {
    const SymbolAddresses addresses = lay_out(*module);
    program_ = decode(std::move(module), addresses);
    FunctionNames functions;
    for (const FunctionInfo& function : program_->functions)
      functions.emplace(function.name, static_cast<std::uint32_t>(functions.size()));
    for (const ptx::Variable& variable : program_->module->globals) {
      if (in_memory(variable)) initialise(variable, functions);
    }
  } catch (...) {
    release();
    throw;
  }
}

const Program& LoadedModule::written() const {
  if (written_ == nullptr) {
    SymbolAddresses addresses;
    for (const auto& [name, variable] : variables_) addresses.emplace(name, variable.address);
    written_ = decode(program_->module, addresses, CodeForm::as_written);
  }
  return *written_;
}

const CheckedProgram& LoadedModule::checked(CodeForm form) const {
  auto& made = checked_[form == CodeForm::fast ? 0 : 1];
  if (made == nullptr) made = make_checked(form == CodeForm::fast ? *program_ : written());
  return *made;
}

const ObservedProgram& LoadedModule::observed(bool under_checks) const {
  auto& made = observed_[under_checks ? 1 : 0];
  if (made == nullptr)
    made = make_observed(under_checks ? checked(CodeForm::as_written).program : written());
  return *made;
}

LoadedModule::~LoadedModule() { release(); }

void LoadedModule::release() noexcept {
  for (const auto& [name, variable] : variables_) {
    if (variable.bytes != 0) memory_.free(variable.address);
  }
  variables_.clear();
}

SymbolAddresses LoadedModule::lay_out(const ptx::Module& module) {
  SymbolAddresses addresses;
  for (const ptx::Variable& variable : module.globals) {
    if (!in_memory(variable)) continue;
    const std::string name(variable.name);
    if (variables_.contains(name)) continue;
    if (variable.is_extern) {
      throw ptx::PtxError(format("variable {} is declared extern and defined nowhere", name),
                          variable.ptx_line);
    }
    const bool constant = variable.space == ptx::Space::constant;
    const std::uint64_t bytes = variable.bytes();
    const auto address = memory_.allocate(
        std::max<std::uint64_t>(bytes, 1),
        constant ? AllocationKind::constant : AllocationKind::module_variable, name);
    if (!address) {
      throw OutOfMemory(format("variable {} of {} bytes does not fit", name, bytes), bytes,
                        memory_.used(), memory_.used(), memory_.capacity() - memory_.used());
    }
    variables_.emplace(name, ModuleVariable{*address, bytes});
    addresses.emplace(name, *address);
    if (constant) constant_bytes_ += bytes;
  }
  return addresses;
}

std::uint64_t LoadedModule::resolve_value(const ptx::InitialValue& value,
                                          const FunctionNames& functions) const {
  if (value.symbol.empty()) return value.bits;
  std::uint64_t address = 0;
  if (const auto found = variables_.find(value.symbol); found != variables_.end()) {
    address = found->second.address;
  } else if (const auto function = functions.find(value.symbol); function != functions.end()) {
    address = kFunctionWindow + 16 * std::uint64_t{function->second};
  } else {
    throw ptx::PtxError(format("initialiser names {}, which is not defined", value.symbol), 0);
  }
  address += static_cast<std::uint64_t>(value.offset);
  if (value.mask_bits == 0) return address;
  return address >> value.mask_shift & ((std::uint64_t{1} << value.mask_bits) - 1);
}

void LoadedModule::initialise(const ptx::Variable& variable, const FunctionNames& functions) {
  const ModuleVariable& place = variables_.find(variable.name)->second;
  const std::size_t element = (static_cast<std::size_t>(ptx::bits(variable.type)) + 7) / 8;
  std::byte* const begin = host_pointer(place.address);
  std::uint64_t offset = 0;
  for (const ptx::InitialValue& initial : variable.init) {
    if (offset + element > place.bytes) {
      throw ptx::PtxError(
          format("variable {} has more initial values than elements", variable.name),
          variable.ptx_line);
    }
    const std::uint64_t value = resolve_value(initial, functions);
    // Fresh memory is zero, the right upper half of an element of 128 bits.
    std::memcpy(begin + offset, &value, std::min(element, sizeof value));
    offset += element;
  }
}

const ModuleVariable* LoadedModule::variable(const std::string& name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : &found->second;
}

}  // namespace kernwright::sim
