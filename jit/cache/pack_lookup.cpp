// Asks the packs, and names their gaps.
#include "jit/cache/pack_lookup.h"

#include "base/format.h"
#include "jit/cache/pack.h"

namespace kernwright {
namespace {

/// The target given to a compiler with knowledge of every architecture.
std::optional<Target> ideal_target(const TargetRequest& wanted, const IncludeClosure& included) {
  const std::string& arch = wanted.device ? wanted.device->arch : wanted.arch;
  if (arch.empty() && !wanted.device && wanted.kind == CodeKind::cubin) return std::nullopt;
  const bool is_default = arch.empty() && !wanted.device;
  const int number = !arch.empty() ? parse_arch(arch).number
                     : is_default  ? 80
                                   : wanted.device->compute_capability;
  TargetRequest complete = wanted;
  if (complete.device) complete.device->ptx_alone = false;  // the code of packs is complete
  return target_of(complete, included, std::span(&number, 1), "");
}

}  // namespace

Target target_of(const TargetRequest& wanted, const IncludeClosure& included,
                 std::span<const int> known, const std::string& version) {
  if (!wanted.device) return target_for_kind(wanted.kind, wanted.arch, known, version);
  DeviceTarget device = *wanted.device;
  device.wants_arch_specific = included.asks_for_arch_specific;
  return target_for_device(device, known, version);
}

CompileSelection selection_of(const CodeRequest& request, Target target) {
  return {std::move(target), request.names, request.with_declared,
          request.with_lines || request.options.lineinfo, request.with_members};
}

std::shared_ptr<const ObjectCode> code_from_packs(const CodeRequest& request,
                                                  const IncludeClosure& included) {
  const auto packs = packs_in_use();
  if (packs.empty()) return nullptr;
  std::optional<Target> target = ideal_target(request.target, included);
  if (!target) return nullptr;
  std::vector<Target> targets{*target};
  if (target->kind == CodeKind::cubin && parse_arch(target->label).suffix == '\0') {
    targets.push_back({target->kind, target->nvrtc_arch + "a", target->label + "a"});
  }
  for (const auto& pack : packs) {
    for (const Target& one : targets) {
      if (auto code = pack->find(pack_key(request.fields, selection_of(request, one)), included))
        return code;
    }
  }
  return nullptr;
}

std::string missing_from_packs(const CodeRequest& request, const IncludeClosure& included) {
  const auto packs = packs_in_use();
  const auto target = ideal_target(request.target, included);
  if (packs.empty() || !target) return {};
  std::string names;
  for (const std::string& name : request.names) names += (names.empty() ? "" : ", ") + name;
  for (const KernelDeclaration& kernel : request.declared.kernels) {
    if (request.names.empty()) names += (names.empty() ? "" : ", ") + kernel.name;
  }
  std::string text =
      format("{} of {} is in no pack in use for {}", names, request.source.name, target->label);
  for (const auto& pack : packs) {
    std::string archs;
    for (const std::string& arch : pack->archs_of(request.fields)) {
      archs += (archs.empty() ? "" : ", ") + arch;
    }
    text += archs.empty() ? format("; {} does not hold this source", pack->path())
                          : format("; {} holds the source for {}", pack->path(), archs);
  }
  return text + ". ";
}

}  // namespace kernwright
