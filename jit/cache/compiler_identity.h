// The NVRTC of a compile, identified without loading it if the cache directory knows it.
#pragma once

#include "base/secure_directory.h"
#include "base/sha256.h"
#include "driver/nvrtc_loader.h"

#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// Everything outside the request with influence on a compile's result. A value.
struct CompilerIdentity {
  int major = 0, minor = 0;
  std::vector<int> archs;  ///< compute capabilities it compiles for
  std::string library_path;
  std::string builtins_path;
  std::uint64_t library_size = 0;  ///< bytes
  Sha256Digest builtins;           ///< hash of the builtins library's contents

  std::string version() const;  ///< "13.5"
};

/// Identity of an opened NVRTC; reads the whole builtins library (some MB). If the library cannot
/// be read, its path stands for its contents.
CompilerIdentity identify(const NvrtcFacts& nvrtc);

/// Small files of identities in a folder of the cache. Each has the name of the first library in a
/// search. A record is valid while three files keep their size, time and inode: this library, the
/// one in use, and its builtins. Thread-safe; never throws because of contents.
class CompilerRecords {
 public:
  /// `directory` may be closed: then nothing is found and nothing is stored.
  CompilerRecords(FileSystem& system, SecureDirectory directory);

  /// The NVRTC that `search` would open.
  std::optional<CompilerIdentity> find(const NvrtcSearch& search) const;
  void store(const NvrtcSearch& search, const CompilerIdentity& identity) const;
  /// Every identity on record, the newest record first, whether its files are still there or not.
  std::vector<CompilerIdentity> all() const;

 private:
  FileSystem& system_;
  SecureDirectory directory_;
};

}  // namespace kernwright
