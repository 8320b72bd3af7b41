// Cuts NVRTC's log into messages.
#include "jit/compile/diagnostics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/format.h"

namespace kernwright {
namespace {

constexpr std::string_view kPragma = "#pragma nv_mangled_name ";
constexpr std::string_view kAtEnd = "At end of source: ";
constexpr std::ptrdiff_t kMaxShown = 10;
constexpr std::size_t kIndent = 2;  ///< blanks before the source line that a message quotes

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

struct SeverityWord {
  std::string_view word;
  Severity severity;
};

/// Removes "error: ", "warning #177-D: " and the like from the front of `text`.
std::optional<Severity> take_severity(std::string_view& text) {
  static constexpr std::array kWords{SeverityWord{"catastrophic error", Severity::error},
                                     SeverityWord{"internal error", Severity::error},
                                     SeverityWord{"fatal", Severity::error},
                                     SeverityWord{"error", Severity::error},
                                     SeverityWord{"Error", Severity::error},
                                     SeverityWord{"warning", Severity::warning},
                                     SeverityWord{"remark", Severity::remark},
                                     SeverityWord{"note", Severity::note},
                                     SeverityWord{"info", Severity::note}};
  for (const auto& [word, severity] : kWords) {
    if (!text.starts_with(word)) continue;
    auto rest = text.substr(word.size());
    const auto colon = rest.find(':');
    const std::string_view between = trimmed(rest.substr(0, colon));
    const bool number = between.starts_with("#") && between.find(' ') == std::string_view::npos;
    if (colon == std::string_view::npos || (!between.empty() && !number)) continue;
    text = trimmed(rest.substr(colon + 1));
    return severity;
  }
  return std::nullopt;
}

/// "file(12): error: text": the place may itself contain parentheses and colons.
std::optional<Diagnostic> source_header(std::string_view line) {
  for (auto close = line.find("): "); close != std::string_view::npos;
       close = line.find("): ", close + 1)) {
    auto digits = close;
    while (digits > 0 && line[digits - 1] >= '0' && line[digits - 1] <= '9') --digits;
    const auto count = close - digits;
    if (count == 0 || count > 9 || digits < 2 || line[digits - 1] != '(') continue;
    std::string_view rest = line.substr(close + 3);
    const auto severity = take_severity(rest);
    if (!severity) continue;
    Diagnostic result;
    result.severity = *severity;
    result.file = std::string(line.substr(0, digits - 1));
    for (auto i = digits; i < close; ++i) result.line = result.line * 10 + (line[i] - '0');
    result.message = std::string(rest);
    return result;
  }
  return std::nullopt;
}

/// "ptxas error   : text", "nvrtc: error: text", "ptxas application ptx input, line 23; error   :
/// text".
std::optional<Diagnostic> tool_header(std::string_view line) {
  constexpr std::array<std::string_view, 3> kTools{"ptxas", "nvrtc", "nvvm"};
  const bool known = std::any_of(kTools.begin(), kTools.end(),
                                 [&](std::string_view tool) { return line.starts_with(tool); });
  if (!known) return std::nullopt;
  for (const std::string_view mark : {"; ", ": ", " "}) {
    const auto at = line.find(mark);
    if (at == std::string_view::npos) continue;
    std::string_view rest = line.substr(at + mark.size());
    if (const auto severity = take_severity(rest)) {
      Diagnostic result;
      result.severity = *severity;
      result.message = format("{}: {}", line.substr(0, at), rest);
      return result;
    }
  }
  return std::nullopt;
}

/// The line in "ptxas application ptx input, line 23; ...".
int ptx_line_of(std::string_view message) {
  constexpr std::string_view kMark = "ptx input, line ";
  const auto at = message.find(kMark);
  int line = 0;
  if (at != std::string_view::npos) {
    message.remove_prefix(at + kMark.size());
    std::from_chars(message.data(), message.data() + message.size(), line);
  }
  return line;
}

/// The closing line of ptxas after any error.
bool is_last_word(const LogMessage& message) {
  return message.diagnostic.message.find("Ptx assembly aborted due to errors") != std::string::npos;
}

bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

bool is_caret_line(std::string_view line) { return trimmed(line) == "^"; }

/// Lines after a header: continued text, the quoted source line with its caret.
class MessageReader {
 public:
  explicit MessageReader(std::string_view log) : log_(log) {}

  std::vector<LogMessage> run() {
    while (!log_.empty()) {
      const auto end = log_.find('\n');
      line(log_.substr(0, end));
      log_.remove_prefix(end == std::string_view::npos ? log_.size() : end + 1);
    }
    continue_message();
    const bool has_cause = std::any_of(messages_.begin(), messages_.end(), [](const LogMessage& m) {
      return m.diagnostic.severity == Severity::error && !is_last_word(m);
    });
    if (has_cause) std::erase_if(messages_, is_last_word);
    return std::move(messages_);
  }

 private:
  void line(std::string_view text) {
    auto header = source_header(text);
    bool at_end = false;
    if (!header) header = tool_header(text);
    if (!header && text.starts_with(kAtEnd)) {
      std::string_view rest = text.substr(kAtEnd.size());
      if (const auto severity = take_severity(rest)) {
        header = Diagnostic{*severity, std::string(rest), {}, 0, 0, {}, {}};
        at_end = true;
      }
    }
    if (header) {
      continue_message();
      messages_.push_back({std::move(*header), {}, at_end, ptx_line_of(text)});
      is_open_ = true;
    } else if (trimmed(text).empty()) {
      continue_message();
      is_open_ = false;
    } else if (is_open_ && text.starts_with("  ")) {
      detail(text);
    }
  }

