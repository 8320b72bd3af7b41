// The result of a compile: code, the names in it, their signatures, and the compiler's log.
#pragma once

#include "base/diagnostic.h"
#include "core/kernel_signature.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kernwright {

struct CompileTrace;

enum class CodeKind { cubin, ptx };

/// "cubin" or "ptx".
const char* code_kind_name(CodeKind kind) noexcept;

/// The origin of object code in this process.
enum class CodeOrigin { compiled, disk, pack };

/// Type of a __device__ or __constant__ variable.
struct SymbolType {
  std::string type;                      ///< "float [16][4]"
  std::optional<ScalarType> scalar;      ///< of one element, when it is a number
  int lanes = 1;                         ///< > 1 for a vector element (float4)
  std::vector<std::size_t> shape;        ///< extents of an array; empty for a single element
  std::vector<StructField> fields = {};  ///< members of a struct, where known
};

/// A value: copy and pickle freely. Immutable after it was made.
struct ObjectCode {
  CodeKind kind = CodeKind::cubin;
  std::string arch;  ///< "sm_90", "compute_80"
  std::string code;  ///< bytes of the cubin, or PTX text
  /// Beside PTX: the cubin of the same source, for resource counts; empty where it is made later.
  std::string resource_cubin;
  std::string log;                       ///< the compiler's whole log, also of a good compile
  std::vector<Diagnostic> diagnostics;   ///< warnings
  std::vector<KernelSignature> kernels;  ///< those asked for by name, in that order
  /// C++ name -> lowered name of __device__, __constant__ and __managed__ variables
  std::map<std::string, std::string> symbols;
  std::map<std::string, SymbolType> symbol_types;  ///< by C++ name, where the compiler told it
  std::string nvrtc_version;                       ///< "13.5"
  double compile_ms = 0;
  /// The course of the compile; only for code compiled by this process, never serialized.
  std::shared_ptr<const CompileTrace> trace;
  CodeOrigin origin = CodeOrigin::compiled;  ///< not part of the file

  /// The kernel of this name, as written by the user or lowered. Throws NameNotFound with a list of
  /// the names.
  const KernelSignature& kernel(const std::string& name) const;

  /// One self-describing file (magic, version, fields, checksum). Throws Error with path and
  /// reason.
  void save(const std::filesystem::path& path) const;
  /// The code of such a file, or of a cubin or PTX as object_code_of_image() reads it; a regular
  /// file of at most 256 MiB.
  static ObjectCode load(const std::filesystem::path& path);
  /// Whether bytes begin as save() writes them.
  static bool is_saved(std::string_view bytes) noexcept;
  std::string serialize() const;
  static ObjectCode deserialize(std::string_view bytes);
};

}  // namespace kernwright
