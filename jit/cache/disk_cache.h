// Object code on the disk: one checked file per compile, shared by all processes of a user.
#pragma once

#include "base/secure_directory.h"
#include "jit/cache/cache_key.h"
#include "jit/object_code.h"
#include "jit/source/include_closure.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

struct DiskCacheOptions {
  bool is_enabled = true;                        ///< else it is off, without a warning
  std::string directory;                         ///< absolute; empty: there is no disk cache
  std::uint64_t limit = std::uint64_t{1} << 30;  ///< bytes, unpacked headers included
  FileSystem* system = &FileSystem::real();      ///< must outlive the cache
  /// Number of hexadecimal digits of the key in the name of an entry's file. Tests use fewer than
  /// 64, so that keys collide.
  int name_digits = 64;
};

/// This process's use of the directory.
struct DiskCacheStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t stored = 0;
  std::uint64_t rejected = 0;   ///< entries that were damaged, foreign or out of date
  std::uint64_t evictions = 0;  ///< entries removed for the limit
  std::uint64_t bytes_read = 0, bytes_written = 0;
};

struct DiskCacheInfo {
  std::string path;    ///< empty where no variable names a folder
  std::string state;   ///< "on", "read-only" or "off"
  std::string reason;  ///< why it is not "on"
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;         ///< of the entries
  std::uint64_t header_bytes = 0;  ///< of NVRTC's headers, which are unpacked beside them
  std::uint64_t limit = 0;         ///< of both together
};

/// One entry, as `kernwright cache list` shows it.
struct DiskCacheEntry {
  std::string key;                   ///< 64 hexadecimal digits
  std::string source;                ///< name of the source
  std::vector<std::string> kernels;  ///< names in it
  std::string arch;                  ///< "sm_90"
  std::string nvrtc_version;
  std::vector<std::string> headers;  ///< files of the user that it depends on
  std::uint64_t bytes = 0;
  std::int64_t last_used = 0;  ///< seconds since 1970; exact to an hour
};

struct DamagedEntry {
  std::string file;  ///< name in the directory of entries, or "headers-<version>/<path>"
  std::string reason;
};

struct VerifyReport {
  std::uint64_t checked = 0;  ///< entries read
  std::uint64_t bytes = 0;    ///< of entries and headers
  std::vector<DamagedEntry> damaged;
};

struct RemovalReport {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

/// Thread-safe, and safe among processes: a call gives an entry stored whole for exactly this key
/// and these headers, or nothing, whatever others do at the same time. Contents of the disk never
/// make a call throw; unusable ones are a miss. Entries are used only by the rule of
/// SecureDirectory. If there is no such directory, or it cannot be written, each cache warns once.
class DiskCache {
 public:
  explicit DiskCache(DiskCacheOptions options);
  /// Waits for a running sweep.
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  /// The code stored for the key, if it was compiled from the same headers as `included` and CUDA's
  /// header folders are as they were.
  std::optional<ObjectCode> get(const CacheKey& key, const IncludeClosure& included);

  /// Stores code of the source named `source`, compiled with CUDA's headers from `header_folders`.
  /// False if it could not be stored; this is no error.
  bool put(const CacheKey& key, const IncludeClosure& included,
           const std::vector<std::string>& header_folders, const std::string& source,
           const ObjectCode& code);

  /// Removes the entry of the key: its code turned out to be unusable.
  void discard(const CacheKey& key);

  /// During its lifetime, other processes with a miss of the same key wait for it (for a while).
  class CompileLock {
   public:
    ~CompileLock();
    CompileLock(const CompileLock&) = delete;
    CompileLock& operator=(const CompileLock&) = delete;

   private:
    friend class DiskCache;
    CompileLock(DiskCache& cache, std::uint64_t offset) : cache_(cache), offset_(offset) {}
    DiskCache& cache_;
    std::uint64_t offset_;
  };
  struct CompileClaim {
    std::unique_ptr<CompileLock> lock;  ///< null where locks do not work or the wait was too long
    std::optional<ObjectCode> code;     ///< what another process stored meanwhile
  };
  /// Claims the compile for the key, so that one process does it; waits at most `patience` for
  /// another one at work on it. Only a hint: nothing depends on it.
  CompileClaim claim(const CacheKey& key, const IncludeClosure& included,
                     std::chrono::milliseconds patience);

  DiskCacheStats stats() const;
  DiskCacheInfo info() const;
  /// Every readable entry, the last used one first.
  std::vector<DiskCacheEntry> list() const;
  /// Reads every entry and every unpacked header whole; damaged entries, and folders of headers
  /// with a damaged file, are removed when `repair` is set.
  VerifyReport verify(bool repair = true);
  /// Removes every entry, every temporary file and the unpacked headers.
  RemovalReport clear();
  /// Removes unpacked headers, then the least recently used entries, until at most `limit` bytes
  /// are left.
  RemovalReport trim(std::uint64_t limit);
  /// Waits for a running sweep. For tests.
  void wait_for_sweep();

  FileSystem& system() const noexcept;
  /// The cache's own folder, for files other than entries; closed when there is none.
  const SecureDirectory& root() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
