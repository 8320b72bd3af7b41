// The facts of a kernel and of a measured compile, as dicts.
#include "bindings/launch/kernel_report.h"
#include "bindings/support/gil.h"

#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "core/device.h"
#include "jit/compile/compile_profile.h"
#include "jit/compile/compile_trace.h"
#include "jit/program.h"

#include <memory>
#include <optional>

namespace kernwright::python {

py::dict kernel_facts(KernelObject& kernel, const py::object& device) {
  Device& chosen = device_argument(device);
  const LaunchPlan& plan = kernel.plan(chosen);
  std::shared_ptr<const ObjectCode> code;
  {
    const GilRelease unlocked;
    code = kernel.code(chosen);
  }
  const KernelAttributes& used = plan.kernel.attributes();
  int block = 0;
  int occupancy = 0;
  {
    const GilRelease unlocked;
    block = plan.kernel.suggest_block(0);
    occupancy = plan.kernel.occupancy(block, 0);
  }
  py::dict facts;
  facts["name"] = text_object(kernel.name());
  facts["device"] = text_object(chosen.name());
  facts["arch"] = code->arch;
  facts["kind"] = code_kind_name(code->kind);
  facts["code_bytes"] = code->code.size();
  facts["nvrtc_version"] = code->nvrtc_version;
  facts["answered"] = code_layer_name(plan.layer);
  facts["ready_ms"] = plan.ready_ms;
  facts["compile_ms"] = code->compile_ms;
  facts["attempts"] = code->trace ? py::object(py::int_(code->trace->attempts)) : py::none();
  facts["minimal"] = code->trace ? py::object(py::bool_(code->trace->minimal)) : py::none();
  facts["pch"] =
      code->trace ? py::object(py::str(pch_use_name(code->trace->pch))) : py::object(py::none());
  facts["registers"] = used.registers;
  facts["shared_bytes"] = used.shared_bytes;
  facts["local_bytes"] = used.local_bytes;
  facts["constant_bytes"] = used.constant_bytes;
  facts["block"] = block;
  facts["occupancy"] = occupancy;
  return facts;
}

py::object kernel_profile(KernelObject& kernel, const py::object& device) {
  if (!kernel.lazy() || kernel.lazy()->program().loaded_code()) return py::none();
  Device& chosen = device_argument(device);
  std::optional<CompileProfile> profile;
  {
    const GilRelease unlocked;
    const Program& program = kernel.lazy()->program();
    profile = profile_compile(program.source(), program.options(), chosen, kernel.name());
  }
  py::dict phases;
  for (const PhaseTime& phase : profile->phases) phases[text_object(phase.name)] = phase.ms;
  py::list headers;
  for (const std::string& header : profile->headers) headers.append(text_object(header));
  py::dict result;
  result["phases"] = phases;
  result["profile_ms"] = profile->total_ms;
  result["headers"] = headers;
  result["spill_store_bytes"] = profile->spills.store_bytes;
  result["spill_load_bytes"] = profile->spills.load_bytes;
  return result;
}

}  // namespace kernwright::python
