// Headers in memory as the compiler is given them.
#pragma once

#include <map>
#include <string>

namespace kernwright {

/// By include name.
using MemoryHeaders = std::map<std::string, std::string>;

/// The same headers with each quoted name of another file in angle brackets: the whole name for a
/// header beside it in memory, the same name for any other. The compiler looks for a quoted name in
/// the current folder of the process; no header in memory lies there. Lines stay lines.
MemoryHeaders without_current_folder(const MemoryHeaders& headers);

/// <name>, or "name" if it contains a '>'.
std::string bracketed(const std::string& name);

}  // namespace kernwright
