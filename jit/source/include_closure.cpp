// Walks from header to header.
#include "jit/source/include_closure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/format.h"
#include "base/regular_file.h"
#include "jit/source/builtin_headers.h"
#include "jit/source/header_mentions.h"
#include "jit/source/header_names.h"
#include "jit/source/host_headers.h"
#include "jit/source/macro_definitions.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;
using Form = HeaderMention::Form;

constexpr std::size_t kMaxFiles = 4000;

/// The position of a text with mentions of headers.
struct Place {
  std::string name;  ///< for messages
  int first_line = 1;
  fs::path folder;  ///< of a file: for quoted names. Empty for a text in memory
  bool is_file = false;
  std::string memory_folder;  ///< of a header in memory: "a" for "a/b.h"
};

bool climbs(const std::string& name) {
  const fs::path path(name);
  return std::find(path.begin(), path.end(), "..") != path.end();
}

/// One spelling for each file, links being followed as the system does: "link/.." is not ".".
fs::path one_spelling(const fs::path& path) {
  fs::path normal = path.lexically_normal();
  std::error_code error;
  if (!climbs(path.string()) || fs::equivalent(path, normal, error)) return normal;
  const fs::path folder = fs::canonical(path.parent_path(), error);
  return error ? path : folder / path.filename();
}

class Walker {
 public:
  Walker(const Source& source, const ProgramOptions& options)
      : source_(source),
        options_(options),
        sees_files_(!options.include_dirs.empty() || !source.directory.empty()),
        includes_(may_mention_headers(source.text)) {}

  IncludeClosure run() {
    read_defines();
    visit_memory(false);
    // A found file may define macros with names of other files.
    for (std::size_t followed = 0; read_count_ < pending_.size() || followed < macros_known();) {
      if (read_count_ < pending_.size()) {
        read(PendingFile(pending_[read_count_++]));
      } else {
        followed = macros_known();
        follow_macros();
      }
    }
    if (wraps_probe_) visit_memory(true);
    while (read_count_ < pending_.size()) read(PendingFile(pending_[read_count_++]));
    std::sort(result_.files.begin(), result_.files.end(),
              [](const IncludedFile& a, const IncludedFile& b) { return a.path < b.path; });
    return std::move(result_);
  }

 private:
  struct PendingFile {
    std::string path;
    bool is_data = false;
  };
  struct PendingMacro {
    HeaderMention mention;
    const Place* place = nullptr;
  };

  std::size_t macros_known() const { return macros_.size() + macro_mentions_.size(); }

  void read(const PendingFile& file) {
    const RegularFile read = read_regular_file(file.path, kMaxSourceBytes);
    if (read.is_too_large) {
      throw InvalidArgument(format("the header {} cannot be used: {}", file.path, read.reason));
    }
    if (!read.reason.empty()) {
      result_.is_complete = false;
      return;
    }
    const std::string& text = read.bytes;
    result_.files.push_back({file.path, sha256(text)});
    if (!file.is_data) visit(text, {file.path, 1, fs::path(file.path).parent_path(), true, {}});
  }

  void visit_memory(bool is_wrapped) {
    visit(source_.text,
          {source_.name, source_.first_line, source_.directory, !source_.directory.empty(), {}},
          is_wrapped);
    for (const auto& [name, text] : options_.headers) {
      if (builtin_asks_for_arch_specific(name, text)) continue;  // counts where it is included
      visit(text, {name, 1, {}, false, fs::path(name).parent_path().string()}, is_wrapped);
    }
  }

  void visit(const std::string& text, const Place& place, bool is_wrapped = false) {
    result_.asks_for_arch_specific = result_.asks_for_arch_specific || asks_for_arch_specific(text);
    if (is_wrapped || may_mention_headers(text) ||
        (includes_ && text.find("define") != std::string::npos)) {
      take(header_mentions(text, is_wrapped), place);
    }
  }

