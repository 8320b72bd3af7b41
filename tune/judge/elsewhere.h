// One text compiled under several names: whether it is one program.
#pragma once

#include "jit/source/source.h"

#include <string_view>
#include <vector>

namespace kernwright {

/// The same text under other names: those of a program's own file, and of a string in memory.
std::vector<Source> elsewhere(const Source& source);

/// Whether the PTX of a text under two names, both without line numbers, is one program. The names
/// may stand in its data (assertions have them); decisions may not differ.
bool is_one_program(std::string_view here_name, std::string_view here, std::string_view there_name,
                    std::string_view there);

}  // namespace kernwright
