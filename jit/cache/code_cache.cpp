// Asks the layers in order, compiles if none has the code, and stores the result.
#include "jit/cache/code_cache.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "jit/cache/compiler_finder.h"
#include "jit/cache/memory_cache.h"
#include "jit/cache/pack.h"
#include "jit/cache/pack_lookup.h"
#include "jit/cache/request_recorder.h"
#include "jit/compile/compile_service.h"
#include "jit/compile/compile_trace.h"
#include "jit/compile/diagnostics.h"
#include "jit/source/include_closure.h"

namespace kernwright {
namespace {

using Code = CodeCache::Code;
using Clock = std::chrono::steady_clock;

/// How long another process's compile of the same thing is waited for.
constexpr std::chrono::milliseconds kPatience{20'000};

/// Free-form options with effects beyond the contents of a key.
bool is_untracked(const std::string& option) {
  constexpr std::array<std::string_view, 12> kPrefixes{"-I",
                                                       "--include-path",
                                                       "-include",
                                                       "--pre-include",
                                                       "--time",
                                                       "-time",
                                                       "--fdevice-time-trace",
                                                       "-fdevice-time-trace",
                                                       "--use-pch",
                                                       "--create-pch",
                                                       "--pch-dir",
                                                       "--use-bundled-headers"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return option.starts_with(prefix); });
}

std::string name_of(const ObjectCode& code) {
  std::string names;
  for (const KernelSignature& kernel : code.kernels) {
    names += (names.empty() ? "" : ", ") + kernel.name;
  }
  return names.empty() ? std::string("no kernel") : names;
}

/// One line for each request: names, where the code came from, time, size.
void report(const CodeRequest& request, const FoundCode& found, bool is_kept,
            Clock::time_point begin) {
  if (!log_enabled(LogLevel::info)) return;
  const ObjectCode& code = *found.code;
  std::string from = code_layer_name(found.layer);
  if (found.layer == CodeLayer::compiler) from += " with NVRTC " + code.nvrtc_version;
  if (!is_kept) from += ", not kept";
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  log(LogLevel::info, "{} ({}:{}): {}, {}, {} bytes, {:.2f} ms", name_of(code), request.source.name,
      request.source.first_line, from, code.arch, code.code.size(), ms);
}

/// The opened NVRTC differs from the recorded one: the request begins anew.
struct CompilerChanged {};

/// A text with a compile error, and its line: other threads may wait for the same text on another
/// line.
struct FailedText {
  CompileError error;
  int first_line;
};

[[noreturn]] void throw_at_line(const FailedText& failed, const Source& source) {
  if (failed.first_line == source.first_line) throw failed.error;
  std::vector<Diagnostic> diagnostics = failed.error.diagnostics;
  const int first_line = source.first_line - failed.first_line + 1;
  shift_lines(diagnostics, source.name, first_line);
  const std::string log = shifted_log(failed.error.log, source.name, first_line);
  throw CompileError(summarize(diagnostics, source.name, log), diagnostics, log,
                     failed.error.source, failed.error.options);
}

/// The identity of a request in the layers below the packs.
struct Lookup {
  CompilerIdentity compiler;
  Target target;
  CacheKey key;
};

/// The key of the memory cache: changed headers of the user make another one.
Sha256Digest memory_key(const CacheKey& key, const IncludeClosure& included) {
  if (included.files.empty()) return key.digest;
  Sha256 hasher;
  hasher.update(key.digest.bytes);
  for (const IncludedFile& file : included.files) {
    hasher.update(sha256(file.path).bytes).update(file.hash.bytes);
  }
  return hasher.digest();
}

}  // namespace

struct CodeCache::State {
  explicit State(Options given)
      : options(std::move(given)),
        memory(options.max_entries, options.max_bytes),
        disk(disk_options(options)),
        compilers(options.compiler,
                  CompilerRecords(disk.system(), disk.root().child("compilers"))) {}

  static DiskCacheOptions disk_options(const Options& options) {
    DiskCacheOptions disk = options.disk;
    if (options.mode != CacheMode::disk) disk.is_enabled = false;
    return disk;
  }

  Lookup look_up(const CodeRequest& request, const IncludeClosure& included,
                 const CompilerIdentity& compiler, const NvrtcSearch& search) const {
    Lookup lookup;
    lookup.compiler = compiler;
    lookup.target = target_of(request.target, included, compiler.archs, compiler.version());
    const auto& toolkits =
        included.needs_cuda_headers ? search.toolkits : std::vector<std::string>();
    lookup.key =
        cache_key(request.fields, selection_of(request, lookup.target), compiler, toolkits);
    return lookup;
  }