  void take(const HeaderMentions& found, const Place& place) {
    macros_.insert(found.macros.begin(), found.macros.end());
    wraps_probe_ = wraps_probe_ || found.wraps_probe;
    makes_strings_ = makes_strings_ || found.makes_strings;
    if (wraps_probe_ && makes_strings_) {
      HeaderMention unknown;
      unknown.is_probe = true;
      not_known(unknown, place);
    }
    for (const HeaderMention& mention : found.mentions) {
      if (mention.form == Form::macro) {
        macro_mentions_.push_back({mention, &places_.emplace_back(place)});
      } else if (mention.form == Form::expression) {
        not_known(mention, place);
      } else {
        follow(mention, place);
      }
    }
  }

  /// Macros of the options; their values are no text of a file.
  void read_defines() {
    std::string text;
    for (const auto& [name, value] : macro_definitions(options_)) {
      text += "#define " + name + " " + value + "\n";
    }
    if (!text.empty()) take(header_mentions(text), {"the defines", 1, {}, sees_files_, {}});
  }

  void follow_macros() {
    for (std::size_t i = 0; i < macro_mentions_.size(); ++i) {
      std::set<std::string> seen;
      follow_macro(macro_mentions_[i].mention.name, PendingMacro(macro_mentions_[i]), seen);
    }
    if (!wraps_probe_) return;
    const Place place{source_.name, 1, source_.directory, !source_.directory.empty(), {}};
    for (const auto& [name, body] : macros_) {
      if (body.empty() || (body[0] != '"' && body[0] != '<')) continue;
      HeaderMention probe;
      probe.form = body[0] == '"' ? Form::quoted : Form::angled;
      probe.name = body.substr(1, body.size() - 2);
      probe.is_probe = true;
      follow(probe, place);
    }
  }

  void follow_macro(const std::string& name, const PendingMacro& pending,
                    std::set<std::string>& seen) {
    if (!seen.insert(name).second) return;
    const auto [begin, end] = macros_.equal_range(name);
    if (begin == end && !pending.mention.is_probe) result_.needs_cuda_headers = true;
    for (auto it = begin; it != end; ++it) {
      const std::string body = it->second;
      if (body.empty()) {
        if (!pending.mention.is_probe) not_known(pending.mention, *pending.place);
      } else if (body[0] != '"' && body[0] != '<') {
        follow_macro(body, pending, seen);
      } else {
        HeaderMention mention = pending.mention;
        mention.form = body[0] == '"' ? Form::quoted : Form::angled;
        mention.name = body.substr(1, body.size() - 2);
        // The compiler would look for it in the current folder.
        const bool is_astray = mention.form == Form::quoted && !pending.place->is_file &&
                               pending.place->name != source_.name && !mention.is_probe &&
                               !options_.headers.contains(mention.name);
        is_astray ? not_known(mention, *pending.place) : follow(mention, *pending.place);
      }
    }
  }

  /// A header whose name the preprocessor makes of macros. The user gets no information about its
  /// file, and the result is not kept: a text could name any file of the machine.
  void not_known(const HeaderMention& mention, const Place& place) {
    result_.needs_cuda_headers = true;
    if (place.is_file) {
      result_.is_complete = result_.is_complete && !sees_files_;
      return;
    }
    refuse(mention, place, "has a name that macros put together",
           "write the name, or define one macro as \"name\" or <name>");
  }

  [[noreturn]] static void refuse(const HeaderMention& mention, const Place& place,
                                  std::string_view what, std::string_view advice) {
    throw InvalidArgument(format("{}:{}: {} {} is refused: {}", place.name,
                                 mention.line + place.first_line - 1,
                                 mention.is_probe  ? "a __has_include that"
                                 : mention.is_data ? "an #embed that"
                                                   : "an #include that",
                                 what, advice));
  }

