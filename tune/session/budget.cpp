// The limits of a session.
#include "tune/session/budget.h"

#include "base/errors.h"
#include "base/format.h"

#include <cmath>

namespace kernwright {
namespace {

void check_positive(const char* name, const std::optional<double>& limit) {
  if (limit && !(*limit > 0 && std::isfinite(*limit)))
    throw InvalidArgument(
        format("a budget of {} {}: use a number above 0, or none for no limit", *limit, name));
}

}  // namespace

void Budget::validate() const {
  check_positive("seconds", seconds);
  check_positive("gpu_seconds", gpu_seconds);
  if (evaluations && *evaluations == 0)
    throw InvalidArgument("a budget of 0 evaluations: use a number above 0");
  if (target && std::isnan(*target)) throw InvalidArgument("a budget's target cannot be NaN");
}

const char* session_end_name(SessionEnd end) noexcept {
  switch (end) {
    case SessionEnd::complete:
      return "complete";
    case SessionEnd::budget:
      return "budget";
    case SessionEnd::target:
      return "target";
    case SessionEnd::cancelled:
      return "cancelled";
  }
  return "";
}

std::optional<SessionEnd> reached_limit(const Budget& budget, const Spending& spent) {
  if (budget.target && spent.best && *spent.best <= *budget.target) return SessionEnd::target;
  if (budget.seconds && spent.seconds >= *budget.seconds) return SessionEnd::budget;
  if (budget.gpu_seconds && spent.gpu_seconds >= *budget.gpu_seconds) return SessionEnd::budget;
  return std::nullopt;
}

}  // namespace kernwright
