// Looks up, checks and stores entries; keeps the directory below its limit.
#include "jit/cache/disk_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/fault_point.h"
#include "base/format.h"
#include "base/log.h"
#include "jit/cache/cache_entry.h"
#include "jit/cache/checked_file.h"
#include "jit/cache/disk_cache_files.h"
#include "jit/compile/compile_wait.h"
#include "jit/source/unpacked_headers.h"

namespace kernwright {
namespace {

/// The time of last use is kept to this many seconds: most hits write nothing.
constexpr std::int64_t kUseResolution = 3600;
/// Offset of the locked byte for sweeps, behind all those of keys.
constexpr std::uint64_t kSweepOffset = std::uint64_t{1} << 62;
/// How long a store may sweep before it returns. A compile has taken longer.
constexpr std::chrono::milliseconds kSweepAtOnce{40};
constexpr const char* kLockFile = "lock";
constexpr std::chrono::milliseconds kPollInterval{4};

bool cannot_ever_write(int result) {
  return result == -EROFS || result == -EACCES || result == -EPERM;
}

}  // namespace

struct DiskCache::State {
  explicit State(DiskCacheOptions given) : options(std::move(given)), system(*options.system) {
    if (!options.is_enabled) {
      set_reason("KERNWRIGHT_CACHE switches it off");
      return;
    }
    if (options.directory.empty()) {
      refuse("no folder is known for it (set KERNWRIGHT_CACHE_DIR, XDG_CACHE_HOME or HOME)");
      return;
    }
    root = SecureDirectory::open(system, options.directory);
    if (root) objects = root.child("objects");
    if (!objects) refuse(root ? objects.reason() : root.reason());
  }

  std::string name_of(const CacheKey& key) const {
    const auto digits = static_cast<std::size_t>(options.name_digits);
    return key.digest.to_hex().substr(0, digits) + std::string(kEntrySuffix);
  }

  static std::uint64_t lock_offset(const CacheKey& key) {
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      offset = offset << 8 | std::to_integer<std::uint64_t>(key.digest.bytes[i]);
    }
    return offset % kSweepOffset;
  }

  void refuse(const std::string& why) {
    set_reason(why);
    warn(format("compiled kernels are kept in memory only: {} cannot be used as a cache: {}",
                options.directory.empty() ? "the disk" : options.directory, why));
  }

  void write_failed(int result) {
    if (cannot_ever_write(result)) {
      is_read_only = true;
      set_reason(describe_failure(result));
    }
    warn(format("a compiled kernel could not be stored in {}: {}", objects.path(),
                describe_failure(result)));
  }

  void set_reason(const std::string& why) {
    const std::lock_guard lock(mutex);
    reason = why;
  }

  /// One warning per cache: the rest would only repeat it.
  void warn(const std::string& text) {
    const LogLevel level = warned.exchange(true) ? LogLevel::debug : LogLevel::warning;
    log_message(level, text);
  }

  void reject(const std::string& name, const std::string& why) {
    ++rejected;
    log(LogLevel::debug, "cache entry {} is not used: {}", name, why);
  }

  /// The entry of this name if it is whole; a damaged one is removed.
  std::optional<CacheEntry> read_entry(const std::string& name) {
    const CheckedFile file =
        read_checked(system, objects.get(), name, kMaxCacheEntry, kUseResolution);
    if (file.outcome != ReadOutcome::read) {
      if (file.outcome != ReadOutcome::absent) reject(name, file.reason);
      return std::nullopt;
    }
    try {
      CacheEntry entry = decode_entry(file.bytes);
      bytes_read += file.bytes.size();
      return entry;
    } catch (const Error& error) {
      reject(name, error.what());
      remove_same(system, objects.get(), name, file.status);
      return std::nullopt;
    }
  }

