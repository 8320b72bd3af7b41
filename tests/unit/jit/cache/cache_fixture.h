// Keys, code and folders for the tests of the disk cache.
#pragma once

#include "jit/cache/disk_cache.h"
#include "unit/base/fault_fs.h"
#include "unit/base/temporary_directory.h"

#include <string>
#include <vector>

namespace kernwright::testing {

inline CacheKey key_for(const std::string& name) {
  std::string fields = "name:" + name + "\n";
  const Sha256Digest digest = sha256(fields);
  return {std::move(fields), digest};
}

/// Small code with a mark in its text, and something in every field.
inline ObjectCode small_code(const std::string& text) {
  ObjectCode code;
  code.arch = "sm_90";
  code.code = text;
  code.resource_cubin = "r";
  code.log = "l";
  code.diagnostics = {{Severity::warning, "w", "f.cu", 3, 4, "^", "h"}};
  KernelSignature kernel;
  kernel.name = "k";
  kernel.lowered = "_Z1kf";
  Parameter parameter;
  parameter.name = "x";
  parameter.type = "float";
  parameter.scalar = ScalarType::float32;
  parameter.size = parameter.alignment = 4;
  kernel.parameters = {parameter};
  code.kernels = {kernel};
  code.symbols = {{"s", "_s"}};
  code.nvrtc_version = "13.5";
  code.compile_ms = 1.5;
  return code;
}

/// A cache in a folder of its own, over a file system with planned failures.
struct CacheFolder {
  CacheFolder() { system.skips_sync = true; }

  DiskCacheOptions options(std::uint64_t limit = std::uint64_t{1} << 30) {
    DiskCacheOptions result;
    result.directory = folder / "cache";
    result.limit = limit;
    result.system = &system;
    return result;
  }
  std::string objects() const { return folder / "cache/objects"; }
  /// The entries' files.
  std::vector<std::string> entries() const {
    std::vector<std::string> names = test::names_in(objects());
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".kwc"); });
    return names;
  }
  std::vector<std::string> temporaries() const {
    std::vector<std::string> names = test::names_in(objects());
    std::erase_if(names, [](const std::string& name) { return !name.starts_with(".tmp-"); });
    return names;
  }
  std::string entry(std::size_t index = 0) const { return objects() + "/" + entries().at(index); }

  test::TemporaryDirectory folder;
  test::FaultFs system;
};

/// Sets the time of last use of a file to `seconds` ago (in the future when negative).
inline void set_age(const std::string& path, long seconds) {
  const auto moment = std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds);
  std::filesystem::last_write_time(path, moment);
}

inline bool store(DiskCache& cache, const std::string& name, const std::string& text) {
  return cache.put(key_for(name), {}, {}, "f.cu", small_code(text));
}

/// The text stored under this name, or "" for a miss.
inline std::string fetch(DiskCache& cache, const std::string& name) {
  const auto code = cache.get(key_for(name), {});
  return code ? code->code : std::string();
}

}  // namespace kernwright::testing
