// The architecture and the kind of code for a device.
#pragma once

#include "jit/object_code.h"

#include <span>
#include <string>
#include <string_view>

namespace kernwright {

/// An architecture as the user or NVRTC spells it.
struct Arch {
  bool is_virtual = false;  ///< "compute_90" rather than "sm_90"
  int number = 0;           ///< 90
  char suffix = '\0';       ///< 'a' or 'f' for architecture- and family-specific features

  /// "sm_90a": the real architecture of the same number.
  std::string real() const;
  /// "compute_90a"
  std::string virtual_name() const;
};

/// Whether a device of this compute capability (90 for 9.0) runs cubins, or PTX, for `arch`.
bool can_run(const Arch& arch, CodeKind kind, int compute_capability) noexcept;

/// Reads "sm_90a" or "compute_80". Throws InvalidArgument with the expected form.
Arch parse_arch(std::string_view text);

/// The thing to compile: NVRTC is given `nvrtc_arch`; of the result `kind` is kept.
struct Target {
  CodeKind kind = CodeKind::cubin;
  std::string nvrtc_arch;  ///< "sm_90a"; "compute_120" where NVRTC does not know the GPU
  std::string label;       ///< ObjectCode::arch: "sm_90a" for a cubin, "compute_80" for PTX
};

/// The inputs of a target besides the options.
struct DeviceTarget {
  int compute_capability = 80;  ///< of the device: 90 for 9.0
  bool is_simulated = false;
  bool wants_arch_specific = false;  ///< a text uses features of one architecture only
  std::string arch;                  ///< ProgramOptions::arch; empty: the device's
  bool ptx_alone = false;            ///< for a simulated device: no cubin with resource counts
};

/// Target for a device: a cubin for a GPU known to NVRTC, PTX of the highest architecture below it
/// for a newer one, PTX of its own compute capability for the simulated device. `known` are NVRTC's
/// architectures, `version` its version for messages. Throws InvalidArgument listing `known` for an
/// unknown architecture or a device older than all of them.
Target target_for_device(const DeviceTarget& device, std::span<const int> known,
                         const std::string& version);

/// Target for code of `kind` without a device. Empty `arch`: compute_80 for PTX; for a cubin
/// InvalidArgument, since a cubin runs on one architecture only.
Target target_for_kind(CodeKind kind, const std::string& arch, std::span<const int> known,
                       const std::string& version);

}  // namespace kernwright
