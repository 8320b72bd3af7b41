// Looks for what a task does not allow, in tokens of the text and of its PTX.
#include "tune/judge/text_rules.h"

#include <cctype>
#include <set>
#include <string_view>

#include "base/format.h"
#include "jit/source/header_mentions.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

bool is_name_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

/// Calls `see(word)` for each name of a PTX line outside of strings and comments; names of
/// registers come with their '%'.
template <typename See>
void words_of(std::string_view line, const See& see) {
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '"') {
      i = std::min(line.find('"', i + 1), line.size() - 1) + 1;
      continue;
    }
    if (line.substr(i, 2) == "//") return;
    if (line[i] != '%' && !is_name_part(line[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i++;
    while (i < line.size() && is_name_part(line[i])) ++i;
    see(line.substr(begin, i - begin));
  }
}

bool is_clock(std::string_view word) {
  return word == "%clock" || word == "%clock64" || word == "%clock_hi" || word == "%globaltimer" ||
         word == "%globaltimer_lo" || word == "%globaltimer_hi";
}

bool tells_launches_apart(std::string_view word) {
  // Where cooperative_groups finds the memory that a grid's barrier needs.
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
    for (std::size_t at = 0; at < ptx.size();) {
      const std::size_t end = std::min(ptx.find('\n', at), ptx.size());
      read(ptx.substr(at, end - at));
      at = end + 1;
    }
    return std::move(found_);
  }

 private:
  bool allows(const char* word) const { return task_.allow.count(word) > 0; }

  void read(std::string_view line) {
    note_line(line);
    const bool declares = line.find(".extern") != std::string_view::npos &&
                          line.find(".func") != std::string_view::npos;
    in_extern_ = in_extern_ || declares;
    words_of(line, [&](std::string_view word) {
      if (word.front() == '%') see_register(word);
      if (in_extern_) see_function(word);
    });
    if (in_extern_ && line.find(';') != std::string_view::npos) in_extern_ = false;
  }

  /// ".loc 1 12 5": the lines that follow come from line 12 of file 1, the text.
  void note_line(std::string_view line) {
    const std::size_t at = line.find(".loc");
    if (at == std::string_view::npos) return;
    int numbers[2] = {0, 0};
    std::size_t i = at + 4;
    for (int& number : numbers) {
      while (i < line.size() && line[i] != '\n' &&
             std::isspace(static_cast<unsigned char>(line[i])) != 0) {
        ++i;
      }
      while (i < line.size() && std::isdigit(static_cast<unsigned char>(line[i])) != 0) {
        number = number * 10 + (line[i++] - '0');
      }
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
  bool in_extern_ = false;
  int line_ = 0;
};

void see_mentions(std::string_view text, int offset, const Task& task,
                  std::vector<Refusal>& found) {
  for (const HeaderMention& mention : header_mentions(text).mentions) {
    if (!mention.is_data || task.options.headers.count(mention.name) > 0) continue;
    found.push_back({false, format("#embed of {:?}: a judged text reads no files", mention.name),
                     mention.line + offset});
  }
}

}  // namespace

std::vector<Refusal> refused_in_text(const Source& source, const Task& task) {
  std::vector<Refusal> found;
  see_mentions(source.text, 0, task, found);
  for (const Token& token : tokenize(source.text).tokens) {
    if (token.kind == TokenKind::identifier &&
        (token.text == "__TIME__" || token.text == "__DATE__" || token.text == "__TIMESTAMP__")) {
      found.push_back({true,
                       format("{} makes two programs of one text: what is checked would not be "
                              "what is timed",
                              token.text),
                       token.line});
    }
  }
  return found;
}

std::vector<Refusal> refused_in_code(const ObjectCode& ptx, const Task& task) {
  return CodeRules(task).run(ptx.code);
}

}  // namespace kernwright
