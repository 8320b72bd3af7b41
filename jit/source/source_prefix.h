// The #include lines with which a text begins.
#pragma once

#include "jit/source/source_lexer.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace kernwright {

/// The part of a text that a precompiled header stands for.
struct SourcePrefix {
  std::size_t bytes = 0;  ///< ends behind a line break
  int lines = 0;
};

/// From the beginning to the line of the last #include in front of the first declaration, and to
/// the #endif of the conditions that this line stands in. Nothing where there is none, or where the
/// end cannot be told. `tokens` are those of `text`.
std::optional<SourcePrefix> source_prefix(std::string_view text, const TokenizedSource& tokens);

}  // namespace kernwright
