// Looks for parts forbidden by a task, in tokens of the text and of its PTX.
#include "tune/judge/text_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string_view>

#include "base/format.h"
#include "jit/source/header_mentions.h"
#include "jit/source/source_lexer.h"
#include "sim/ptx/parse/lexer.h"
#include "sim/ptx/parse/parser.h"

namespace kernwright {
namespace {

bool is_clock(std::string_view word) {
  return word == "%clock" || word == "%clock64" || word == "%clock_hi" || word == "%globaltimer" ||
         word == "%globaltimer_lo" || word == "%globaltimer_hi";
}

bool tells_launches_apart(std::string_view word) {
  // cooperative_groups finds the memory for a grid's barrier through these.
  if (word == "%envreg1" || word == "%envreg2") return false;
  if (word == "%gridid" || word == "%current_graph_exec") return true;
  for (const std::string_view stem : {"%envreg", "%pm"}) {
    if (word.starts_with(stem) && word.size() > stem.size() &&
        std::isdigit(static_cast<unsigned char>(word[stem.size()])) != 0) {
      return true;
    }
  }
  return false;
}

class CodeRules {
 public:
  CodeRules(const Task& task, bool& waits_by_clock)
      : task_(task), waits_by_clock_(waits_by_clock) {}

  std::vector<Refusal> run(std::string_view ptx) {
    find_files(ptx);
    try {
      for (sim::ptx::Lexer lexer(ptx); lexer.peek().kind != TokenKind::end;) {
        const Token token = lexer.take();
        if (token.is_dotted("loc")) {
          note_place(lexer);
        } else {
          read(token);
        }
      }
      see_functions();
    } catch (const sim::ptx::PtxError& error) {
      refuse(false, "", format("its PTX cannot be read: {}", error.what()));
    }
    return std::move(found_);
  }

 private:
  using Token = sim::ptx::Token;
  using TokenKind = sim::ptx::TokenKind;

  bool allows(const char* word) const { return task_.allow.count(word) > 0; }

  void read(const Token& token) {
    if (token.kind == TokenKind::word && token.text.front() == '%') see_register(token.text);
    if (token.is_dotted("func")) {
      in_prototype_ = true;
      name_ = {};
      depth_ = 0;
    } else if (in_prototype_) {
      depth_ += (token.is('(') ? 1 : 0) - (token.is(')') ? 1 : 0);
      if (token.kind == TokenKind::word && depth_ == 0 && name_.empty()) name_ = token.text;
      if (token.is(';') || token.is('{')) {
        in_prototype_ = false;
        if (token.is('{')) {
          defined_.insert(name_);
        } else {
          declared_.emplace_back(name_, line_);
        }
      }
    }
  }

  /// Functions that the text declares and does not have: they are the driver's.
  void see_functions() {
    for (const auto& [name, line] : declared_) {
      line_ = line;
      if (defined_.count(name) == 0) see_function(name);
    }
  }

  /// The numbers of libcu++'s files: `.file 10 ".../cuda/std/__thread/threading_support.h"`.
  void find_files(std::string_view ptx) {
    constexpr std::string_view kFile = ".file";
    for (std::size_t begin = 0, end = 0; begin < ptx.size(); begin = end + 1) {
      end = std::min(ptx.find('\n', begin), ptx.size());
      const std::string_view line = ptx.substr(begin, end - begin);
      const auto word = line.find_first_not_of(" \t");
      if (word == std::string_view::npos || !line.substr(word).starts_with(kFile)) continue;
      const auto digit = line.find_first_not_of(" \t", word + kFile.size());
      if (digit == std::string_view::npos) continue;
      int number = 0;
      std::from_chars(line.data() + digit, line.data() + line.size(), number);
      if (line.ends_with("cuda/std/__thread/threading_support.h\"")) waits_.insert(number);
      for (const std::string_view folder : {"cuda/std/__chrono/", "cuda/std/__cuda/chrono.h"}) {
        if (line.find(folder) != std::string_view::npos) chronos_.insert(number);
      }
    }
  }

  static bool take_number(sim::ptx::Lexer& lexer, int& number) {
    if (lexer.peek().kind != TokenKind::number) return false;
    const std::string_view text = lexer.take().text;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return true;
  }

