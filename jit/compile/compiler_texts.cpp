// Prepares texts for the compiler.
#include "jit/compile/compiler_texts.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/whole_file.h"
#include "jit/source/header_names.h"
#include "jit/source/host_code.h"
#include "jit/source/host_headers.h"
#include "jit/source/memory_headers.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;

/// Headers of use only to host code, other than those of the C++ library.
bool is_host_only(const IncludeDirective& include) {
  if (is_device_header(include.name)) {
    return include.name == "thrust/host_vector.h" || include.name == "thrust/device_vector.h";
  }
  if (!include.quoted) return true;
  for (const std::string_view stem :
       {"helper_", "cublas", "cudnn", "cufft", "cusparse", "cusolver", "nccl", "nvToolsExt",
        "nvtx3/", "torch/", "ATen/", "c10/", "pybind11/", "mpi.h", "omp.h", "exception.h"}) {
    if (include.name.starts_with(stem)) return include.name != "helper_math.h";
  }
  const bool has_suffix = include.name.find('.') != std::string::npos;
  return !has_suffix;  // "vector", in the wrong brackets
}

class Reader {
 public:
  Reader(const Source& source, const ProgramOptions& options, const IncludeClosure& included)
      : source_(source), options_(options) {
    for (const IncludedFile& file : included.files) result_.files.insert(file.path);
  }

  CompilerTexts run() {
    result_.text = without_byte_order_mark(source_.text);
    result_.name = compiler_name(source_.name);
    for (const auto& [name, text] : options_.headers) {
      result_.headers[name] = without_byte_order_mark(text);
    }
    read_files();
    if (options_.strip_host) strip();
    rename();
    add_host_headers();
    result_.headers = without_current_folder(result_.headers);
    return std::move(result_);
  }

 private:
  void read_files() {
    std::map<std::string, std::string> texts;
    bool is_needed = options_.strip_host;
    for (const std::string& path : result_.files) {
      auto text = read_whole_file(path);
      if (!text) continue;
      std::string plain = without_byte_order_mark(*text);
      is_needed = is_needed || plain.size() != text->size() || compiler_name(path) != path;
      texts[path] = std::move(plain);
    }
    if (is_needed) files_ = std::move(texts);
  }

  void strip() {
    KnownMacros macros;
    // Twice: a macro may use one defined in a later text.
    for (int i = 0; i < 2; ++i) {
      each_text([&](std::string& text) { collect_macros(text, macros); });
    }
    each_text([&](std::string& text) { text = without_host_code(text, macros); });
  }

  template <typename F>
  void each_text(F use) {
    use(result_.text);
    for (auto& [name, text] : result_.headers) use(text);
    for (auto& [path, text] : files_) use(text);
  }

  /// Rewrites each #include so that the compiler finds the intended text.
  void rename() {
    const std::map<std::string, std::string>& given = options_.headers;
    result_.text = with_includes_renamed(result_.text, [&](const IncludeDirective& include) {
      const bool is_file = !source_.directory.empty();
      return respelled(include, meant(include, {}, source_.directory), is_file);
    });
    std::map<std::string, std::string> renamed;
    for (const auto& [name, text] : result_.headers) {
      const auto spell = [&, &own_name = name](const IncludeDirective& include) {
        const std::string found = meant(include, own_name, {});
        return found.empty() ? respelled(include, found, false) : bracketed(found);
      };
      renamed[name] = with_includes_renamed(text, spell);
    }
    for (const auto& [path, text] : files_) {
      const fs::path folder = fs::path(path).parent_path();
      renamed[compiler_name(path)] =
          with_includes_renamed(text, [&](const IncludeDirective& include) {
            const bool is_given = given.contains(include.name);
            return is_given ? std::string() : respelled(include, file_meant(include, folder), true);
          });
    }
    result_.headers = std::move(renamed);
  }

  /// The name, in the include's own quotes or brackets; empty for none. A text without a file has
  /// no folder with links for "name/.." to follow.
  static std::string respelled(const IncludeDirective& include, std::string name, bool is_file) {
    if (name.empty() && !is_file) {
      name = plain_name(include.name);
      if (name == include.name) name.clear();
    }
    if (name.empty()) return name;
    return include.quoted ? "\"" + name + "\"" : "<" + name + ">";
  }

  std::string meant(const IncludeDirective& include, std::string_view includer,
                    const fs::path& folder) const {
    std::string name = header_meant(options_.headers, includer, include);
    return name.empty() ? file_meant(include, folder) : name;
  }

  /// Only for files whose text the compiler gets from memory.
  std::string file_meant(const IncludeDirective& include, const fs::path& folder) const {
    if (files_.empty()) return {};
    const auto known = [&](const fs::path& path) {
      const std::string normal = path.lexically_normal().string();
      return files_.contains(normal) ? compiler_name(normal) : std::string();
    };
    if (include.quoted && !folder.empty()) {
      if (std::string name = known(folder / include.name); !name.empty()) return name;
    }
    for (const std::string& other : options_.include_dirs) {
      if (std::string name = known(fs::path(other) / include.name); !name.empty()) return name;
    }
    return {};
  }

  void add_host_headers() {
    std::vector<std::string> pending;
    const auto look_into = [&](const std::string& text) {
      if (text.find("include") != std::string::npos) pending.push_back(text);
    };
    look_into(result_.text);
    for (const auto& [name, text] : result_.headers) look_into(text);
    for (const std::string& path : result_.files) {
      if (!files_.empty()) break;  // they are among the headers
      if (const auto text = read_whole_file(path)) look_into(*text);
    }
    while (!pending.empty()) {
      const std::string text = std::move(pending.back());
      pending.pop_back();
      for (const IncludeDirective& include : tokenize(text).includes) {
        const std::string name(include.name);
        if (result_.headers.contains(name) || is_file(name)) continue;
        auto own = host_header(name);
        if (!own && options_.strip_host && is_host_only(include))
          own = host_header("cuda_runtime.h");
        if (!own) continue;
        look_into(*own);
        result_.headers[name] = std::move(*own);
      }
    }
  }

  /// Whether a file of the user is included by this name.
  bool is_file(const std::string& name) const {
    const std::string ending = "/" + fs::path(name).lexically_normal().string();
    return std::any_of(result_.files.begin(), result_.files.end(), [&](const std::string& path) {
      return path == name || path.ends_with(ending);
    });
  }

  const Source& source_;
  const ProgramOptions& options_;
  std::map<std::string, std::string> files_;  ///< texts of the user's files, where they are needed
  CompilerTexts result_;
};

}  // namespace

CompilerTexts compiler_texts(const Source& source, const ProgramOptions& options,
                             const IncludeClosure& included) {
  return Reader(source, options, included).run();
}

std::string name_as_given(const std::string& file, const CompilerTexts& texts) {
  std::string found;
  const auto look_at = [&](const std::string& name) {
    const bool is_relative = !fs::path(name).is_absolute();
    if (is_relative && name.size() > found.size() && file.ends_with("/" + name)) found = name;
  };
  look_at(texts.name);
  if (found.empty() && !texts.files.contains(file)) {
    for (const auto& [name, text] : texts.headers) look_at(name);
  }
  return found.empty() ? file : found;
}

std::string compiler_name(std::string name) {
  std::replace(name.begin(), name.end(), '"', kQuoteAlias);
  return name;
}

std::string user_name(std::string name) {
  std::replace(name.begin(), name.end(), kQuoteAlias, '"');
  return name;
}

}  // namespace kernwright