  /// Compiles. `folders` receives those folders of CUDA headers whose files may change.
  ObjectCode compile(const CodeRequest& request, const IncludeClosure& included,
                     const Target& target, const NvrtcFacts& nvrtc,
                     std::vector<std::string>& folders) {
    CompileJob job{{request.source,
                    request.options,
                    target,
                    request.declared,
                    request.names,
                    request.with_declared,
                    request.with_members,
                    {}},
                   included.needs_cuda_headers};
    if (request.with_lines) job.request.options.lineinfo = true;
    CompileResult result = compilers.service().compile(job, nvrtc);
    if (!result.note.empty()) log(LogLevel::warning, "{}", result.note);
    folders = std::move(result.folders);
    ++compiles;
    // Kept as if the text stood at the beginning of its file: it may move there.
    const int first_line = 2 - request.source.first_line;
    shift_lines(result.code.diagnostics, request.source.name, first_line);
    result.code.log = shifted_log(result.code.log, request.source.name, first_line);
    return std::move(result.code);
  }

  /// With no cache at all.
  ObjectCode compile_alone(const CodeRequest& request, const IncludeClosure& included) {
    for (int attempt = 0;; ++attempt) {
      const CompileService::Facts nvrtc = compilers.service().nvrtc();
      const Target target = target_of(request.target, included, nvrtc->archs, nvrtc->version());
      std::vector<std::string> folders;
      try {
        return compile(request, included, target, *nvrtc, folders);
      } catch (const NvrtcChanged&) {
        if (attempt > 0) throw;
      }
    }
  }

  /// Makes code missing in memory, from the disk or by the compiler.
  ObjectCode make(const CodeRequest& request, const IncludeClosure& included, const Lookup& lookup,
                  const NvrtcSearch& search) {
    if (auto code = disk.get(lookup.key, included)) return from_disk(std::move(*code));
    const auto patience = std::min(kPatience, request.options.timeout.value_or(kPatience));
    DiskCache::CompileClaim claim = disk.claim(lookup.key, included, patience);
    if (claim.code) return from_disk(std::move(*claim.code));
    ++misses;
    const CompileService::Facts nvrtc = compilers.service().nvrtc();
    const CompilerIdentity compiler = compilers.identity_of(nvrtc, search);
    if (compiler.builtins != lookup.compiler.builtins || compiler.archs != lookup.compiler.archs) {
      throw CompilerChanged();
    }
    std::vector<std::string> folders;
    try {
      ObjectCode code = compile(request, included, lookup.target, *nvrtc, folders);
      if (!code.trace->is_provisional) {
        disk.put(lookup.key, included, folders, request.source.name, code);
      }
      return code;
    } catch (const CompileError& error) {
      throw FailedText{error, request.source.first_line};
    } catch (const NvrtcChanged&) {
      throw CompilerChanged();
    }
  }

  static ObjectCode from_disk(ObjectCode code) {
    code.origin = CodeOrigin::disk;
    return code;
  }

  FoundCode from_layers(const CodeRequest& request, const IncludeClosure& included) {
    const NvrtcSearch search = compilers.search();
    for (int attempt = 0;; ++attempt) {
      const Lookup lookup = look_up(request, included, compilers.identity(search), search);
      CodeLayer layer = CodeLayer::memory;
      try {
        Code found = memory.get(memory_key(lookup.key, included), [&] {
          ObjectCode code = make(request, included, lookup, search);
          layer = code.origin == CodeOrigin::disk ? CodeLayer::disk : CodeLayer::compiler;
          return code;
        });
        return {std::move(found), layer};
      } catch (const FailedText& failed) {
        throw_at_line(failed, request.source);
      } catch (const CompilerChanged&) {
        if (attempt > 1) throw Error("another NVRTC appeared while a kernel was compiled");
        compilers.forget();
      }
    }
  }

  /// Without any NVRTC: finds code from an earlier NVRTC known to the cache.
  FoundCode without_compiler(const CodeRequest& request, const IncludeClosure& included) {
    const NvrtcSearch search = compilers.search();
    for (const CompilerIdentity& compiler : compilers.recorded()) {
      std::optional<Lookup> lookup;
      try {
        lookup = look_up(request, included, compiler, search);
      } catch (const InvalidArgument&) {
        continue;  // that NVRTC does not know the architecture
      }
      CodeLayer layer = CodeLayer::memory;
      try {
        Code found = memory.get(memory_key(lookup->key, included), [&] {
          auto code = disk.get(lookup->key, included);
          if (!code) throw NvrtcNotFound("");
          layer = CodeLayer::disk;
          return from_disk(std::move(*code));
        });
        return {std::move(found), layer};
      } catch (const NvrtcNotFound&) {
        // Not compiled by this one.
      }
    }
    return {};
  }

  /// The same object for the same code and line, as long as anybody holds it.
  Code at_line(const Code& code, int first_line, const std::string& file) {
    if (first_line == 1 || code->diagnostics.empty()) return code;
    struct Shifted {
      ObjectCode code;
      Code original;
    };
    const std::lock_guard lock(mutex);
    std::weak_ptr<const ObjectCode>& slot = shifted[{code.get(), first_line}];
    if (Code known_code = slot.lock()) return known_code;
    const auto made = std::make_shared<Shifted>(Shifted{*code, code});
    shift_lines(made->code.diagnostics, file, first_line);
    made->code.log = shifted_log(made->code.log, file, first_line);
    Code result(made, &made->code);
    slot = result;
    std::erase_if(shifted, [](const auto& item) { return item.second.expired(); });
    return result;
  }

