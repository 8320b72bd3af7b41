// The words of preprocessor lines about other files: includes, __has_include, macros with names.
#pragma once

#include "jit/source/source_lexer.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// A place with the name of a header, or with a test whether there is one.
struct HeaderMention {
  enum class Form {
    quoted,      ///< "name"
    angled,      ///< <name>
    macro,       ///< the macro `name` stands for it
    expression,  ///< anything else, which only the preprocessor can evaluate
  };
  Form form = Form::quoted;
  std::string name;       ///< empty for an expression
  bool is_probe = false;  ///< no #include or #embed but __has_include or what may stand for it
  bool is_next = false;   ///< #include_next: any of the folders may be meant
  bool is_data = false;   ///< #embed: the file is no text
  int line = 1;
};

/// The body of a macro as far as it can name a header: "name" and <name> with their quotes or
/// brackets, or the name of another macro; empty for any other body and for a macro with
/// parameters.
using MacroBodies = std::multimap<std::string, std::string, std::less<>>;

struct HeaderMentions {
  std::vector<HeaderMention> mentions;
  MacroBodies macros;
  bool wraps_probe = false;    ///< a macro stands for __has_include, or one may be put together
  bool makes_strings = false;  ///< a macro turns its arguments into text
};

/// Reads the directives of a text as all versions of C++ do: with and without trigraphs, with and
/// without blanks behind the backslash between two lines. A mention for one version counts. Where
/// another text has a macro for __has_include (`is_wrapped`) every "name" and "(<name>" may be its
/// operand.
HeaderMentions header_mentions(std::string_view text, bool is_wrapped = false);

/// False if the text's bytes alone show that header_mentions() finds nothing.
bool may_mention_headers(std::string_view text) noexcept;

}  // namespace kernwright
