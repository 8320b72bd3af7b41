// The user's files that a source may include, and the demands of all its texts together.
#pragma once

#include "base/sha256.h"
#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// A header file found in the source's own folder or in an include folder, with its contents' hash.
struct IncludedFile {
  std::string path;
  Sha256Digest hash;
};

struct IncludeClosure {
  std::vector<IncludedFile> files;  ///< sorted by path
  /// Something is included that is neither in `headers` nor in the user's folders: CUDA's headers
  /// are needed.
  bool needs_cuda_headers = false;
  /// False where an #include in reach of the user's folders has a name that only the preprocessor
  /// knows: then `files` may lack a file, and the result of a compile must not be kept.
  bool is_complete = true;
  /// Some text among them asks for features of one architecture (asks_for_arch_specific()).
  bool asks_for_arch_specific = false;
};

/// Follows the #include lines and the __has_include() of the text, of the headers in memory and of
/// the found files. No #if is decided, so files behind a false one count too. Throws
/// InvalidArgument with the line for anything that could reach any file of the machine: an absolute
/// path in the source or a header in memory; from a text of no file also ".." and a name put
/// together by macros, whether there is such a file or not. Also for a header that is no regular
/// file.
IncludeClosure include_closure(const Source& source, const ProgramOptions& options);

/// Whether a source text asks for the features of one architecture (wgmma, setmaxnreg,
/// tensormap.replace, tcgen05).
bool asks_for_arch_specific(std::string_view text) noexcept;

}  // namespace kernwright
