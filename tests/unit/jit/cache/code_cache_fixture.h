// A code cache over a planned NVRTC, with its files in a folder of the test.
#pragma once

#include "base/errors.h"
#include "jit/cache/code_cache.h"
#include "unit/jit/cache/cache_fixture.h"
#include "unit/jit/fake_nvrtc.h"

#include <atomic>
#include <string>
#include <vector>

namespace kernwright::testing {

/// An NVRTC installed in a folder. It counts how often it was opened.
struct InstalledNvrtc {
  explicit InstalledNvrtc(const std::string& folder, const std::string& builtins = "builtins")
      : library(folder + "/libnvrtc.so.13"), loaded(FakeNvrtc::get().reset()) {
    test::write_text(library, "library");
    loaded.path = library;
    loaded.builtins_path = folder + "/libnvrtc-builtins.so.13.1";
    test::write_text(loaded.builtins_path, builtins);
  }

  /// A compiler for one cache: nothing is opened before it is needed.
  CompilerSource source() {
    auto is_open = std::make_shared<std::atomic<bool>>(false);
    CompilerSource result;
    result.search = [this] {
      NvrtcSearch search;
      search.override_path = library;
      search.system_loader = false;
      return search;
    };
    const auto service = std::make_shared<DirectCompileService>(
        [this, is_open]() -> const LoadedNvrtc& {
          if (is_missing) throw NvrtcNotFound("NVRTC was not found");
          if (!is_open->exchange(true)) ++opened;
          return loaded;
        },
        [this, is_open] { return *is_open ? &loaded : nullptr; });
    result.service = [service]() -> CompileService& { return *service; };
    return result;
  }

  std::string library;
  LoadedNvrtc loaded;
  std::atomic<int> opened = 0;
  bool is_missing = false;
};

/// A request with the texts it refers to.
struct OwnedRequest {
  explicit OwnedRequest(const std::string& text, const std::string& arch = "sm_90") {
    source.text = text;
    target.kind = CodeKind::cubin;
    target.arch = arch;
    refresh();
  }
  /// After the source or the options were changed.
  void refresh() {
    declared = scan_source(source.text);
    fields = program_fields(source, options);
  }
  CodeRequest get() const { return {source, options, declared, fields, target}; }

  Source source;
  ProgramOptions options;
  ScannedSource declared;
  ProgramFields fields;
  TargetRequest target;
};

struct CodeCacheFolder : CacheFolder {
  CodeCacheFolder() : nvrtc(folder / "lib") {}

  /// As in a new process.
  std::unique_ptr<CodeCache> open(CacheMode mode = CacheMode::disk) {
    CodeCache::Options settings;
    settings.mode = mode;
    settings.disk = options();
    settings.compiler = nvrtc.source();
    return std::make_unique<CodeCache>(std::move(settings));
  }

  InstalledNvrtc nvrtc;
};

inline const std::string kKernel = "__global__ void k() {}\n";

}  // namespace kernwright::testing
