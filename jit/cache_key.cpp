// Hashes a compile request field by field.
#include "jit/cache_key.h"

namespace kernwright {
namespace {

/// Raised when the meaning of a field or the assembled text (the probe, say) changes.
constexpr std::uint64_t kSchema = 1;

void add(Hasher& hasher, const std::vector<std::string>& texts) {
  hasher.field(static_cast<std::uint64_t>(texts.size()));
  for (const std::string& text : texts) hasher.field(text);
}

void add(Hasher& hasher, const std::map<std::string, std::string>& texts) {
  hasher.field(static_cast<std::uint64_t>(texts.size()));
  for (const auto& [name, text] : texts) hasher.field(name).field(text);
}

void add(Hasher& hasher, const std::optional<int>& number) {
  hasher.field(static_cast<std::uint64_t>(number ? 1 : 0));
  hasher.field(static_cast<std::uint64_t>(number.value_or(0)));
}

void add(Hasher& hasher, const ProgramOptions& options) {
  hasher.field(options.arch).field(options.std);
  add(hasher, options.defines);
  add(hasher, options.headers);
  add(hasher, options.include_dirs);
  for (const bool flag : {options.fast_math, options.lineinfo, options.device_debug}) {
    hasher.field(static_cast<std::uint64_t>(flag));
  }
  add(hasher, options.max_registers);
  add(hasher, options.opt_level);
  hasher.field(static_cast<std::uint64_t>(options.minimal));
  hasher.field(static_cast<std::uint64_t>(options.pch));
  add(hasher, options.extra);
  // NOTE: the timeout decides whether there is a result, never which one; it is left out.
}

}  // namespace

Hash128 cache_key(const CompileRequest& request, const IncludeClosure& included,
                  const LoadedNvrtc& nvrtc) {
  Hasher hasher;
  hasher.field(kSchema).field(nvrtc.path).field(nvrtc.version());
  hasher.field(request.source.text).field(request.source.name).field(request.source.directory);
  hasher.field(static_cast<std::uint64_t>(request.source.first_line));
  add(hasher, request.options);
  hasher.field(static_cast<std::uint64_t>(request.target.kind));
  hasher.field(request.target.nvrtc_arch).field(request.target.label);
  add(hasher, request.names);
  hasher.field(static_cast<std::uint64_t>(request.with_declared));
  add(hasher, request.header_folders);
  hasher.field(static_cast<std::uint64_t>(included.files.size()));
  for (const IncludedFile& file : included.files) {
    hasher.field(file.path).field(file.hash.high).field(file.hash.low);
  }
  return hasher.digest();
}

}  // namespace kernwright
