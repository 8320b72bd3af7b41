// The free-form options accepted for the compiler.
#pragma once

#include <string>

namespace kernwright {

/// Throws InvalidArgument for an option with a field in ProgramOptions, and for one that would make
/// the compiler write files, read unknown files, or give no code; the message has the remedy. The
/// compiler itself judges all others.
void check_extra_option(const std::string& option);

}  // namespace kernwright
