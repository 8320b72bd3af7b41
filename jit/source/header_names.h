// The text meant by an #include line, and texts with other names in their #include lines.
#pragma once

#include "jit/source/source_lexer.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace kernwright {

/// The name among `headers` (texts by include name) meant by an #include within `includer`, as on a
/// disk: a quoted name begins in the folder of `includer`, and "." and ".." are followed.
/// `includer` is the name of a header, empty for the source. Empty if none is meant.
std::string header_meant(const std::map<std::string, std::string>& headers,
                         std::string_view includer, const IncludeDirective& include);

/// The name without "." and "..": "cuda/std/array" for "cuda/std/../std/array". A name that leaves
/// its starting folder stays as it is.
std::string plain_name(const std::string& name);

/// A new spelling, with its quotes or brackets, for a name in an #include, an #embed or a
/// __has_include(); empty keeps the old one.
using Renaming = std::function<std::string(const IncludeDirective&)>;

/// `text` with the names in its directives replaced. Its lines stay where they are.
std::string with_includes_renamed(std::string text, const Renaming& rename);

}  // namespace kernwright