  void detail(std::string_view text) {
    LogMessage& message = messages_.back();
    if (is_caret_line(text) && !quoted_.empty()) {
      show_caret(message.diagnostic, quoted_.substr(kIndent), text.substr(kIndent));
      quoted_ = {};
      return;
    }
    if (const auto at = text.find(kPragma); at != std::string_view::npos) {
      message.name_expression = std::string(trimmed(text.substr(at + kPragma.size())));
    }
    continue_message();
    quoted_ = text;
  }

  /// The compiler counts bytes, a person characters.
  static void show_caret(Diagnostic& diagnostic, std::string_view line, std::string_view caret) {
    const auto bytes = caret.find('^');
    std::string place;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (i >= line.size() || !is_continuation_byte(line[i])) place += caret[i];
    }
    diagnostic.column = static_cast<int>(place.size() + 1);
    diagnostic.caret = format("{}\n{}^", line, place);
  }

  /// A line without a caret below it was no source: "argument types are: (...)", "detected during".
  void continue_message() {
    if (quoted_.empty()) return;
    messages_.back().diagnostic.message += "\n" + std::string(trimmed(quoted_));
    quoted_ = {};
  }

  std::string_view log_;
  std::string_view quoted_;
  bool is_open_ = false;
  std::vector<LogMessage> messages_;
};

}  // namespace

std::vector<LogMessage> parse_compile_log(std::string_view log) { return MessageReader(log).run(); }

void place_at_end(std::vector<LogMessage>& messages, const std::string& name,
                  std::string_view text) {
  const auto last = std::min(text.find_last_not_of(" \t\r\n\f\v"), text.size());
  const auto line =
      std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(last), '\n');
  for (LogMessage& message : messages) {
    if (!message.at_end) continue;
    message.diagnostic.file = name;
    message.diagnostic.line = static_cast<int>(line) + 1;
  }
}

namespace {

/// Adds `by` to N in each `at line N` of the file. Without a file's name, `is_in_file` decides: the
/// message is about its own file.
std::string shifted_references(std::string_view text, bool is_in_file, std::string_view file,
                               int by) {
  constexpr std::string_view kMark = "at line ";
  std::string result;
  for (auto at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark)) {
    result += text.substr(0, at + kMark.size());
    text.remove_prefix(at + kMark.size());
    int line = 0;
    const auto* const end = std::from_chars(text.data(), text.data() + text.size(), line).ptr;
    const auto digits = static_cast<std::size_t>(end - text.data());
    const std::string_view rest = text.substr(digits);
    const bool is_other = rest.starts_with(" of \"");
    const bool counts = is_other ? rest.starts_with(format(" of \"{}\"", file)) : is_in_file;
    if (digits > 0) result += std::to_string(counts ? line + by : line);
    text = rest;
  }
  return result.append(text);
}

}  // namespace

void shift_lines(std::vector<Diagnostic>& diagnostics, std::string_view file, int first_line) {
  const int by = first_line - 1;
  if (by == 0) return;
  for (Diagnostic& diagnostic : diagnostics) {
    const bool is_in_file = diagnostic.file == file;
    if (is_in_file && diagnostic.line > 0) diagnostic.line += by;
    diagnostic.message = shifted_references(diagnostic.message, is_in_file, file, by);
  }
}

std::string shifted_log(std::string_view log, std::string_view file, int first_line) {
  const int by = first_line - 1;
  if (by == 0) return std::string(log);
  std::string result;
  bool is_in_file = false;
  while (!log.empty()) {
    const auto end = std::min(log.find('\n'), log.size() - 1) + 1;
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(end);
    const auto header = source_header(line);
    if (header) is_in_file = header->file == file;
    if (header && is_in_file) {
      const std::string place = format("{}({})", file, header->line);
      const std::string_view rest = line.substr(std::min(place.size(), line.size()));
      result += format("{}({})", file, header->line + by);
      result += shifted_references(rest, is_in_file, file, by);
    } else if (!header && is_caret_line(log.substr(0, log.find('\n')))) {
      result += line;  // of the source
    } else {
      result += shifted_references(line, is_in_file, file, by);
    }
  }
  return result;
}

std::string summarize(const std::vector<Diagnostic>& diagnostics, const std::string& source_name,
                      std::string_view log) {
  std::vector<const Diagnostic*> errors;
  for (const Diagnostic& d : diagnostics) {
    if (d.severity == Severity::error) errors.push_back(&d);
  }
  if (errors.empty()) {
    return format("{} did not compile; the compiler said:\n{}", source_name, log);
  }
  // An unknown type makes the compiler stumble over the whole declaration first: say the cause.
  const Diagnostic& first = *errors.front();
  const auto cause = std::find_if(errors.begin(), errors.end(), [&](const Diagnostic* d) {
    return d->file == first.file && d->line == first.line && d->message.starts_with("identifier ");
  });
  if (cause != errors.end()) std::rotate(errors.begin(), cause, cause + 1);
  const auto count = static_cast<std::ptrdiff_t>(errors.size());
  std::string text = source_name + " did not compile:\n";
  std::set<std::string> hints;  // each is shown once
  for (std::ptrdiff_t i = 0; i < std::min(count, kMaxShown); ++i) {
    Diagnostic shown = *errors[static_cast<std::size_t>(i)];
    if (!shown.hint.empty() && !hints.insert(shown.hint).second) shown.hint.clear();
    text += shown.to_string() + "\n";
  }
  return text + format("({} error{}{}; the whole log is kept with this error)", count,
                       count == 1 ? "" : "s",
                       count > kMaxShown ? format(", of which {} are shown", kMaxShown) : "");
}

}  // namespace kernwright
