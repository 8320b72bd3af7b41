// The rules for races between accesses.
#include "sim/check/race/rules.h"

#include <algorithm>
#include <iterator>

namespace kernwright::sim {
namespace {

/// Largest number of separately kept accesses of one word, if the program orders parts of blocks.
constexpr std::size_t kMostApart = 64;

}  // namespace

Conduct RaceRules::get_conduct(Shadow shadow) const {
  Conduct conduct;
  conduct.strong = is_strong(shadow);
  conduct.is_volatile = is_volatile_write(shadow);
  if (const CheckedOp* const op = place_.op_at(get_site(shadow)); op != nullptr) {
    conduct.reads = op->kind == CheckKind::load;
    conduct.swaps = op->swaps;
    conduct.reach = op->reach;
  }
  return conduct;
}

bool RaceRules::is_load(Shadow write) const { return is_strong(write) && get_conduct(write).reads; }

bool RaceRules::conflicts(Shadow write, const WordAccess& access) const {
  const Conduct other = get_conduct(write);
  if (other.reads && access.touch.mode == AccessKind::read) return false;
  if (other.swaps && access.info.kind == CheckKind::load) return false;
  if (other.reads && access.info.swaps) return false;
  if (!other.strong || !access.is_strong()) return true;
  const std::uint32_t owner = place_.owner(write);
  if (std::min(other.reach, access.info.reach) < place_.reach_to(owner)) return true;
  const bool same_warp = owner == place_.block && get_thread(write) / kLanes == access.warp.index;
  return same_warp && (other.is_volatile || access.info.is_volatile);
}

bool RaceRules::observes(Shadow later, Shadow earlier) const {
  if (is_under_way(later) || is_under_way(earlier)) return false;
  const CheckedOp* const reader = place_.op_at(get_site(later));
  const CheckedOp* const writer = place_.op_at(get_site(earlier));
  if (reader == nullptr || writer == nullptr || !reader->observes) return false;
  // An atom.cas that swaps nothing leaves no value.
  if (writer->kind != CheckKind::atomic || writer->swaps) return false;
  const std::uint32_t one = place_.owner(later), other = place_.owner(earlier);
  const Reach needed = one == other          ? Reach::block
                       : one == place_.block ? place_.reach_to(other)
                                             : Reach::device;
  return std::min(reader->reach, writer->reach) >= needed;
}

bool RaceRules::covers(Shadow by, Shadow shadow) const {
  const Conduct tag = get_conduct(by), other = get_conduct(shadow);
  if (tag.reads && !other.reads) return false;
  if (!tag.strong) return true;
  return other.strong && tag.reach <= other.reach && (tag.is_volatile || !other.is_volatile) &&
         (!tag.swaps || other.swaps);
}

/// Whether everything after both `a` and `b` is also after `shadow`, an earlier access. For
/// programs with only barriers of whole blocks and meetings of warps.
bool RaceRules::stand_for(Shadow a, Shadow b, Shadow shadow) const {
  const std::uint32_t left = place_.owner(a), right = place_.owner(b), block = place_.owner(shadow);
  if (left != right) return place_.get_cluster(left) != place_.get_cluster(right);
  if (left != block) return false;
  if (((a ^ b) & kWarpMask) != 0) return true;
  return ((a ^ shadow) & kWarpMask) == 0 && ((a ^ b) & kThreadMask) != 0;
}

/// Drops accesses covered by two later ones that stand for them. `across`: of other blocks too.
template <typename F>
void RaceRules::leave_out(std::vector<Shadow>& list, Shadow now, bool across, F covers) const {
  std::vector<Shadow> kept{now};  // the newest first
  const auto is_told = [&](Shadow shadow) {
    for (std::size_t a = 0; a < kept.size(); ++a) {
      if (!covers(kept[a], shadow) || (!across && place_.owner(kept[a]) != place_.owner(shadow)))
        continue;
      for (std::size_t b = 0; b < a; ++b) {
        if (covers(kept[b], shadow) && (across || place_.owner(kept[b]) == place_.owner(shadow)) &&
            stand_for(kept[a], kept[b], shadow))
          return true;
      }
    }
    return false;
  };
  for (std::size_t i = list.size(); i-- > 0;) {
    if (!is_told(list[i])) kept.push_back(list[i]);
  }
  list.assign(kept.rbegin(), std::prev(kept.rend()));
}

void RaceRules::make_room(std::vector<Shadow>& list, Shadow now) const {
  keep_apart(list, now, [](Shadow, Shadow) { return true; });
}

/// Keeps the more informative ones of many within blocks; of still too many, those of all blocks.
template <typename F>
void RaceRules::keep_apart(std::vector<Shadow>& list, Shadow now, F covers) const {
  if (list.size() <= kMostApart) return;
  leave_out(list, now, false, covers);
  if (list.size() > kMostApart / 2) leave_out(list, now, true, covers);
}

void RaceRules::thin(const WordAccess& access, std::vector<Shadow>& list, Shadow now) const {
  std::erase_if(list, [&](Shadow shadow) {
    return order_.is_forgotten(shadow, access.global) ||
           (covers(now, shadow) &&
            order_.is_write_ordered(shadow, access.warp, access.lane, access.global));
  });
  const auto rule = [&](Shadow by, Shadow shadow) { return covers(by, shadow); };
  const bool exact = !parts_ && !place_.launch.program.has_volatile;
  if (exact && list.size() >= 2) return leave_out(list, now, true, rule);
  keep_apart(list, now, rule);
}

Shadow RaceRules::last_write(const HiddenAccesses& all, const Shadow& write) const {
  if (write == 0 || is_under_way(write) || !is_load(write)) return write;
  if (!is_contended(write)) return 0;
  const auto found = all.find(&write);
  if (found == all.end()) return 0;
  const auto last = std::find_if(found->second.rbegin(), found->second.rend(),
                                 [&](Shadow shadow) { return !is_load(shadow); });
  return last == found->second.rend() ? 0 : *last;
}

}  // namespace kernwright::sim
