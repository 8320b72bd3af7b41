// Walks from #include line to #include line.
#include "jit/cache/include_closure.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>

#include "base/errors.h"
#include "base/format.h"
#include "base/whole_file.h"
#include "jit/compile/target.h"
#include "jit/source/header_names.h"
#include "jit/source/host_headers.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFiles = 4000;

std::optional<std::string> read_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  return read_whole_file(path.string());
}

class Walker {
 public:
  Walker(const Source& source, const ProgramOptions& options)
      : source_(source), options_(options) {}

  IncludeClosure run() {
    visit(source_.text, source_.directory, {}, true);
    for (const auto& [name, text] : options_.headers) visit(text, {}, name, false);
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const std::string path = pending_[i];
      if (const auto text = read_file(path)) {
        result_.files.push_back({path, sha256(*text)});
        visit(*text, fs::path(path).parent_path(), {}, false);
      } else {
        result_.is_complete = false;
      }
    }
    std::sort(result_.files.begin(), result_.files.end(),
              [](const IncludedFile& a, const IncludedFile& b) { return a.path < b.path; });
    return std::move(result_);
  }

 private:
  /// `header`: the name of a text in memory, by which it includes others.
  void visit(const std::string& text, const fs::path& folder, const std::string& header,
             bool is_source) {
    result_.asks_for_arch_specific = result_.asks_for_arch_specific || asks_for_arch_specific(text);
    if (text.find("include") == std::string::npos) return;
    const TokenizedSource tokens = tokenize(text);
    const bool sees_files = !options_.include_dirs.empty() || !source_.directory.empty();
    if (tokens.has_computed_include) {
      result_.is_complete = result_.is_complete && !sees_files;
      result_.needs_cuda_headers = true;
    }
    for (const std::string_view name : tokens.probed) find_file(std::string(name), folder);
    for (const IncludeDirective& include : tokens.includes) {
      const std::string name(include.name);
      if (is_source && fs::path(name).is_absolute()) {
        throw InvalidArgument(
            format("{}:{}: #include of the absolute path \"{}\" is refused: name its folder in "
                   "include_dirs",
                   source_.name, include.line + source_.first_line - 1, name));
      }
      const bool is_file = find_file(name, include.quoted ? folder : fs::path());
      const bool is_known = is_file || !header_meant(options_.headers, header, include).empty() ||
                            (host_header(name) && !host_header_needs_library(name));
      if (!is_known) result_.needs_cuda_headers = true;
    }
  }

  bool find_file(const std::string& name, const fs::path& folder) {
    if (!folder.empty() && remember(folder / name)) return true;
    return std::any_of(options_.include_dirs.begin(), options_.include_dirs.end(),
                       [&](const std::string& other) { return remember(fs::path(other) / name); });
  }

  bool remember(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return false;
    const std::string normal = path.lexically_normal().string();
    if (pending_.size() >= kMaxFiles) {
      result_.is_complete = false;
    } else if (known_.insert(normal).second) {
      pending_.push_back(normal);
    }
    return true;
  }

  const Source& source_;
  const ProgramOptions& options_;
  std::vector<std::string> pending_;
  std::set<std::string> known_;
  IncludeClosure result_;
};

}  // namespace

IncludeClosure include_closure(const Source& source, const ProgramOptions& options) {
  return Walker(source, options).run();
}

}  // namespace kernwright
