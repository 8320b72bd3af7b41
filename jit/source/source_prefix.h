// The #include lines at the beginning of a text.
#pragma once

#include "jit/source/source_lexer.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace kernwright {

/// The part of a text replaced by a precompiled header.
struct SourcePrefix {
  std::size_t bytes = 0;  ///< ends behind a line break
  int lines = 0;
};

/// From the beginning to the line of the last #include before the first declaration, and to the
/// #endif of the conditions around this line. Nothing if there is none, or if the end is uncertain.
/// `tokens` belong to `text`.
std::optional<SourcePrefix> source_prefix(std::string_view text, const TokenizedSource& tokens);

}  // namespace kernwright
