// Looks for parts forbidden by a task, in tokens of the text and of its PTX.
#include "tune/judge/text_rules.h"

#include <cctype>
#include <charconv>
#include <functional>
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
  explicit CodeRules(const Task& task) : task_(task) {}

  std::vector<Refusal> run(std::string_view ptx) {
    try {
      for (sim::ptx::Lexer lexer(ptx); lexer.peek().kind != TokenKind::end;) {
        const Token token = lexer.take();
        if (token.is_dotted("loc")) {
          note_line(lexer);
        } else {
          read(token);
        }
      }
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
    if (token.kind == TokenKind::word) {
      if (token.text.front() == '%') see_register(token.text);
      if (in_prototype_) prototype_.push_back(token.text);
    } else if (token.is_dotted("func")) {
      in_prototype_ = true;
    } else if (in_prototype_ && (token.is(';') || token.is('{'))) {
      const bool has_body = token.is('{');  // then it is a function of the text
      for (const std::string_view name : prototype_) {
        if (!has_body) see_function(name);
      }
      prototype_.clear();
      in_prototype_ = false;
    }
  }

  /// ".loc 1 12 5": the next instructions come from line 12 of file 1, the text.
  void note_line(sim::ptx::Lexer& lexer) {
    int numbers[2] = {0, 0};
    for (int& number : numbers) {
      if (lexer.peek().kind != TokenKind::number) return;
      const std::string_view text = lexer.take().text;
      std::from_chars(text.data(), text.data() + text.size(), number);
    }
    line_ = numbers[0] == 1 ? numbers[1] : 0;
  }

  void see_register(std::string_view word) {
    if (is_clock(word) && !allows("clock")) {
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
  std::vector<std::string_view> prototype_;  ///< its words
  int line_ = 0;
};

void see_mentions(std::string_view text, const Task& task, std::vector<Refusal>& found) {
  for (const HeaderMention& mention : header_mentions(text).mentions) {
    if (!mention.is_data || task.options.headers.count(mention.name) > 0) continue;
    found.push_back({false, format("#embed of {:?}: a judged text reads no files", mention.name),
                     mention.line});
  }
}

/// Names of a text with the line where each stands first.
using Names = std::map<std::string, int, std::less<>>;

void note_names(std::string_view text, int line, Names& names) {
  for (const Token& token : tokenize(text).tokens) {
    if (token.kind == TokenKind::identifier) names.emplace(token.text, line + token.line - 1);
  }
}

/// The names in the text, in its directives and in the values of the task's defines.
Names names_of(const Source& source, const Task& task) {
  Names names;
  note_names(source.text, 1, names);
  for (const Directive& directive : tokenize(source.text).directives) {
    note_names(directive.text.substr(directive.text.find('#') + 1), directive.line, names);
  }
  for (const auto& [name, value] : task.options.defines) note_names(value, 0, names);
  return names;
}

/// Whether names, one behind the other, make up the word, as "##" and joined lines put it together.
bool is_made_of(std::string_view word, const Names& names) {
  std::vector<bool> reached(word.size() + 1);
  reached[0] = true;
  for (std::size_t at = 0; at < word.size(); ++at) {
    for (std::size_t size = 1; reached[at] && at + size <= word.size(); ++size) {
      if (names.contains(word.substr(at, size))) reached[at + size] = true;
    }
  }
  return reached[word.size()];
}

/// The line of the longest name at the beginning of the word.
int line_of(std::string_view word, const Names& names) {
  while (!names.contains(word)) word.remove_suffix(1);
  return names.find(word)->second;
}

}  // namespace

std::vector<Refusal> refused_in_text(const Source& source, const Task& task) {
  std::vector<Refusal> found;
  see_mentions(source.text, task, found);
  const Names names = names_of(source, task);
  for (const char* word : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
    if (!is_made_of(word, names)) continue;
    found.push_back({true,
                     format("{} makes two programs of one text: what is checked would not be what "
                            "is timed",
                            word),
                     line_of(word, names)});
  }
  return found;
}

std::vector<Refusal> refused_in_code(const ObjectCode& ptx, const Task& task) {
  return CodeRules(task).run(ptx.code);
}

}  // namespace kernwright
