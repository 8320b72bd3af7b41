// The NVRTC of a process: found in the records first, and by opening the library only if needed.
#pragma once

#include "driver/nvrtc_loader.h"
#include "jit/cache/compiler_identity.h"
#include "jit/compile/compile_service.h"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// How a cache comes by a compiler; replaced in tests.
struct CompilerSource {
  std::function<NvrtcSearch()> search = NvrtcSearch::from_environment;
  std::function<CompileService&()> service = compile_service;
};

/// Remembers its results. Thread-safe.
class CompilerFinder {
 public:
  CompilerFinder(CompilerSource source, CompilerRecords records);

  NvrtcSearch search() const { return source_.search(); }
  CompileService& service() const { return source_.service(); }

  /// Of the open NVRTC, else of the one `search` would open; it is opened if the records do not
  /// know it. Throws NvrtcNotFound.
  CompilerIdentity identity(const NvrtcSearch& search);
  /// The identity of an open NVRTC, so never from an outdated record.
  CompilerIdentity identity_of(const CompileService::Facts& opened, const NvrtcSearch& search);
  /// Makes the next call read the records again, because their files were replaced.
  void forget();
  /// Whether identity() would have to open an NVRTC.
  bool must_open();
  /// Every identity on record, the newest first.
  std::vector<CompilerIdentity> recorded() const { return records_.all(); }

 private:
  /// From the records alone.
  std::optional<CompilerIdentity> recorded_identity(const NvrtcSearch& search);

  const CompilerSource source_;
  const CompilerRecords records_;
  std::mutex mutex_;
  std::optional<CompilerIdentity> known_;  ///< from the records, of known_search_
  std::string known_search_;
  std::map<CompileService::Facts, CompilerIdentity> opened_;
};

}  // namespace kernwright
