// Compiles texts and PTX once more with a redirected grid.
#include "jit/sliced_kernel.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "jit/signature/ptx_parameters.h"
#include "jit/slice/slice_ptx.h"
#include "jit/slice/slice_text.h"

namespace kernwright {
namespace {

constexpr std::size_t kIndexBytes = 12, kIndexAlignment = 4;

Parameter index_parameter(std::string name) {
  Parameter parameter{.name = std::move(name), .type = "const uint3"};
  parameter.kind = ParameterKind::aggregate;
  parameter.size = kIndexBytes;
  parameter.alignment = kIndexAlignment;
  return parameter;
}

std::vector<Parameter> leading_parameters(bool yields) {
  std::vector<Parameter> parameters{index_parameter("kernwright_first"),
                                    index_parameter("kernwright_grid")};
  if (yields) {
    for (const char* const name : {"kernwright_order", "kernwright_next"}) {
      Parameter word{.name = name, .type = "unsigned int*"};
      word.kind = ParameterKind::pointer;
      word.size = sizeof(std::uint64_t);
      parameters.push_back(std::move(word));
    }
  }
  return parameters;
}

/// Signatures of code that tells none stay so: the driver knows the new parameters too.
ObjectCode sliced_code(const ObjectCode& code, const std::string& name, bool yields) {
  if (code.kind == CodeKind::cubin) {
    throw NotSliceable(format(
        "{} cannot be cut into slices: it is a cubin, whose grid is fixed; load PTX or a text",
        name));
  }
  ObjectCode result = code;
  result.code = slice_ptx(code.code, yields);
  result.resource_cubin.clear();
  for (KernelSignature& signature : result.kernels) {
    if (!signature.is_told) continue;
    std::vector<Parameter> parameters = leading_parameters(yields);
    parameters.insert(parameters.end(), signature.parameters.begin(), signature.parameters.end());
    signature.parameters = std::move(parameters);
  }
  return result;
}

[[noreturn]] void refuse_variable(const std::string& kernel, const std::string& variable) {
  throw NotSliceable(
      format("{} cannot be cut into slices: the variable {} of its module keeps values, and slices "
             "are code of a module of their own; pass an array instead",
             kernel, variable));
}

/// Lowered names of the __constant__ variables that a twin needs. Throws for others.
std::vector<std::string> constants_of_ptx(const std::string& kernel, std::string_view ptx) {
  std::vector<std::string> constants;
  for (PtxVariable& variable : ptx_state(ptx)) {
    if (!variable.is_constant) refuse_variable(kernel, variable.name);
    constants.push_back(std::move(variable.name));
  }
  return constants;
}

std::vector<std::string> constants_of_text(const std::string& kernel, const Program& program,
                                           const Program& twin, Device& device) {
  std::vector<std::string> constants;
  const auto& declared = program.symbol_declarations();
  const auto code = twin.object_code(device, kernel);
  for (const auto& [name, lowered] : code->symbols) {
    const auto found = std::find_if(declared.begin(), declared.end(),
                                    [&](const SymbolDeclaration& s) { return s.name == name; });
    if (found == declared.end() || !found->is_constant) refuse_variable(kernel, name);
    constants.push_back(lowered);
  }
  return constants;
}

/// Whether the twin has the parameters of the kernel behind its own.
bool has_leading_parameters(const KernelSignature& twin, const KernelSignature& plain,
                            bool yields) {
  const std::size_t lead = leading_parameters(yields).size();
  if (twin.parameters.size() != plain.parameters.size() + lead) return false;
  return twin.parameters[0].size == kIndexBytes && twin.parameters[1].size == kIndexBytes;
}

Kernel load_twin(const Program& twin, const Kernel& plain, const std::string& name, bool yields) {
  Kernel kernel = twin.kernel(plain.device(), name);
  if (has_leading_parameters(kernel.signature(), plain.signature(), yields)) return kernel;
  throw NotSliceable(
      format("{} cannot be cut into slices: its __global__ function is not in the text itself, nor "
             "in a header given as text",
             name));
}

/// Whether functions that are not inlined read the objects in shared memory.
bool reads_shared(const SlicedKernel& twin, const Kernel& plain) {
  if (twin.code->kind == CodeKind::ptx) {
    const std::string& text = twin.code->code;
    return text.find("kernwright_blockIdx") != text.npos ||
           text.find("kernwright_gridDim") != text.npos;
  }
  const int turn = twin.yields ? 2 * static_cast<int>(kIndexAlignment) : 0;
  return twin.kernel.attributes().shared_bytes > plain.attributes().shared_bytes + turn;
}

SlicedKernel twin_of_text(const Program& program, ProgramScope scope, const Kernel& plain,
                          const std::string& name, SliceForm form) {
  SlicedText text = slice_text(program.source(), program.options(), form);
  const bool asks_in_loop = text.asks_in_loop;
  const Program twin(std::move(text.source), std::move(text.options), scope);
  SlicedKernel result{.kernel = load_twin(twin, plain, name, form.yields), .yields = form.yields};
  result.asks_in_loop = asks_in_loop;
  result.code = twin.object_code(plain.device(), name);
  result.source = program.source();
  result.options = program.options();
  if (scope == ProgramScope::library) return result;  // these texts have no variables
  for (const std::string& lowered : constants_of_text(name, program, twin, plain.device())) {
    result.constants.emplace_back(plain.module().symbol(lowered),
                                  result.kernel.module().symbol(lowered));
  }
  return result;
}

}  // namespace

SlicedKernel make_sliced_kernel(const Program& program, ProgramScope scope, const Kernel& kernel,
                                const std::string& name, bool yields) {
  if (const auto& code = program.loaded_code()) {
    const std::vector<std::string> constants = code->kind == CodeKind::ptx
                                                   ? constants_of_ptx(name, code->code)
                                                   : std::vector<std::string>();
    const Program twin(sliced_code(*code, name, yields), program.source().name);
    SlicedKernel result{.kernel = load_twin(twin, kernel, name, yields), .yields = yields};
    for (const std::string& lowered : constants) {
      result.constants.emplace_back(kernel.module().symbol(lowered),
                                    result.kernel.module().symbol(lowered));
    }
    return result;
  }
  try {
    SlicedKernel twin = twin_of_text(program, scope, kernel, name, {.yields = yields});
    if (twin.asks_in_loop || !reads_shared(twin, kernel)) return twin;
  } catch (const CompileError&) {
    // A lambda without captures, or a local class, may read the grid: see SliceForm::in_shared.
  }
  try {
    return twin_of_text(program, scope, kernel, name, {.yields = yields, .in_shared = true});
  } catch (const CompileError& error) {
    throw NotSliceable(
        format("{} cannot be cut into slices: its text does not compile with a redirected grid: {}",
               name, error.what()));
  }
}

}  // namespace kernwright
