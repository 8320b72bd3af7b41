// Writes a compile request down field by field.
#include "jit/cache/cache_key.h"

#include <array>
#include <charconv>

#include "jit/signature/probe.h"
#include "jit/source/host_headers.h"

namespace kernwright {
namespace {

/// Raised when a field or the processing of the compiler's answer changes its meaning.
constexpr int kSchema = 3;

/// The same for parts that packs leave out or keep unprocessed.
constexpr int kLocalSchema = 1;

/// Longer texts are told by size and hash.
constexpr std::size_t kLongText = 256;

/// "label:length:value\n", or "label#length:hash\n" for a long value: two different lists of fields
/// never give the same text.
class Fields {
 public:
  Fields& add(std::string_view label, std::string_view value) {
    const bool is_long = value.size() > kLongText;
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.begin(), digits.end(), value.size()).ptr;
    text_.append(label).append(is_long ? "#" : ":").append(digits.data(), end).append(":");
    if (is_long) {
      text_ += sha256(value).to_hex();
    } else {
      text_ += value;
    }
    text_ += '\n';
    return *this;
  }
  Fields& add(std::string_view label, bool value) { return add(label, value ? "1" : "0"); }
  // A text literal is no bool.
  Fields& add(std::string_view label, const char* value) {
    return add(label, std::string_view(value));
  }
  Fields& add(std::string_view label, const std::optional<int>& value) {
    return add(label, value ? std::to_string(*value) : std::string());
  }
  Fields& add(std::string_view label, const std::vector<std::string>& values) {
    add(label, std::to_string(values.size()));
    for (const std::string& value : values) add("-", value);
    return *this;
  }
  Fields& add(std::string_view label, const std::map<std::string, std::string>& values) {
    add(label, std::to_string(values.size()));
    for (const auto& [name, value] : values) add("-", name).add("=", value);
    return *this;
  }
  /// Appends fields from another key.
  Fields& append(std::string_view taken) {
    text_ += taken;
    return *this;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string fields_of(const CompileSelection& selection) {
  Fields fields;
  fields.add("kind", code_kind_name(selection.target.kind));
  fields.add("target", selection.target.nvrtc_arch).add("label", selection.target.label);
  fields.add("names", selection.names).add("declared", selection.with_declared);
  fields.add("lineinfo", selection.lineinfo);
  if (!selection.with_members) fields.add("members", false);
  return fields.take();
}

CacheKey key_of(std::string fields) {
  const Sha256Digest digest = sha256(fields);
  return {std::move(fields), digest};
}

}  // namespace

std::string request_fields(const Source& source, const ProgramOptions& options) {
  Fields text;
  text.add("source", source.text).add("std", options.std);
  text.add("defines", options.defines).add("headers", options.headers);
  text.add("fast_math", options.fast_math).add("device_debug", options.device_debug);
  if (options.strip_host) text.add("strip_host", true);
  text.add("max_registers", options.max_registers).add("opt_level", options.opt_level);
  text.add("minimal", std::to_string(static_cast<int>(options.minimal)));
  text.add("pch", std::to_string(static_cast<int>(options.pch))).add("extra", options.extra);
  return text.take();
}

ProgramFields program_fields(const Source& source, const ProgramOptions& options) {
  // The same in every key, and longer than most sources.
  static const std::string probe = Fields().add("probe", probe_templates()).take();
  static const std::string local =
      Fields().add("local", std::to_string(kLocalSchema)).add("host", host_header_texts()).take();
  Fields text;
  text.add("schema", std::to_string(kSchema)).append(probe);
  text.append(request_fields(source, options));
  Fields location;
  location.append(local).add("name", source.name).add("directory", source.directory);
  location.add("include_dirs", options.include_dirs);
  return {text.take(), location.take()};
}

CacheKey cache_key(const ProgramFields& program, const CompileSelection& selection,
                   const CompilerIdentity& compiler, const std::vector<std::string>& toolkits) {
  Fields machine;
  machine.add("nvrtc", compiler.version()).add("builtins", compiler.builtins.to_hex());
  machine.add("library_size", std::to_string(compiler.library_size)).add("toolkits", toolkits);
  return key_of(program.text + program.location + fields_of(selection) + machine.take());
}

CacheKey pack_key(const ProgramFields& program, const CompileSelection& selection) {
  return key_of(program.text + fields_of(selection));
}

}  // namespace kernwright
