// Whether a task may begin now, has to wait, or can never begin; and why.
#pragma once

#include "schedule/accounts/budget.h"
#include "schedule/task.h"

#include <string>
#include <utility>
#include <vector>

namespace kernwright::schedule {

struct Verdict {
  enum class Kind : std::uint8_t { admit, queue, refuse };
  Kind kind = Kind::admit;
  std::string reason;  ///< empty when admitted
};

/// The amount of an admitted task, for messages.
struct Holder {
  std::string label;
  Amount amount;
};

/// Compares a request with the budget. A request that can never fit is refused; the reason names
/// what would fit.
Verdict judge_request(Amount asked, const Budget& budget);

/// "8 GiB of memory asked, 3 GiB free of 80 GiB; held by a (40 GiB), b (37 GiB)"
std::string describe_shortage(Amount asked, const Budget& budget, std::vector<Holder> holders);

}  // namespace kernwright::schedule