  std::optional<ObjectCode> find(const CacheKey& key, const IncludeClosure& included) {
    if (!objects) return std::nullopt;
    const std::string name = name_of(key);
    const std::optional<CacheEntry> entry = read_entry(name);
    if (!entry) return std::nullopt;
    if (entry->key_fields != key.fields) {
      reject(name, "another compile has the same name");
    } else if (!same_headers(entry->included, included)) {
      reject(name, "a header has changed");
    } else if (!are_current(entry->header_folders)) {
      reject(name, "CUDA's headers have changed");
    } else {
      try {
        return ObjectCode::deserialize(entry->object_bytes);
      } catch (const Error& error) {
        reject(name, error.what());
      }
    }
    return std::nullopt;
  }

  static bool are_current(const std::vector<HeaderFolder>& folders) {
    std::vector<std::string> paths;
    for (const HeaderFolder& folder : folders) paths.push_back(folder.path);
    return header_folders_of(paths) == folders;
  }

  /// The open lock file, or negative where there can be none.
  int lock_file() {
    const std::lock_guard lock(mutex);
    if (!objects || is_read_only) return -1;
    if (!lock_handle) {
      constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW;
      lock_handle = FileHandle(system, system.open(objects.get(), kLockFile, kFlags, 0600));
    }
    return lock_handle.get();
  }

  /// Brings the directory below its limit unless another process is about it. False where the time
  /// was too short.
  bool sweep(std::chrono::milliseconds budget) {
    const int file = lock_file();
    const int locked = file < 0 ? -ENOLCK : system.try_lock(file, kSweepOffset);
    if (locked == -EAGAIN) return true;
    KW_FAULT_POINT("disk_cache.sweeping");
    const Removal removal = keep_limit(system, root, objects.get(), options.limit, budget);
    evictions += removal.entries;
    if (locked == 0) system.unlock(file, kSweepOffset);
    return removal.is_done;
  }

  /// After the first entry of a process and then now and then: a part at once, since many processes
  /// end soon after their first kernel, the rest in the background.
  void sweep_when_due(std::size_t written) {
    const std::lock_guard lock(sweep_mutex);
    written_since_sweep += written;
    if (has_swept && written_since_sweep < options.limit / 16) return;
    if (sweeping_process == ::getpid()) return;
    has_swept = true;
    written_since_sweep = 0;
    bool is_done = false;
    try {
      is_done = sweep(kSweepAtOnce);
    } catch (const std::exception& error) {
      log(LogLevel::debug, "a sweep of {} ended early: {}", objects.path(), error.what());
    }
    sweeping_process = ::getpid();
    std::thread([this, is_done] {
      try {
        remove_stale_temporaries(system, objects.get());
        if (!is_done) sweep(std::chrono::milliseconds::max());
      } catch (const std::exception& error) {
        log(LogLevel::debug, "a sweep of {} ended early: {}", objects.path(), error.what());
      }
      const std::lock_guard end(sweep_mutex);
      sweeping_process = 0;
      swept.notify_all();
    }).detach();
  }

  /// A forked child does not wait for its parent's sweep.
  void wait_for_sweep() {
    std::unique_lock lock(sweep_mutex);
    swept.wait(lock, [&] { return sweeping_process != ::getpid(); });
  }

  const DiskCacheOptions options;
  FileSystem& system;
  SecureDirectory root, objects;

  std::mutex mutex;  ///< of reason and lock_handle
  std::string reason;
  FileHandle lock_handle;
  std::atomic<bool> is_read_only = false, warned = false;

  std::mutex sweep_mutex;
  std::condition_variable swept;
  pid_t sweeping_process = 0;  ///< whose thread sweeps; 0: none
  bool has_swept = false;
  std::uint64_t written_since_sweep = 0;

  std::atomic<std::uint64_t> hits = 0, misses = 0, stored = 0, rejected = 0, evictions = 0,
                             bytes_read = 0, bytes_written = 0;
};

