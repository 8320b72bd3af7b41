// Headers in memory as the compiler is given them.
#pragma once

#include <map>
#include <string>

namespace kernwright {

/// By the name that is included.
using MemoryHeaders = std::map<std::string, std::string>;

/// The same headers in which each quoted name of another file is one in angle brackets: of a header
/// beside it in memory the whole name, of any other the same. The compiler looks for a quoted name
/// in the current folder of the process, in which no header in memory lies. Lines stay lines.
MemoryHeaders without_current_folder(const MemoryHeaders& headers);

/// <name>, or "name" where that has a '>'.
std::string bracketed(const std::string& name);

}  // namespace kernwright