  void follow(HeaderMention mention, const Place& place) {
    const std::string spelled = mention.name;
    if (!place.is_file && !options_.headers.contains(spelled)) mention.name = plain_name(spelled);
    const std::string& name = mention.name;
    if (const auto own = options_.headers.find(name); own != options_.headers.end()) {
      const std::optional<bool> asks = builtin_asks_for_arch_specific(name, own->second);
      result_.asks_for_arch_specific = result_.asks_for_arch_specific || asks.value_or(false);
      if (!mention.is_next) return;
    } else if (is_beside_in_memory(mention, place)) {
      return;
    }
    const bool is_own = !place.is_file || place.name == source_.name;
    if (is_own && name.starts_with('/')) {
      refuse(mention, place, format("names the absolute path \"{}\"", name),
             "name the file's folder in include_dirs");
    }
    if (!place.is_file && (climbs(name) || leads_elsewhere(spelled, name))) {
      refuse(mention, place, format("leaves the folders of headers by \"..\" (\"{}\")", spelled),
             climbing_advice(mention, place));
    }
    const bool is_found = find_file(mention, place.folder);
    const bool is_own_text = host_header(name) && !host_header_needs_library(name);
    if (!is_found && !mention.is_probe && !is_own_text) result_.needs_cuda_headers = true;
  }

  /// Whether a link in some folder makes of "link/../name" another file than "name". Not every
  /// spelling of an #include is given to the compiler in its plain form.
  bool leads_elsewhere(const std::string& spelled, const std::string& plain) const {
    if (!climbs(spelled)) return false;
    return std::any_of(options_.include_dirs.begin(), options_.include_dirs.end(),
                       [&](const fs::path& folder) {
                         std::error_code error;
                         return fs::exists(folder / spelled, error) &&
                                !fs::equivalent(folder / spelled, folder / plain, error);
                       });
  }

  static std::string climbing_advice(const HeaderMention& mention, const Place& place) {
    const std::string beside =
        (fs::path(place.memory_folder) / mention.name).lexically_normal().string();
    const bool may_be_given = mention.form == Form::quoted && !climbs(beside);
    return format("{}name the file's folder in include_dirs",
                  may_be_given ? format("give headers the text of \"{}\", or ", beside) : "");
  }

  /// Whether another header names this header in memory as a neighbouring file.
  bool is_beside_in_memory(const HeaderMention& mention, const Place& place) const {
    const bool is_source = place.name == source_.name;
    if ((place.is_file && !is_source) || mention.form != Form::quoted) return false;
    const fs::path joined = fs::path(place.memory_folder) / mention.name;
    return options_.headers.contains(joined.lexically_normal().string());
  }

  bool find_file(const HeaderMention& mention, const fs::path& folder) {
    bool is_found =
        mention.form == Form::quoted && !folder.empty() && remember(folder / mention.name, mention);
    for (const std::string& other : options_.include_dirs) {
      if (is_found && !mention.is_next) break;
      is_found = remember(fs::path(other) / mention.name, mention) || is_found;
    }
    return is_found;
  }

  bool remember(const fs::path& path, const HeaderMention& mention) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
      throw InvalidArgument(
          format("the header \"{}\" is no regular file: {}", mention.name, path.string()));
    }
    if (!fs::is_regular_file(status)) return false;
    const std::string spelling = one_spelling(path).string();
    if (pending_.size() >= kMaxFiles) {
      result_.is_complete = false;
    } else if (known_.insert(spelling).second) {
      pending_.push_back({spelling, mention.is_data});
    }
    return true;
  }

  const Source& source_;
  const ProgramOptions& options_;
  const bool sees_files_;
  const bool includes_;  ///< the source names something: then macros of all texts count
  std::vector<PendingFile> pending_;
  std::size_t read_count_ = 0;  ///< of those
  std::vector<PendingMacro> macro_mentions_;
  std::deque<Place> places_;  ///< of those; stay where they are
  std::set<std::string> known_;
  MacroBodies macros_;
  bool wraps_probe_ = false, makes_strings_ = false;
  IncludeClosure result_;
};

}  // namespace

IncludeClosure include_closure(const Source& source, const ProgramOptions& options) {
  return Walker(source, options).run();
}

bool asks_for_arch_specific(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 6> kMarks{
      "wgmma.",   "setmaxnreg",          "tensormap.replace",
      "tcgen05.", "__CUDA_ARCH_FEAT_SM", "__CUDA_ARCH_SPECIFIC__"};
  return std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) {
    return memmem(text.data(), text.size(), mark.data(), mark.size()) != nullptr;
  });
}

}  // namespace kernwright