DiskCache::DiskCache(DiskCacheOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

DiskCache::~DiskCache() { state_->wait_for_sweep(); }

std::optional<ObjectCode> DiskCache::get(const CacheKey& key, const IncludeClosure& included) {
  std::optional<ObjectCode> code = state_->find(key, included);
  ++(code ? state_->hits : state_->misses);
  return code;
}

bool DiskCache::put(const CacheKey& key, const IncludeClosure& included,
                    const std::vector<std::string>& header_folders, const std::string& source,
                    const ObjectCode& code) {
  State& state = *state_;
  if (!state.objects || state.is_read_only) return false;
  KW_FAULT_POINT("disk_cache.put");
  CacheEntry entry{key.fields, included, header_folders_of(header_folders), source,
                   code.serialize()};
  const std::vector<std::byte> bytes = encode_entry(entry);
  if (bytes.size() > kMaxCacheEntry || bytes.size() > state.options.limit / 2) {
    log(LogLevel::debug, "a kernel of {} bytes is too large for the cache", bytes.size());
    return false;
  }
  const int result = write_atomically(state.system, state.objects.get(), state.name_of(key), bytes);
  if (result < 0) {
    state.write_failed(result);
    return false;
  }
  KW_FAULT_POINT("disk_cache.stored");
  ++state.stored;
  state.bytes_written += bytes.size();
  state.sweep_when_due(bytes.size());
  return true;
}

void DiskCache::discard(const CacheKey& key) {
  if (!state_->objects) return;
  ++state_->rejected;
  state_->system.unlink(state_->objects.get(), state_->name_of(key).c_str());
}

DiskCache::CompileLock::~CompileLock() {
  cache_.state_->system.unlock(cache_.state_->lock_handle.get(), offset_);
}

DiskCache::CompileClaim DiskCache::claim(const CacheKey& key, const IncludeClosure& included,
                                         std::chrono::milliseconds patience) {
  State& state = *state_;
  const int file = state.lock_file();
  if (file < 0) return {};
  const std::uint64_t offset = State::lock_offset(key);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool waited = false;
  while (true) {
    const int locked = state.system.try_lock(file, offset);
    CompileClaim claim;
    if (locked == 0) claim.lock.reset(new CompileLock(*this, offset));
    if (waited) claim.code = state.find(key, included);
    if (claim.code) {
      ++state.hits;
      return claim;
    }
    if (locked != -EAGAIN || std::chrono::steady_clock::now() >= deadline) return claim;
    waited = true;
    check_wait(current_wait_limits(), "waiting for a kernel that another process compiles");
    std::this_thread::sleep_for(kPollInterval);
  }
}

DiskCacheStats DiskCache::stats() const {
  const State& s = *state_;
  return {s.hits, s.misses, s.stored, s.rejected, s.evictions, s.bytes_read, s.bytes_written};
}

DiskCacheInfo DiskCache::info() const {
  State& state = *state_;
  DiskCacheInfo info;
  info.path = state.options.directory;
  info.state = !state.objects ? "off" : state.is_read_only ? "read-only" : "on";
  info.limit = state.options.limit;
  {
    const std::lock_guard lock(state.mutex);
    info.reason = state.reason;
  }
  if (!state.objects) return info;
  for (const EntryFile& file : entry_files(state.system, state.objects.get())) {
    ++info.entries;
    info.bytes += file.bytes;
  }
  for (const UnpackedHeaders& headers : unpacked_headers(state.root)) {
    info.header_bytes += headers.bytes;
  }
  return info;
}

std::vector<DiskCacheEntry> DiskCache::list() const {
  State& state = *state_;
  std::vector<DiskCacheEntry> result;
  if (!state.objects) return result;
  for (const EntryFile& file : entry_files(state.system, state.objects.get())) {
    const CheckedFile read =
        read_checked(state.system, state.objects.get(), file.name, kMaxCacheEntry);
    if (read.outcome != ReadOutcome::read) continue;
    try {
      const CacheEntry entry = decode_entry(read.bytes);
      const ObjectCode code = ObjectCode::deserialize(entry.object_bytes);
      DiskCacheEntry line;
      line.key = sha256(entry.key_fields).to_hex();
      line.source = entry.source;
      for (const KernelSignature& kernel : code.kernels) line.kernels.push_back(kernel.name);
      for (const IncludedFile& header : entry.included.files) line.headers.push_back(header.path);
      line.arch = code.arch;
      line.nvrtc_version = code.nvrtc_version;
      line.bytes = file.bytes;
      line.last_used = file.last_used;
      result.push_back(std::move(line));
    } catch (const Error& error) {
      log(LogLevel::debug, "cache entry {} is not listed: {}", file.name, error.what());
    }
  }
  std::sort(result.begin(), result.end(), [](const DiskCacheEntry& a, const DiskCacheEntry& b) {
    return std::pair(b.last_used, a.key) < std::pair(a.last_used, b.key);
  });
  return result;
}

VerifyReport DiskCache::verify(bool repair) {
  State& state = *state_;
  VerifyReport report;
  if (!state.objects) return report;
  for (const EntryFile& file : entry_files(state.system, state.objects.get())) {
    const CheckedFile read =
        read_checked(state.system, state.objects.get(), file.name, kMaxCacheEntry);
    if (read.outcome == ReadOutcome::absent) continue;
    ++report.checked;
    report.bytes += read.bytes.size();
    if (read.outcome != ReadOutcome::read) {
      report.damaged.push_back({file.name, read.reason});
      continue;
    }
    try {
      ObjectCode::deserialize(decode_entry(read.bytes).object_bytes);
    } catch (const Error& error) {
      report.damaged.push_back({file.name, error.what()});
      if (repair) remove_same(state.system, state.objects.get(), file.name, read.status);
    }
  }
  for (const UnpackedHeaders& headers : unpacked_headers(state.root)) {
    report.bytes += headers.bytes;
    const std::vector<DamagedHeader> damaged = damaged_headers(state.root, headers.name);
    for (const DamagedHeader& each : damaged) report.damaged.push_back({each.file, each.reason});
    if (repair && !damaged.empty()) remove_headers(state.root, headers.name);
  }
  return report;
}

RemovalReport DiskCache::clear() {
  State& state = *state_;
  if (!state.objects) return {};
  std::vector<std::string> names;
  state.system.list(state.objects.get(), names);
  for (const std::string& name : names) {
    if (is_temporary_name(name)) state.system.unlink(state.objects.get(), name.c_str());
  }
  return trim(0);
}

RemovalReport DiskCache::trim(std::uint64_t limit) {
  if (!state_->objects) return {};
  const State& state = *state_;
  std::vector<UnpackedHeaders> headers = unpacked_headers(state.root);
  std::uint64_t header_bytes = 0;
  for (const UnpackedHeaders& each : headers) header_bytes += each.bytes;
  std::uint64_t entry_bytes = 0;
  for (const EntryFile& file : entry_files(state.system, state.objects.get())) {
    entry_bytes += file.bytes;
  }
  RemovalReport report;
  // Headers first: the next compile that needs them unpacks them again at once.
  std::sort(headers.begin(), headers.end(),
            [](const auto& a, const auto& b) { return a.last_used < b.last_used; });
  for (const UnpackedHeaders& each : headers) {
    if (limit > 0 && entry_bytes + header_bytes <= limit) break;
    if (!remove_headers(state.root, each.name)) continue;
    header_bytes -= each.bytes;
    report.bytes += each.bytes;
  }
  const Removal removal =
      remove_oldest(state.system, state.objects.get(), limit - std::min(header_bytes, limit));
  report.entries = removal.entries;
  report.bytes += removal.bytes;
  return report;
}

void DiskCache::wait_for_sweep() { state_->wait_for_sweep(); }

FileSystem& DiskCache::system() const noexcept { return state_->system; }

const SecureDirectory& DiskCache::root() const noexcept { return state_->root; }

}  // namespace kernwright
