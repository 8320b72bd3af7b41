// The identity of a compile: equal keys and equal headers mean equal results.
#pragma once

#include "base/sha256.h"
#include "jit/cache/compiler_identity.h"
#include "jit/compile/target.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <string>
#include <vector>

namespace kernwright {

/// The fields themselves, labelled and with their lengths, and their SHA-256. Large texts stand in
/// `fields` by size and SHA-256.
struct CacheKey {
  std::string fields;
  Sha256Digest digest;
};

/// A program's part of its keys: made once, used for each of its compiles.
struct ProgramFields {
  std::string text;      ///< everything but the source's name and folder
  std::string location;  ///< those
};

/// NOTE: three things are left out. The source's first line: a kernel moved within its file is the
/// same one. The timeout: it decides whether there is a result, never its content. The option
/// `arch`: the target tells it.
ProgramFields program_fields(const Source& source, const ProgramOptions& options);

/// The user's part of the fields, without the source's name and folder and the include folders. It
/// is the same for every version of this library.
std::string request_fields(const Source& source, const ProgramOptions& options);

/// The differences between compiles of one program.
struct CompileSelection {
  Target target;
  std::vector<std::string> names;
  bool with_declared = true;
  bool lineinfo = false;
  bool with_members = true;
};

/// Key of the caches on this machine. `toolkits` are the folders to search for CUDA's headers;
/// empty if none are needed. A pure function of its arguments.
CacheKey cache_key(const ProgramFields& program, const CompileSelection& selection,
                   const CompilerIdentity& compiler, const std::vector<std::string>& toolkits);

/// Key independent of the machine: no compiler, no folders, no name of the source.
CacheKey pack_key(const ProgramFields& program, const CompileSelection& selection);

}  // namespace kernwright
