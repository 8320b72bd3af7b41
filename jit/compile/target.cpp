// Chooses architectures from the list of NVRTC.
#include "jit/compile/target.h"

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/format.h"
#include "base/printable.h"

namespace kernwright {
namespace {

/// The first generation with features only for its own "a" target.
constexpr int kFirstArchSpecific = 90;
constexpr int kFirstFamilySpecific = 100;
/// The default of PTX made without a device; the simulated device runs it in any configuration.
constexpr int kPtxArch = 80;

std::string list(std::span<const int> known) {
  std::string result;
  for (const int arch : known) result += (result.empty() ? "sm_" : ", sm_") + std::to_string(arch);
  return result;
}

std::string suffix_text(const Arch& arch) {
  return arch.suffix == '\0' ? std::string() : std::string(1, arch.suffix);
}

void check_known(const Arch& arch, const std::string& text, std::span<const int> known,
                 const std::string& version) {
  if (std::find(known.begin(), known.end(), arch.number) == known.end()) {
    throw InvalidArgument(format(
        "architecture {} is unknown to NVRTC {}, which compiles for {}; choose one of them or "
        "install another nvidia-cuda-nvrtc",
        text, version, list(known)));
  }
  const int first = arch.suffix == 'f' ? kFirstFamilySpecific : kFirstArchSpecific;
  if (arch.suffix != '\0' && arch.number < first) {
    throw InvalidArgument(
        format("architecture {} does not exist: the suffix '{}' begins with sm_{}", text,
               arch.suffix, first));
  }
}

Target make_target(CodeKind kind, const Arch& arch) {
  return {kind, arch.real(), kind == CodeKind::cubin ? arch.real() : arch.virtual_name()};
}

}  // namespace

std::string Arch::real() const { return "sm_" + std::to_string(number) + suffix_text(*this); }

std::string Arch::virtual_name() const {
  return "compute_" + std::to_string(number) + suffix_text(*this);
}

Arch parse_arch(std::string_view text) {
  const auto refuse = [&] {
    throw InvalidArgument(
        format("architecture \"{}\" is not understood: write sm_90, sm_90a or compute_80",
               printable(text)));
  };
  Arch arch;
  std::string_view rest = text;
  if (rest.starts_with("sm_")) {
    rest.remove_prefix(3);
  } else if (rest.starts_with("compute_")) {
    arch.is_virtual = true;
    rest.remove_prefix(8);
  } else {
    refuse();
  }
  if (!rest.empty() && (rest.back() == 'a' || rest.back() == 'f')) {
    arch.suffix = rest.back();
    rest.remove_suffix(1);
  }
  const bool digits = rest.size() >= 2 && rest.size() <= 4 &&
                      rest.find_first_not_of("0123456789") == std::string_view::npos;
  if (!digits) refuse();
  for (const char c : rest) arch.number = arch.number * 10 + (c - '0');
  return arch;
}

bool can_run(const Arch& arch, CodeKind kind, int compute_capability) noexcept {
  const bool same_major = arch.number / 10 == compute_capability / 10;
  if (arch.suffix == 'a') return arch.number == compute_capability;
  return arch.number <= compute_capability &&
         (same_major || (kind == CodeKind::ptx && arch.suffix == '\0'));
}

Target target_for_kind(CodeKind kind, const std::string& arch, std::span<const int> known,
                       const std::string& version) {
  if (arch.empty() && kind == CodeKind::cubin) {
    throw InvalidArgument(format(
        "a cubin runs on one architecture only: set the option arch to one of {}", list(known)));
  }
  const Arch parsed = arch.empty() ? Arch{true, kPtxArch, '\0'} : parse_arch(arch);
  check_known(parsed, arch.empty() ? parsed.virtual_name() : arch, known, version);
  return make_target(kind, parsed);
}

Target target_for_device(const DeviceTarget& device, std::span<const int> known,
                         const std::string& version) {
  if (device.is_simulated) {
    const int number = device.compute_capability;
    const bool specific = device.wants_arch_specific && number >= kFirstArchSpecific;
    const Arch own{true, number, specific ? 'a' : '\0'};
    Target target = target_for_kind(
        CodeKind::ptx, device.arch.empty() ? own.virtual_name() : device.arch, known, version);
    if (device.ptx_alone) target.nvrtc_arch = target.label;  // the assembler does not run
    return target;
  }
  if (!device.arch.empty()) {
    const Arch arch = parse_arch(device.arch);
    const CodeKind kind = arch.is_virtual ? CodeKind::ptx : CodeKind::cubin;
    return target_for_kind(kind, device.arch, known, version);
  }
  const int cc = device.compute_capability;
  if (std::find(known.begin(), known.end(), cc) != known.end()) {
    const bool specific = device.wants_arch_specific && cc >= kFirstArchSpecific;
    return make_target(CodeKind::cubin, Arch{false, cc, specific ? 'a' : '\0'});
  }
  int best = 0;
  for (const int arch : known) best = arch < cc ? std::max(best, arch) : best;
  if (best == 0) {
    throw InvalidArgument(format(
        "NVRTC {} does not compile for compute capability {}.{}: it knows {}; install an older "
        "NVRTC (pip install nvidia-cuda-nvrtc-cu12)",
        version, cc / 10, cc % 10, list(known)));
  }
  const std::string name = Arch{true, best, '\0'}.virtual_name();
  return {CodeKind::ptx, name, name};
}

}  // namespace kernwright
