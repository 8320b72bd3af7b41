// The files of the user that a source may include.
#pragma once

#include "base/hash.h"
#include "jit/program_options.h"
#include "jit/source.h"

#include <string>
#include <vector>

namespace kernwright {

/// A header file found in the source's own folder or in an include folder, with its contents' hash.
struct IncludedFile {
  std::string path;
  Hash128 hash;
};

struct IncludeClosure {
  std::vector<IncludedFile> files;  ///< sorted by path
  /// Something is included that is neither in `headers` nor in the user's folders: CUDA's headers
  /// are needed.
  bool needs_cuda_headers = false;
};

/// Follows the #include lines of the text, of the headers in memory and of the files found. No #if
/// is decided, so files behind a false one count too. Throws InvalidArgument for an include of an
/// absolute path, naming its line.
IncludeClosure include_closure(const Source& source, const ProgramOptions& options);

}  // namespace kernwright