  /// ".loc 1 12 5": the next instructions come from line 12 of file 1, the text. With
  /// ", function_name $L, inlined_at 3 40 7" they are inlined there, and the place of the function
  /// itself came right before.
  void note_place(sim::ptx::Lexer& lexer) {
    int file = 0, line = 0, column = 0, caller = 0;
    if (!take_number(lexer, file) || !take_number(lexer, line)) return;
    take_number(lexer, column);
    line_ = file == 1 ? line : 0;
    bool is_inlined = false;
    while (lexer.peek().is(',')) {
      lexer.take();
      if (lexer.take().text == "inlined_at") {
        is_inlined = take_number(lexer, caller);
        take_number(lexer, line);
        take_number(lexer, column);
      } else if (lexer.peek().kind == TokenKind::word) {
        lexer.take();  // the name's label, perhaps with an offset
        if (lexer.peek().is('+')) lexer.take(), take_number(lexer, column);
      }
    }
    const bool is_chrono = chronos_.contains(file);
    if (file != 1 && waits_.contains(file)) {
      place_ = Place::wait;
    } else if (place_ == Place::wait && is_inlined && waits_.contains(caller) && is_chrono) {
      place_ = Place::wait_clock;
    } else if (place_ != Place::wait_clock || !is_inlined || !chronos_.contains(caller)) {
      place_ = Place::other;
    }
  }

  void see_register(std::string_view word) {
    if (word == "%globaltimer" && place_ == Place::wait_clock) {
      waits_by_clock_ = true;
    } else if (is_clock(word) && !allows("clock")) {
      refuse(true, word,
             format("it reads {}, which tells a timed launch from others; a task may allow it by "
                    "the word \"clock\"",
                    word));
    } else if (tells_launches_apart(word)) {
      refuse(true, word, format("it reads {}, which tells one launch from another", word));
    }
  }

  void see_function(std::string_view name) {
    if (name == "malloc" || name == "free") {
      if (!allows("malloc")) {
        refuse(false, name,
               format("it calls {}() on the device, which the task does not allow (\"malloc\")",
                      name));
      }
    } else if (name == "vprintf") {
      if (!allows("printf")) {
        refuse(false, name, "it prints, which the task does not allow (\"printf\")");
      }
    } else if (name.starts_with("cuda")) {
      refuse(false, name,
             format("it calls {}() of the device runtime: a judged kernel launches no other one",
                    name));
    }
  }

  void refuse(bool cheating, std::string_view what, std::string message) {
    if (seen_.insert(std::string(what)).second) {
      found_.push_back({cheating, std::move(message), line_});
    }
  }

  const Task& task_;
  std::vector<Refusal> found_;
  std::set<std::string> seen_;
  bool in_prototype_ = false;
  int depth_ = 0;          ///< of parentheses in it
  std::string_view name_;  ///< of its function
  std::set<std::string_view> defined_;
  std::vector<std::pair<std::string_view, int>> declared_;  ///< with their lines
  int line_ = 0;
  bool& waits_by_clock_;
  std::set<int> waits_, chronos_;  ///< files with libcu++'s waits and with its clocks
  /// Where the code comes from: a wait, a clock that a wait itself asks, anything else.
  enum class Place : std::uint8_t { other, wait, wait_clock };
  Place place_ = Place::other;
};

void see_mentions(std::string_view text, const Task& task, std::vector<Refusal>& found) {
  for (const HeaderMention& mention : header_mentions(text).mentions) {
    if (!mention.is_data || task.options.headers.count(mention.name) > 0) continue;
    found.push_back({false, format("#embed of {:?}: a judged text reads no files", mention.name),
                     mention.line});
  }
}

/// The names of a text with the line where each stands first.
struct Names {
  std::map<std::string, int, std::less<>> lines;
  bool pastes = false;     ///< macros make names of parts
  bool sees_file = false;  ///< some name has the name of the file inside
  bool has(std::string_view name) const { return lines.find(name) != lines.end(); }
};

bool has_any(std::string_view name, std::initializer_list<std::string_view> words) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

/// libcu++'s macro that pastes "__" in front of a name.
constexpr std::string_view kPastesUnderscores = "_CCCL_CHECK_BUILTIN";

/// Macros of CUDA's headers that paste have such names; a text may define its own by "##".
bool sounds_like_pasting(std::string_view name) {
  return name == kPastesUnderscores || has_any(name, {"cat", "paste", "join", "glue", "splice"});
}

/// Names that have the name of the file inside, and macros of CUDA's headers that have them: those
/// of assertions, of CUB's and Thrust's messages.
bool sounds_like_a_file(std::string_view name) {
  if (name == "static_assert") return false;
  return name.find("FILE") != std::string_view::npos ||
         has_any(name,
                 {"assert", "verify", "abort", "debug", "source_location", "return_if", "ret_if"});
}

void note_names(std::string_view text, int line, Names& names) {
  names.pastes = names.pastes || text.find("##") != std::string_view::npos ||
                 text.find("%:%:") != std::string_view::npos ||
                 text.find("?\?=?\?=") != std::string_view::npos;
  for (const Token& token : tokenize(text).tokens) {
    if (token.kind != TokenKind::identifier) continue;
    names.lines.emplace(token.text, line + token.line - 1);
    names.pastes = names.pastes || sounds_like_pasting(token.text);
    names.sees_file = names.sees_file || sounds_like_a_file(token.text);
    if (token.text == kPastesUnderscores) names.lines.emplace("__", line + token.line - 1);
  }
}

/// Without the breaks of continued lines.
std::string joined(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      const auto end = text.find_first_not_of(" \t\r\f\v", i + 1);
      if (end != std::string_view::npos && text[end] == '\n') {
        i = end;
        continue;
      }
    }
    result += text[i];
  }
  return result;
}

