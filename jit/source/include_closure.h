// The user's files reachable by includes, and the demands of all texts together.
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
  /// Something is included from neither `headers` nor the user's folders: CUDA's headers are
  /// needed.
  bool needs_cuda_headers = false;
  /// False if an #include with access to the user's folders has a name known only to the
  /// preprocessor: then `files` may lack a file, and the result of a compile must not be kept.
  bool is_complete = true;
  /// Some text among them asks for features of one architecture (asks_for_arch_specific()).
  bool asks_for_arch_specific = false;
};

/// Follows the #include lines and the __has_include() of the text, of the headers in memory and of
/// the found files. No #if is evaluated, so files after a false one count too. Throws
/// InvalidArgument with the line for anything that could reach any file of the machine: an absolute
/// path in the source or a header in memory; from a text without a file also ".." and a name
/// computed by macros, even if there is no such file. Also for a header that is not a regular file.
IncludeClosure include_closure(const Source& source, const ProgramOptions& options);

/// Whether a source text asks for the features of one architecture (wgmma, setmaxnreg,
/// tensormap.replace, tcgen05).
bool asks_for_arch_specific(std::string_view text) noexcept;

}  // namespace kernwright
