// Which free-form options reach the compiler.
#pragma once

#include <string>

namespace kernwright {

/// Throws InvalidArgument for an option that is a field of ProgramOptions, that would make the
/// compiler write files, read files nobody knows of, or give no code; the message says what to do
/// instead. Others are the compiler's own to judge.
void check_extra_option(const std::string& option);

}  // namespace kernwright
