// The program and the launch of a configuration, by expressions.
#pragma once

#include "tune/expression.h"
#include "tune/session/kernel_backend.h"
#include "tune/space.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

/// Texts of expressions over the parameters and the problem's values, one an extent, at most three:
/// {.grid = {"-(-n // (BLOCK * VEC))"}, .block = {"BLOCK"}}.
struct LaunchExpressions {
  std::vector<std::string> grid;
  std::vector<std::string> block;
  std::string shared_bytes = "0";
};

/// How C++ text spells the value as a define: 1 for true, the text itself of a string.
std::string define_text(const Value& value);

/// A KernelBackendOptions::plan: each parameter becomes a define of its name. Immutable; `space`
/// must outlive it.
class LaunchRule {
 public:
  /// Throws InvalidArgument for invalid expressions and for another number of extents, NameNotFound
  /// for a name of neither a parameter nor a problem value of the space.
  LaunchRule(const Space& space, Program program, std::string name,
             const LaunchExpressions& expressions);

  /// Throws InvalidArgument where an expression gives no whole number of at least 1 (0 for
  /// shared_bytes).
  KernelPlan operator()(std::uint64_t index) const;

 private:
  const Space* space_;
  Program program_;
  std::string name_;
  std::vector<Expression> grid_, block_, shared_bytes_;
};

}  // namespace kernwright
