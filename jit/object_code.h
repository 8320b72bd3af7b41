// What a compile produced: code, the names in it, their signatures, and the compiler's log.
#pragma once

#include "base/diagnostic.h"
#include "core/kernel_signature.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace kernwright {

enum class CodeKind { cubin, ptx };

/// A value: copy and pickle freely. Immutable after it was made.
struct ObjectCode {
  CodeKind kind = CodeKind::cubin;
  std::string arch;            ///< "sm_90", "compute_80"
  std::string code;            ///< bytes of the cubin, or PTX text
  std::string resource_cubin;  ///< beside PTX: cubin of the same source, for resource counts
  std::string log;             ///< the compiler's whole log, also of a good compile
  std::vector<Diagnostic> diagnostics;   ///< warnings
  std::vector<KernelSignature> kernels;  ///< what was asked for by name, in that order
  std::map<std::string, std::string>
      symbols;                ///< C++ name -> lowered name of __device__/__constant__ variables
  std::string nvrtc_version;  ///< "13.5"
  double compile_ms = 0;

  /// The kernel of that name as the user wrote it; throws NameNotFound listing the names.
  const KernelSignature& kernel(const std::string& name) const;

  /// One self-describing file (magic, version, fields, checksum). Throws Error with path and
  /// reason.
  void save(const std::filesystem::path& path) const;
  static ObjectCode load(const std::filesystem::path& path);
  std::string serialize() const;
  static ObjectCode deserialize(std::string_view bytes);
};

}  // namespace kernwright
