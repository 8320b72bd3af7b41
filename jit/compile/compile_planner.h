// The plans of a compile's attempts: the first one, and the next after each result.
#pragma once

#include "jit/compile/compile_attempt.h"
#include "jit/compile/compiler.h"
#include "jit/source/source_lexer.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace kernwright {

/// The limit of the kernels and of the variables in a plan.
constexpr std::size_t kMaxPlannedNames = 4096;

/// Plans the attempts of one compile. Not thread-safe.
class CompilePlanner {
 public:
  /// All arguments must outlive the planner.
  CompilePlanner(const LoadedNvrtc& nvrtc, const CompileRequest& request,
                 const CompileDeadline& deadline);

  /// Of the next attempt. asks_more() and learn() change it in place.
  const CompilePlan& plan() const noexcept { return plan_; }
  /// Of the text that the compiler reads.
  const TokenizedSource& tokens() const noexcept { return tokens_; }

  /// After an attempt that compiled: whether the plan now asks for types or kernels missing in its
  /// code.
  bool asks_more(const CompileAttempt& attempt);
  /// After a failed attempt: whether the plan now avoids the failure. Throws NameNotFound for a
  /// kernel that the user asked for.
  bool learn(const CompileAttempt& attempt);
  /// The code of the last attempt, with the number of all attempts and their time in the trace.
  ObjectCode finish(const CompileAttempt& attempt, int attempts, double nvrtc_ms);

 private:
  void add_kernel(const std::string& name, bool required);
  /// Finds possible names of members. Structs without a name may be types of members. If some have
  /// members, the form for such types comes first: it saves attempts.
  void find_members();
  /// The next form to ask in.
  Ask after(Ask ask) const;
  bool asks_in_full() const;
  /// Whether another attempt is needed for the types of the kernels with these names.
  bool ask_in_full(const std::set<std::string>& names);
  /// Whether the code has kernels and variables not visible in the text: made by a macro, from a
  /// header, instances of templates. Host constants are no variables of a module.
  bool ask_for_unseen(const CompileAttempt& attempt);
  /// Whether to ask for the types once more: an attempt with questions failed in the text, one
  /// without them compiled. Another cause (lack of memory, for instance) may be gone.
  bool ask_again();
  /// Asks in another way for the names without an answer, or for all if the compiler does not name
  /// them. False when none is asked any more.
  bool ask_otherwise(const AttemptErrors& errors);
  /// Leaves out names unknown to the compiler. Throws NameNotFound for a required one.
  bool drop(const std::set<std::string>& names, const CompileAttempt& attempt);
  /// All existing names: from the text, or from the compiler if macros and headers may make
  /// kernels.
  std::vector<std::string> known_names() const;
  [[noreturn]] void unknown_name(const std::string& name, const CompileAttempt& attempt) const;

  const LoadedNvrtc& nvrtc_;
  const CompileRequest& request_;
  const CompileDeadline& deadline_;
  const TokenizedSource tokens_;
  CompilePlan plan_;
  Ask first_ask_ = Ask::probe;  ///< of what Ask::type does not do for
  bool minimal_failed_ = false;
  bool blamed_text_ = false;  ///< for an attempt with the probe
  bool asked_for_unseen_ = false;
  bool asked_again_ = false;  ///< with the probe, after one without it compiled
};

}  // namespace kernwright
