// Splits the parameter list of a function declaration into types and names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/source/source_lexer.h"

namespace kernwright {

struct ScannedParameter {
  std::string type;  ///< tokens without the name and the default argument, joined by spaces
  std::string name;  ///< "" when there is none; "values..." for a pack
};

/// `tokens` are those between the parentheses. "()" and "(void)" give none. Never throws for odd
/// text.
std::vector<ScannedParameter> scan_parameters(std::span<const Token> tokens);

}  // namespace kernwright