/// The names in the text, in its directives and in the values of the task's defines.
Names collect_names(const Source& source, const Task& task) {
  Names names;
  note_names(source.text, 1, names);
  const bool is_continued = source.text.find('\\') != std::string::npos;
  if (is_continued) note_names(joined(source.text), 1, names);
  for (const Directive& directive : tokenize(source.text).directives) {
    note_names(directive.text.substr(directive.text.find('#') + 1), directive.line, names);
  }
  for (const auto& [name, value] : task.options.defines) note_names(value, 0, names);
  return names;
}

/// Whether the word is a name, or names, one behind the other, make it up where macros paste.
bool has_or_makes(std::string_view word, const Names& names) {
  if (names.has(word)) return true;
  if (!names.pastes) return false;
  std::vector<bool> reached(word.size() + 1);
  reached[0] = true;
  for (std::size_t at = 0; at < word.size(); ++at) {
    for (std::size_t size = 1; reached[at] && at + size <= word.size(); ++size) {
      if (names.has(word.substr(at, size))) reached[at + size] = true;
    }
  }
  return reached[word.size()];
}

/// The line of the longest name at the beginning of the word.
int find_line(std::string_view word, const Names& names) {
  while (!names.has(word)) word.remove_suffix(1);
  return names.lines.find(word)->second;
}

bool is_line_directive(std::string_view directive) {
  const auto at = directive.find_first_not_of(" \t\f\v", 1);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = directive.substr(at);
  return rest.starts_with("line") || std::isdigit(static_cast<unsigned char>(rest[0])) != 0;
}

}  // namespace

std::vector<Refusal> refused_in_text(const Source& source, const Task& task) {
  std::vector<Refusal> found;
  if (source.text.size() > kMostJudgedBytes) {
    found.push_back({false,
                     format("the text has {} bytes; a judged one has at most {}",
                            source.text.size(), kMostJudgedBytes),
                     0});
    return found;
  }
  see_mentions(source.text, task, found);
  const Names names = collect_names(source, task);
  for (const char* word : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
    if (!has_or_makes(word, names)) continue;
    found.push_back({true,
                     format("{} makes two programs of one text: what is checked would not be what "
                            "is timed",
                            word),
                     find_line(word, names)});
  }
  return found;
}

bool may_see_its_name(const Source& source, const Task& task) {
  const Names names = collect_names(source, task);
  if (names.sees_file) return true;
  // Parts of names that macros paste.
  constexpr std::array kWords{"__FILE__",
                              "__BASE_FILE__",
                              "__FILE_NAME__",
                              "__builtin_FILE",
                              "_CCCL_BUILTIN_FILE",
                              "source_location",
                              "assert",
                              "_CCCL_ASSERT",
                              "_CCCL_VERIFY",
                              "CubDebug",
                              "__builtin_source_location"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return has_or_makes(word, names); });
}

std::string without_line_directives(std::string text) {
  const TokenizedSource read = tokenize(text);
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (const Directive& directive : read.directives) {
    if (is_line_directive(directive.text)) parts.emplace_back(directive.begin, directive.end);
  }
  for (const auto& [begin, end] : parts) {
    for (std::size_t at = begin; at < end; ++at) {
      if (text[at] != '\n') text[at] = ' ';
    }
  }
  return text;
}

bool has_no_places(const ObjectCode& ptx) {
  for (sim::ptx::Lexer lexer(ptx.code); lexer.peek().kind != sim::ptx::TokenKind::end;) {
    const sim::ptx::Token token = lexer.take();
    if (token.is_dotted("loc") || token.is_dotted("file")) return false;
  }
  return true;
}

std::vector<Refusal> refused_in_code(const ObjectCode& ptx, const Task& task,
                                     bool& waits_by_clock) {
  return CodeRules(task, waits_by_clock).run(ptx.code);
}

}  // namespace kernwright
