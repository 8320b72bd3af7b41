// The reasons of admission.
#include "schedule/admission.h"

#include "base/byte_text.h"
#include "base/format.h"

#include <algorithm>

namespace kernwright::schedule {

Verdict judge_request(Amount asked, const Budget& budget) {
  const Amount capacity = budget.capacity();
  if (asked.memory > capacity.memory) {
    return {
        Verdict::Kind::refuse,
        format("{} of memory can never fit: the scheduler has {} in all; ask for at most {} bytes",
               describe_bytes(asked.memory), describe_bytes(capacity.memory), capacity.memory)};
  }
  if (asked.share > capacity.share) {
    return {Verdict::Kind::refuse,
            format("a share of {:g} can never fit: the scheduler has {:g} of the device's time",
                   asked.share / double{kWholeShare}, capacity.share / double{kWholeShare})};
  }
  if (budget.fits(asked)) return {};
  return {Verdict::Kind::queue, describe_shortage(asked, budget, {})};
}

std::string describe_shortage(Amount asked, const Budget& budget, std::vector<Holder> holders) {
  constexpr std::size_t kNamed = 4;
  const Amount free = budget.free();
  const Amount capacity = budget.capacity();
  std::string text;
  const bool short_memory = asked.memory > free.memory;
  if (short_memory) {
    text = format("{} of memory asked, {} free of {}", describe_bytes(asked.memory),
                  describe_bytes(free.memory), describe_bytes(capacity.memory));
  }
  if (asked.share > free.share) {
    text += format("{}a share of {:g} asked, {:g} free of {:g}", text.empty() ? "" : "; ",
                   asked.share / double{kWholeShare}, free.share / double{kWholeShare},
                   capacity.share / double{kWholeShare});
  }
  const auto size = [&](const Holder& holder) {
    return short_memory ? holder.amount.memory : std::uint64_t{holder.amount.share};
  };
  std::erase_if(holders, [&](const Holder& holder) { return size(holder) == 0; });
  std::stable_sort(holders.begin(), holders.end(),
                   [&](const Holder& a, const Holder& b) { return size(a) > size(b); });
  for (std::size_t i = 0; i < std::min(holders.size(), kNamed); ++i) {
    text += format("{}{} ({})", i == 0 ? "; held by " : ", ", holders[i].label,
                   short_memory ? describe_bytes(holders[i].amount.memory)
                                : format("{:g}", holders[i].amount.share / double{kWholeShare}));
  }
  if (holders.size() > kNamed) text += format(" and {} more", holders.size() - kNamed);
  if (const std::uint64_t bytes = short_memory ? budget.held_elsewhere() : 0; bytes != 0) {
    text += format("; other schedulers of the device hold {}", describe_bytes(bytes));
  }
  return text;
}

}  // namespace kernwright::schedule
