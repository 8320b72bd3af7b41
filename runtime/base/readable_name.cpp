// Undoes the mangling of the Itanium C++ ABI, which NVRTC follows.
#include "base/readable_name.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace kernwright {
namespace {

/// The begin of the parameter list at the end of the text; npos when there is none.
std::size_t parameters_at(const std::string& text) {
  if (!text.ends_with(')')) return std::string::npos;
  int depth = 0;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string::npos;
}

}  // namespace

std::string readable_name(const std::string& lowered) {
  if (!lowered.starts_with("_Z")) return lowered;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(lowered.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || text == nullptr) return lowered;
  std::string name = text.get();
  const std::size_t parameters = parameters_at(name);
  if (parameters != std::string::npos) name.resize(parameters);
  // The ABI has the result in the names of templates alone, and a kernel's is always void.
  if (name.starts_with("void ")) name.erase(0, 5);
  return name.empty() ? lowered : name;
}

}  // namespace kernwright
