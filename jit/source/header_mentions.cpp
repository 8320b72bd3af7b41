// Reads directives for the names of headers.
#include "jit/source/header_mentions.h"

#include <algorithm>
#include <array>
#include <optional>

namespace kernwright {
namespace {

using Form = HeaderMention::Form;

constexpr std::string_view kProbe = "__has_include";
constexpr std::string_view kEmbedProbe = "__has_embed";

bool is_space_in_line(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space_in_line(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space_in_line(text.back())) text.remove_suffix(1);
  return text;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

/// The identifier at the beginning; may be empty.
std::string_view leading_word(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_word);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

bool is_identifier(std::string_view text) {
  return !text.empty() && leading_word(text) == text && !(text[0] >= '0' && text[0] <= '9');
}

/// The name with its quotes or brackets at the beginning, empty without one.
std::string_view leading_name(std::string_view text) {
  if (text.empty() || (text[0] != '"' && text[0] != '<')) return {};
  // No name of a file is longer. Without the limit many brackets would cost quadratic time.
  const auto end = text.substr(0, 4096).find(text[0] == '"' ? '"' : '>', 1);
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

HeaderMention named(std::string_view name, int line) {
  HeaderMention mention;
  mention.form = name[0] == '"' ? Form::quoted : Form::angled;
  mention.name = name.substr(1, name.size() - 2);
  mention.line = line;
  return mention;
}

/// __has_include, __has_embed, and macros of libraries for them, by their names.
bool is_probe(std::string_view word) {
  if (word.size() < kEmbedProbe.size()) return false;
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower.find("has_include") != std::string::npos ||
         lower.find("has_embed") != std::string::npos;
}

/// Whether a word can be the first part of a __has_include joined by a macro.
bool may_begin_probe(std::string_view word) {
  return word.size() >= 2 && word.size() < kProbe.size() &&
         (kProbe.starts_with(word) || kEmbedProbe.starts_with(word));
}

class Reader {
 public:
  explicit Reader(bool is_wrapped) : is_wrapped_(is_wrapped) {}

  void read(std::string_view text) {
    const TokenizedSource source = tokenize(text);
    for (const Directive& directive : source.directives) {
      std::string_view rest = trimmed(std::string_view(directive.text).substr(1));
      const std::string_view word = leading_word(rest);
      rest = trimmed(rest.substr(word.size()));
      line_ = directive.line;
      if (word == "include" || word == "include_next" || word == "import" || word == "embed") {
        include(word, rest);
      } else if (word == "define") {
        define(rest);
      } else if (word == "if" || word == "elif") {
        condition(rest);
      }
    }
    for (const Token& token : source.tokens) {
      line_ = token.line;
      has_part_ = has_part_ || may_begin_probe(token.text);
      if (is_probe(token.text)) operand(token.text, behind(text, token.text));
    }
    result_.wraps_probe = result_.wraps_probe || (pastes_ && has_part_);
    if (is_wrapped_ || result_.wraps_probe) suspect(text, source.tokens);
  }

  HeaderMentions take() { return std::move(result_); }

 private:
  static std::string_view behind(std::string_view text, std::string_view part) {
    return text.substr(static_cast<std::size_t>(part.data() + part.size() - text.data()));
  }

  /// The compiler evaluates __has_include anywhere in a text, also through a macro: every possible
  /// operand counts as one.
  void suspect(std::string_view text, const std::vector<Token>& tokens) {
    for (const Token& token : tokens) {
      line_ = token.line;
      std::string_view name;
      if (token.kind == TokenKind::string) name = leading_name(token.text);
      if (token.text == "(") name = leading_name(trimmed(behind(text, token.text)));
      if (name.find('\n') == std::string_view::npos && name.size() > 2) probe(named(name, line_));
    }
  }

  void include(std::string_view word, std::string_view operand) {
    HeaderMention mention;
    // Nothing, or a quote without its end, is an error of the text.
    if (operand.empty() || operand == "<" || (operand[0] == '"' && leading_name(operand).empty()))
      return;
    if (const auto name = leading_name(operand); !name.empty()) {
      mention = named(name, line_);
    } else if (is_identifier(operand)) {
      mention.form = Form::macro;
      mention.name = operand;
    } else {
      mention.form = Form::expression;
    }
    mention.line = line_;
    mention.is_next = word == "include_next";
    mention.is_data = word == "embed";
    result_.mentions.push_back(std::move(mention));
  }

  void define(std::string_view rest) {
    const std::string name(leading_word(rest));
    rest.remove_prefix(name.size());
    const bool has_parameters = rest.starts_with('(');
    const std::string_view body = trimmed(rest);
    const bool is_literal = !body.empty() && leading_name(body) == body;
    const bool is_name = !has_parameters && (is_literal || is_identifier(body));
    result_.macros.emplace(name, is_name ? body : std::string_view());
    if (name != kProbe && name != kEmbedProbe) {
      const bool wraps = body.find(kProbe) != std::string_view::npos ||
                         body.find(kEmbedProbe) != std::string_view::npos;
      result_.wraps_probe = result_.wraps_probe || wraps;
      if (wraps) probes_of(body, has_parameters);
    }
    if (!has_parameters) return note_parts(body);
    for (const std::string_view hash : {"#", "%:"}) {
      for (auto at = body.find(hash); at != std::string_view::npos; at = body.find(hash, at)) {
        at += hash.size();
        const bool pastes = body.substr(at).starts_with(hash);
        (pastes ? pastes_ : result_.makes_strings) = true;
        if (pastes) at += hash.size();
      }
    }
    note_parts(body);
  }

  /// A macro's body may ask by itself. With parameters only its literal names are certain.
  void probes_of(std::string_view body, bool has_parameters) {
    for (std::string_view rest = body; !rest.empty();) {
      const std::string_view word = leading_word(rest);
      rest.remove_prefix(std::max<std::size_t>(word.size(), 1));
      if (word != kProbe && word != kEmbedProbe) continue;
      const std::string_view within =
          trimmed(rest).substr(std::min<std::size_t>(trimmed(rest).size(), 1));
      const bool is_sure = trimmed(rest).starts_with('(') && !leading_name(trimmed(within)).empty();
      if (is_sure || !has_parameters) operand(word, rest);
    }
  }

  void note_parts(std::string_view text) {
    while (!text.empty()) {
      const std::string_view word = leading_word(text);
      has_part_ = has_part_ || may_begin_probe(word);
      text.remove_prefix(std::max<std::size_t>(word.size(), 1));
    }
  }

  /// Every name in quotes or brackets in an #if may reach __has_include through a macro.
  void condition(std::string_view text) {
    note_parts(text);
    bool follows_parenthesis = false;
    while (!text.empty()) {
      const std::string_view name =
          text[0] == '"' || follows_parenthesis ? leading_name(text) : std::string_view();
      const std::string_view word = name.empty() ? leading_word(text) : name;
      if (!name.empty()) {
        probe(named(name, line_));
      } else if (is_probe(word)) {
        operand(word, text.substr(word.size()));
      }
      follows_parenthesis = text[0] == '(' || (follows_parenthesis && is_space_in_line(text[0]));
      text.remove_prefix(std::max<std::size_t>(word.size(), 1));
    }
  }

  /// The text within the parentheses of __has_include.
  void operand(std::string_view word_before, std::string_view text) {
    text = trimmed(text.substr(0, 4096));
    if (!text.starts_with('(')) return;  // defined(__has_include)
    text = trimmed(text.substr(1));
    if (const auto name = leading_name(text); !name.empty()) return probe(named(name, line_));
    const std::string_view word = leading_word(text);
    HeaderMention mention;
    mention.form = Form::expression;
    if (is_identifier(word) && trimmed(text.substr(word.size())).starts_with(')')) {
      mention.form = Form::macro;
      mention.name = word;
    } else if (word_before != kProbe && word_before != kEmbedProbe) {
      return;  // a name that looks like one of those macros
    }
    mention.line = line_;
    probe(std::move(mention));
  }

  void probe(HeaderMention mention) {
    mention.is_probe = true;
    result_.mentions.push_back(std::move(mention));
  }

  const bool is_wrapped_;
  HeaderMentions result_;
  int line_ = 1;
  bool pastes_ = false;
  bool has_part_ = false;
};

/// The text as C++14 reads it, and C++23: trigraphs replaced, lines joined.
std::string joined_lines(std::string_view text) {
  constexpr std::string_view kFrom = "=/'()!<>-";
  constexpr std::string_view kTo = "#\\^[]|{}~";
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto which = text.substr(i).starts_with("??") && i + 2 < text.size()
                           ? kFrom.find(text[i + 2])
                           : std::string_view::npos;
    plain += which == std::string_view::npos ? text[i] : kTo[which];
    if (which != std::string_view::npos) i += 2;
  }
  std::string result;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '\\') {
      const auto end = plain.find_first_not_of(" \t\r\f\v", i + 1);
      if (end != std::string::npos && plain[end] == '\n') {
        i = end;
        continue;
      }
    }
    result += plain[i];
  }
  return result;
}

bool has_joined_lines(std::string_view text) {
  if (text.find("?\?/") != std::string_view::npos || text.find("?\?=") != std::string_view::npos) {
    return true;
  }
  for (auto at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 1)) {
    const auto end = text.find_first_not_of(" \t\r\f\v", at + 1);
    if (end != std::string_view::npos && text[end] == '\n') return true;
  }
  return false;
}

}  // namespace

bool may_mention_headers(std::string_view text) noexcept {
  constexpr std::array<std::string_view, 5> kSigns{"include", "import", "embed", "##", "%:%:"};
  const auto is_there = [&](std::string_view sign) {
    return text.find(sign) != std::string_view::npos;
  };
  return std::any_of(kSigns.begin(), kSigns.end(), is_there) || has_joined_lines(text);
}

HeaderMentions header_mentions(std::string_view text, bool is_wrapped) {
  Reader reader(is_wrapped);
  reader.read(text);
  if (has_joined_lines(text)) reader.read(joined_lines(text));
  return reader.take();
}

}  // namespace kernwright