  const Options options;
  MemoryCache memory;
  DiskCache disk;
  CompilerFinder compilers;

  std::mutex mutex;
  std::map<std::pair<const ObjectCode*, int>, std::weak_ptr<const ObjectCode>> shifted;
  std::atomic<std::uint64_t> pack_hits = 0, misses = 0, compiles = 0;
};

CodeCache::CodeCache(Options options) : state_(std::make_unique<State>(std::move(options))) {}
CodeCache::~CodeCache() = default;

FoundCode CodeCache::get(const CodeRequest& request) {
  State& state = *state_;
  const auto begin = Clock::now();
  if (request.use_packs) record_request(request);
  IncludeClosure included = include_closure(request.source, request.options);
  if (std::any_of(request.options.extra.begin(), request.options.extra.end(), is_untracked)) {
    included.is_complete = false;
  }
  const auto finish = [&](FoundCode found, bool is_kept = true) {
    report(request, found, is_kept, begin);
    found.code = state.at_line(found.code, request.source.first_line, request.source.name);
    return found;
  };
  if (Code code = request.use_packs ? code_from_packs(request, included) : nullptr) {
    ++state.pack_hits;
    return finish({std::move(code), CodeLayer::pack});
  }
  try {
    if (state.options.mode == CacheMode::off || !included.is_complete) {
      ++state.misses;
      auto code = std::make_shared<const ObjectCode>(state.compile_alone(request, included));
      return finish({std::move(code), CodeLayer::compiler}, false);
    }
    return finish(state.from_layers(request, included));
  } catch (const NvrtcNotFound& error) {
    if (included.is_complete) {
      if (FoundCode found = state.without_compiler(request, included); found.code) {
        return finish(std::move(found));
      }
    }
    const std::string missing = missing_from_packs(request, included);
    if (missing.empty()) throw;
    throw NvrtcNotFound(missing + error.what());
  }
}

FoundCode CodeCache::replace(const CodeRequest& request, const Code& refused) {
  State& state = *state_;
  if (refused->origin != CodeOrigin::disk) return {};
  const IncludeClosure included = include_closure(request.source, request.options);
  const NvrtcSearch search = state.compilers.search();
  std::optional<Lookup> found;
  try {
    found = state.look_up(request, included, state.compilers.identity(search), search);
  } catch (const NvrtcNotFound&) {
    return {};  // there is nothing to compile it with
  }
  const Lookup& lookup = *found;
  state.disk.discard(lookup.key);
  state.memory.erase(memory_key(lookup.key, included));
  return get(request);
}

bool CodeCache::expects_compiler() {
  State& state = *state_;
  return packs_in_use().empty() && state.compilers.must_open();
}

void prefetch_compiler() noexcept {
  static std::atomic<bool> begun = false;
  if (begun.exchange(true)) return;
  try {
    if (CodeCache::process().expects_compiler()) compile_service().prepare();
  } catch (const std::exception& error) {
    log(LogLevel::debug, "the compiler is not made ready ahead: {}", error.what());
  }
}

bool look_ahead() noexcept {
  try {
    std::error_code none;
    return std::filesystem::is_directory(default_cache_directory(), none) &&
           !CodeCache::process().expects_compiler();
  } catch (const std::exception& error) {
    log(LogLevel::debug, "the cache is not opened ahead: {}", error.what());
    return false;
  }
}

CodeCacheStats CodeCache::stats() const {
  const State& state = *state_;
  const MemoryCacheStats memory = state.memory.stats();
  const DiskCacheStats disk = state.disk.stats();
  CodeCacheStats stats;
  stats.memory_hits = memory.hits;
  stats.disk_hits = disk.hits;
  stats.pack_hits = state.pack_hits;
  stats.misses = state.misses;
  stats.compiles = state.compiles;
  stats.stored = disk.stored;
  stats.rejected = disk.rejected;
  stats.evictions = memory.evictions + disk.evictions;
  stats.memory_entries = memory.entries;
  stats.memory_bytes = memory.bytes;
  return stats;
}

CacheMode CodeCache::mode() const noexcept { return state_->options.mode; }
DiskCache& CodeCache::disk() noexcept { return state_->disk; }
void CodeCache::clear_memory() { state_->memory.clear(); }

CodeCache& CodeCache::process() {
  struct Caches {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<CodeCache>> by_description;
  };
  static auto& caches = *new Caches;  // kept to the end of the process on purpose
  const std::string mode = env_choice(Env::cache);
  const std::string directory = mode == "disk" ? default_cache_directory() : std::string();
  const std::uint64_t limit = env_number(Env::cache_limit);
  const std::string description = mode + '\n' + directory + '\n' + std::to_string(limit);
  const std::lock_guard lock(caches.mutex);
  std::unique_ptr<CodeCache>& cache = caches.by_description[description];
  if (!cache) {
    Options options;
    options.mode = mode == "disk"     ? CacheMode::disk
                   : mode == "memory" ? CacheMode::memory
                                      : CacheMode::off;
    options.disk.directory = directory;
    options.disk.limit = limit;
    cache = std::make_unique<CodeCache>(std::move(options));
  }
  return *cache;
}

}  // namespace kernwright
