// Names inside one function: registers, variables and labels of nested scopes.
#pragma once

#include "sim/ptx/ast.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernwright::sim::ptx {

/// The meaning of a name in a function body.
struct LocalName {
  enum class Kind : std::uint8_t { reg, variable } kind = Kind::reg;
  std::uint32_t index = 0;  ///< into Function::registers or Function::variables
  std::uint8_t parts = 1;   ///< of a vector register: so many from `index` on
};

/// An operand with a label defined later.
struct PendingLabel {
  std::uint32_t instruction =
      0;                      ///< index into Function::body; kNoInstruction: a .branchtargets entry
  std::uint32_t operand = 0;  ///< operand index, or index into branch_targets of label `owner`
  std::uint32_t owner = 0;
  std::string_view name;
  std::int32_t line = 0;
};
inline constexpr std::uint32_t kNoInstruction = ~std::uint32_t{0};

/// The stack of scopes of the function being parsed. Throws nothing; false means a name is taken.
class ScopeStack {
 public:
  void push() { scopes_.emplace_back(); }
  /// Leaves the innermost scope; its waits move outwards. Gives back the waits settled by its own
  /// labels through `settle(pending, label)`.
  template <typename Settle>
  void pop(Settle&& settle);
  std::size_t depth() const noexcept { return scopes_.size(); }

  bool declare(std::string_view name, LocalName what);
  /// `prefix<count>`: names prefix0 .. prefix(count-1), `parts` registers each from `first` on.
  bool declare_range(std::string_view prefix, std::uint32_t count, std::uint32_t first,
                     std::uint8_t parts);
  bool declare_label(std::string_view name, std::uint32_t label);

  std::optional<LocalName> find(std::string_view name) const;
  void wait_for(const PendingLabel& pending) { scopes_.back().pending.push_back(pending); }
  /// Operands with undefined labels; empty when all is well.
  const std::vector<PendingLabel>& unsettled() const noexcept { return unsettled_; }

 private:
  struct Range {
    std::uint32_t count = 0, first = 0;
    std::uint8_t parts = 1;
  };
  struct Scope {
    std::unordered_map<std::string_view, LocalName> names;
    std::unordered_map<std::string_view, Range> ranges;
    std::unordered_map<std::string_view, std::uint32_t> labels;
    std::vector<PendingLabel> pending;
  };
  static std::optional<LocalName> find_in(const Scope& scope, std::string_view name);

  std::vector<Scope> scopes_;
  std::vector<PendingLabel> unsettled_;
};

template <typename Settle>
void ScopeStack::pop(Settle&& settle) {
  Scope inner = std::move(scopes_.back());
  scopes_.pop_back();
  std::vector<PendingLabel>& outer = scopes_.empty() ? unsettled_ : scopes_.back().pending;
  for (const PendingLabel& pending : inner.pending) {
    const auto found = inner.labels.find(pending.name);
    if (found != inner.labels.end()) {
      settle(pending, found->second);
    } else {
      outer.push_back(pending);
    }
  }
}

}  // namespace kernwright::sim::ptx
