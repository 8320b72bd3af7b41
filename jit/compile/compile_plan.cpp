// The parts of a compile's first attempt.
#include <array>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "jit/compile/compile_attempt.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

/// Headers in need of things --minimal leaves out; the failed attempt would cost a second.
constexpr std::array<std::string_view, 5> kNotMinimal{"cub/", "thrust/", "cuda/functional",
                                                      "cuda/annotated_ptr", "cudaTypedefs"};

/// Whether --minimal removes a name: cudaError_t, tex2D, surf2Dread, CUtensorMap.
bool is_left_out(std::string_view name) {
  const auto capital = [&](std::size_t at) {
    return name.size() > at && name[at] >= 'A' && name[at] <= 'Z';
  };
  return (name.starts_with("cuda") && capital(4)) || name.starts_with("tex") ||
         name.starts_with("surf") || name.starts_with("CU");
}

/// Mostly, texts of one class either all work with --minimal or none does. The class is NVRTC's
/// version and the names of the includes.
std::string source_class(const LoadedNvrtc& nvrtc, const TokenizedSource& source) {
  std::set<std::string_view> names;
  for (const IncludeDirective& include : source.includes) names.insert(include.name);
  std::string result = nvrtc.version();
  for (const std::string_view name : names) (result += '\n') += name;
  return result;
}

struct Learned {
  std::mutex mutex;
  std::set<std::string> no_minimal;
};

Learned& learned() {
  static Learned& instance = *new Learned;  // kept to the end of the process on purpose
  return instance;
}

constexpr std::size_t kMaxLearned = 4096;

bool may_be_minimal(const LoadedNvrtc& nvrtc, const TokenizedSource& source) {
  for (const Token& token : source.tokens) {
    if (token.kind == TokenKind::identifier && is_left_out(token.text)) return false;
  }
  for (const IncludeDirective& include : source.includes) {
    for (const std::string_view known : kNotMinimal) {
      if (include.name.starts_with(known)) return false;
    }
  }
  if (source.includes.empty()) return true;
  const std::string kind = source_class(nvrtc, source);
  const std::lock_guard lock(learned().mutex);
  return !learned().no_minimal.contains(kind);
}

}  // namespace

CompilePlan first_plan(const LoadedNvrtc& nvrtc, const CompileRequest& request,
                       const TokenizedSource& source) {
  CompilePlan plan;
  plan.default_device = source.includes.empty();
  plan.minimal = request.options.minimal == Tristate::automatic && may_be_minimal(nvrtc, source);
  return plan;
}

void remember_no_minimal(const LoadedNvrtc& nvrtc, const TokenizedSource& source) {
  if (source.includes.empty()) return;
  std::string kind = source_class(nvrtc, source);
  const std::lock_guard lock(learned().mutex);
  if (learned().no_minimal.size() < kMaxLearned) learned().no_minimal.insert(std::move(kind));
}

}  // namespace kernwright
