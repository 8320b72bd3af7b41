// Mangles plain names and reads mangled ones.
#include "jit/signature/variable_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace kernwright {
namespace {

constexpr std::size_t kMaxName = 4096;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$';
}

/// The variable of a mangled name; empty for functions, their contents, and tables of the compiler.
std::string variable_of(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return {};
  std::string name = text.get();
  if (name.find('(') != std::string::npos || name.find(" for ") != std::string::npos) return {};
  // Static variables lie in a namespace named after the file.
  if (name.starts_with("_INTERNAL_")) {
    const auto end = name.find("::");
    name = end == std::string::npos ? std::string() : name.substr(end + 2);
  }
  return name;
}

}  // namespace

std::string lowered_variable(std::string_view qualified) {
  if (qualified.find("::") == std::string_view::npos) return std::string(qualified);
  std::string result = "_ZN";
  while (!qualified.empty()) {
    const auto end = std::min(qualified.find("::"), qualified.size());
    result += std::to_string(end);
    result += qualified.substr(0, end);
    qualified.remove_prefix(std::min(end + 2, qualified.size()));
  }
  return result + "E";
}

bool defines_variable(std::string_view ptx, std::string_view lowered) {
  if (lowered.empty()) return false;
  for (auto at = ptx.find(lowered); at != std::string_view::npos; at = ptx.find(lowered, at + 1)) {
    const auto line = ptx.rfind('\n', at) + 1;  // npos + 1 is 0
    const std::size_t end = at + lowered.size();
    const bool whole = at > 0 && ptx[at - 1] == ' ' && end < ptx.size() && !is_name_char(ptx[end]);
    const std::string_view before = ptx.substr(line, at - line);
    const bool declares = before.find(".global ") != std::string_view::npos ||
                          before.find(".const ") != std::string_view::npos;
    // An address or an initialiser may name it too.
    if (whole && declares && before.find_first_of("=[{,;") == std::string_view::npos) return true;
  }
  return false;
}

std::map<std::string, std::string> mangled_variables(std::string_view code) {
  std::map<std::string, std::string> result;
  for (auto at = code.find("_Z"); at != std::string_view::npos; at = code.find("_Z", at)) {
    std::size_t end = at;
    while (end < code.size() && is_name_char(code[end])) ++end;
    const bool begins = at == 0 || !is_name_char(code[at - 1]);
    if (begins && end - at <= kMaxName) {
      const std::string lowered(code.substr(at, end - at));
      if (std::string name = variable_of(lowered); !name.empty()) {
        result.emplace(std::move(name), lowered);
      }
    }
    at = end;
  }
  return result;
}

std::string readable_variable(const std::string& lowered) {
  const std::string name = lowered.starts_with("_Z") ? variable_of(lowered) : lowered;
  for (const std::string_view others :
       {"$", "__", "cuda::", "cub::", "thrust::", "std::", "cooperative_groups::", "nvcuda::"}) {
    if (name.starts_with(others)) return {};
  }
  return name;
}

std::string without_blanks(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != ' ') result += c;
  }
  return result;
}

}  // namespace kernwright
