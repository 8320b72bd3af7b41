// The race check on random programs with bulk copies beside a plain definition of races: copies of
// thread 0 are in progress until a thread waits.
#include "unit/sim/check/race/race_pairs.h"
#include "unit/sim/device/hopper_runner.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

constexpr unsigned kBytes = 4096;  ///< of shared memory, and of global memory
constexpr int kNever = 1 << 20;

enum class What : std::uint8_t {
  read,
  write,
  load,        ///< of thread 0 to shared memory, told to an mbarrier of its own
  wait,        ///< for the load of step `number`
  store,       ///< of thread 0 to global memory, in a group of its own
  wait_group,  ///< of all stores but the `number` last
  wait_read,   ///< the same for their sources
  proxy_fence,
  barrier,
  warp_barrier,
};

/// Thread t touches `bytes` bytes at (t & mask) * bytes + base; copies touch `bytes` bytes at
/// `base` in shared memory and at `global` in global memory.
struct Step {
  What what = What::read;
  bool shared = true;
  unsigned bytes = 4, mask = 127, base = 0, global = 0, number = 0;
  bool first_warp = false;  ///< only that waits

  bool copies() const { return what == What::load || what == What::store; }
};

struct Sample {
  std::vector<Step> steps;
  unsigned block = 64, rounds = 1;
};

Sample random_sample(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<unsigned> values) {
    return values.begin()[random() % values.size()];
  };
  Sample sample;
  sample.block = pick({32, 64, 96, 128});
  sample.rounds = pick({1, 1, 2, 3});
  const auto step = [&](Step one) { sample.steps.push_back(one); };
  bool loads = false;  // and nobody waits yet
  bool waited = true;  // for all others
  unsigned loaded = 0;
  const unsigned accesses = 2 + random() % 4;
  for (unsigned i = 0; i < accesses; ++i) {
    const auto number = static_cast<unsigned>(sample.steps.size());
    const unsigned kind = random() % 6;
    if (kind < 3) {
      const unsigned bytes = pick({4, 4, 8, 16});
      step({.what = random() % 2 == 0 ? What::read : What::write,
            .shared = random() % 3 != 0,
            .bytes = bytes,
            .mask = pick({127, 127, 31}),
            .base = bytes * pick({0, 0, 1, 16})});
    } else {
      if (kind == 3) {
        waited &= !loads;
        loads = true;
        loaded = number;
      }
      step({.what = kind == 3 ? What::load : What::store,
            .bytes = pick({128, 256, 512}),
            .base = pick({0, 0, 0, 128, 512}),
            .global = pick({0, 0, 256, 1024})});
    }
    if (loads && random() % 3 != 0) {
      step({.what = What::wait, .number = loaded, .first_warp = random() % 4 == 0});
      loads = false;
    }
    if (random() % 3 == 0)
      step({.what = random() % 2 == 0 ? What::wait_group : What::wait_read,
            .number = pick({0, 0, 1})});
    if (random() % 3 == 0) step({.what = What::proxy_fence});
    if (random() % 2 == 0) step({.what = random() % 4 == 0 ? What::warp_barrier : What::barrier});
    if (random() % 6 == 0) step({.what = What::proxy_fence});
  }
  if (loads || !waited) sample.rounds = 1;  // an mbarrier takes one arrival a phase
  return sample;
}

std::string text_of(const Step& step, unsigned number) {
  const auto text = [](unsigned n) { return std::to_string(n); };
  const std::string n = text(number);
  const std::string pieces = "mov.u32 %r3, s; add.u32 %r3, %r3, " + text(step.base) +
                             "; add.u64 %d3, %d1, " + text(step.global) + "; ";
  const auto mbarrier = [&](unsigned of) {
    return "mov.u32 %r4, bars; add.u32 %r4, %r4, " + text(8 * of) + "; ";
  };
  switch (step.what) {
    case What::barrier:
      return "bar.sync 0;\n";
    case What::warp_barrier:
      return "bar.warp.sync 0xffffffff;\n";
    case What::proxy_fence:
      return "fence.proxy.async;\n";
    case What::wait_group:
      return "cp.async.bulk.wait_group " + text(step.number) + ";\n";
    case What::wait_read:
      return "cp.async.bulk.wait_group.read " + text(step.number) + ";\n";
    case What::load:
      return pieces + mbarrier(number) + "@!%p1 bra L" + n +
             "; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], " + text(step.bytes) +
             "; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%d3], " +
             text(step.bytes) + ", [%r4]; L" + n + ":\n";
    case What::store:
      return pieces + "@!%p1 bra L" + n +
             "; cp.async.bulk.global.shared::cta.bulk_group [%d3], [%r3], " + text(step.bytes) +
             "; cp.async.bulk.commit_group; L" + n + ":\n";
    case What::wait:
      return mbarrier(step.number) + "and.b32 %r3, %r5, 1; " +
             (step.first_warp ? "@%p3 bra L" + n + "; " : std::string()) + "W" + n +
             ": mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r4], %r3; @!%p4 bra W" + n + "; L" +
             n + ":\n";
    default:
      break;
  }
  static const std::map<unsigned, std::pair<std::string, std::string>> kForms = {
      {4, {".u32", "%r6"}}, {8, {".u64", "%d4"}}, {16, {".v4.u32", "{%r6, %r6, %r6, %r6}"}}};
  const auto& [type, value] = kForms.at(step.bytes);
  const std::string at = step.shared ? ".shared" + type + " " : ".global" + type + " ";
  const std::string place = step.shared ? "[%r3]" : "[%d3]";
  // No two writes write the same value.
  return "and.b32 %r3, %r0, " + text(step.mask) + "; mul.lo.u32 %r3, %r3, " + text(step.bytes) +
         "; add.u32 %r3, %r3, " + text(step.base) +
         "; cvt.u64.u32 %d3, %r3; add.u64 %d3, %d3, %d1; mov.u32 %r4, s; add.u32 %r3, %r3, %r4; "
         "mad.lo.u32 %r6, %r5, 64, " +
         n + "; mad.lo.u32 %r6, %r6, 4096, %r0; add.u32 %r6, %r6, 1; mov.b64 %d4, {%r6, %r6}; " +
         (step.what == What::read ? "ld" + at + value + ", " + place
                                  : "st" + at + place + ", " + value) +
         ";\n";
}

/// One line for each step, after a head whose lines are counted in `*first_line`.
std::string text_of(const Sample& sample, int* first_line) {
  std::string text =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .pred %p<6>; .reg .b32 %r<10>; .reg .b64 %d<6>;\n.shared .align 128 .b8 s[" +
      std::to_string(kBytes) +
      "]; .shared .align 8 .b8 bars[512];\nld.param.u64 %d1, [p]; mov.u32 %r0, %tid.x; "
      "mov.u32 %r5, 0; setp.eq.u32 %p1, %r0, 0; setp.ge.u32 %p3, %r0, 32; mov.u32 %r4, bars;\n";
  for (unsigned i = 0; i < sample.steps.size(); ++i) {
    text += "@%p1 mbarrier.init.shared::cta.b64 [%r4+" + std::to_string(8 * i) + "], 1; ";
  }
  text += "bar.sync 0;\nLOOP:\n";
  *first_line = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  for (unsigned i = 0; i < sample.steps.size(); ++i) text += text_of(sample.steps[i], i);
  return text + "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, " + std::to_string(sample.rounds) +
         "; @%p2 bra LOOP;\nret;\n}\n";
}

/// A place in thread `thread`: at the `when`th step of the threads, over all rounds.
struct Moment {
  unsigned thread = 0;
  int when = 0;
};

class Order {
 public:
  /// `by_warps`: with the misses of the checks. A warp's accesses count as done by each of its
  /// lanes where an mbarrier is signalled, and overwriting needs no proxy fence.
  Order(const Sample& sample, bool by_warps) : sample_(sample), by_warps_(by_warps) {}

  int length() const { return static_cast<int>(sample_.rounds * sample_.steps.size()); }
  const Step& at(int i) const { return sample_.steps[place(i)]; }
  std::size_t place(int i) const { return static_cast<std::size_t>(i) % sample_.steps.size(); }

  bool is_before(Moment a, Moment b) const {
    if (is_synchronised(a, b)) return true;
    for (int w = a.when + 1; w < b.when; ++w) {
      if (at(w).what != What::wait) continue;
      const int arrival = load_of(w);
      const bool told = by_warps_ && a.thread < 32 && a.when < arrival;
      if (!told && !is_synchronised(a, {0, arrival})) continue;
      if (passes(w, b)) return true;
    }
    return false;
  }
  /// Whether b comes after the end of the load issued at `load`.
  bool is_after_load(int load, Moment b) const {
    for (int w = load + 1; w < b.when; ++w) {
      if (at(w).what != What::wait || at(w).number != place(load)) continue;
      for (unsigned t = 0; t < waiting_at(w); ++t) {
        if (is_before({t, w}, b)) return true;
      }
    }
    return false;
  }
  /// The step of thread 0's wait for the store issued at `store`.
  int end_of_store(int store, bool source) const {
    unsigned later = 0;
    for (int i = store + 1; i < length(); ++i) {
      const Step& step = at(i);
      if (step.what == What::store) ++later;
      const bool waits = step.what == What::wait_group || (source && step.what == What::wait_read);
      if (waits && later >= step.number) return i;
    }
    return kNever;
  }
  /// Whether the asynchronous proxy sees at `when` a write of step `write`.
  bool is_fenced(Moment write, int when, bool shared) const {
    for (int f = write.when + 1; f < when; ++f) {
      const What overwrites = shared ? What::load : What::store;  // perhaps
      if (by_warps_ && at(f).what == overwrites) return true;
      if (at(f).what != What::proxy_fence) continue;
      if (is_before({write.thread, f}, {0, when}) || is_before(write, {0, f})) return true;
    }
    return false;
  }

 private:
  bool is_synchronised(Moment a, Moment b) const {
    if (a.thread == b.thread && a.when < b.when) return true;
    for (int i = a.when + 1; i < b.when; ++i) {
      if (at(i).what == What::barrier) return true;
      if (at(i).what == What::warp_barrier && a.thread / 32 == b.thread / 32) return true;
    }
    return false;
  }
  /// The load of this wait.
  int load_of(int wait) const {
    return wait - (static_cast<int>(place(wait)) - static_cast<int>(at(wait).number));
  }
  /// So many threads wait there, the first ones.
  unsigned waiting_at(int wait) const { return at(wait).first_warp ? 32 : sample_.block; }
  /// Whether some waiting thread comes before b.
  bool passes(int wait, Moment b) const {
    for (unsigned t = 0; t < waiting_at(wait); ++t) {
      if (is_synchronised({t, wait}, b)) return true;
    }
    return false;
  }

  const Sample& sample_;
  bool by_warps_;
};

struct Access {
  Moment begin;
  bool writes = false, shared = false;

  bool operator==(const Access& other) const {
    return begin.thread == other.begin.thread && begin.when == other.begin.when &&
           shared == other.shared && writes == other.writes;
  }
};

/// By definition: bytes in common, a write among the two, and neither over before the other began.
Pairs races_of(const Sample& sample, bool by_warps) {
  const Order order(sample, by_warps);
  std::map<std::pair<bool, unsigned>, std::vector<Access>> memory;  // by space and 4 bytes
  const auto note = [&](unsigned at, unsigned bytes, const Access& access) {
    for (unsigned b = at; b < at + bytes; b += 4) memory[{access.shared, b}].push_back(access);
  };
  for (int i = 0; i < order.length(); ++i) {
    const Step& step = order.at(i);
    if (step.copies()) {
      const bool load = step.what == What::load;
      note(step.base, step.bytes, {{0, i}, load, true});
      note(step.global, step.bytes, {{0, i}, !load, false});
    }
    for (unsigned t = 0; t < sample.block; ++t) {
      if (step.what != What::read && step.what != What::write) continue;
      note((t & step.mask) * step.bytes + step.base, step.bytes,
           {{t, i}, step.what == What::write, step.shared});
    }
  }
  const auto is_before = [&](const Access& a, const Access& b) {
    const Step& step = order.at(a.begin.when);
    if (step.what == What::load) return order.is_after_load(a.begin.when, b.begin);
    if (step.what == What::store) {
      const int end = order.end_of_store(a.begin.when, a.shared);
      return end != kNever && order.is_before({0, end}, b.begin);
    }
    // A copy reads the threads' own writes after a proxy fence.
    const What reads = a.shared ? What::store : What::load;
    const bool proxy = order.at(b.begin.when).what == reads && a.writes;
    return order.is_before(a.begin, b.begin) &&
           (!proxy || order.is_fenced(a.begin, b.begin.when, a.shared));
  };
  Pairs pairs;
  for (const auto& [where, accesses] : memory) {
    for (const Access& write : accesses) {
      for (const Access& other : accesses) {
        if (!write.writes || write == other) continue;
        const std::pair<int, int> steps =
            std::minmax(static_cast<int>(order.place(write.begin.when)),
                        static_cast<int>(order.place(other.begin.when)));
        if (pairs.contains(steps) || is_before(write, other) || is_before(other, write)) continue;
        pairs.insert(steps);
      }
    }
  }
  return pairs;
}

}  // namespace

TEST_CASE("check random bulk: what is found races, and something is found where anything does") {
  int racing = 0, clean = 0;
  for (unsigned seed = first_seed(); seed < first_seed() + 1500; ++seed) {
    std::mt19937 random(seed);
    const Sample sample = random_sample(random);
    const Pairs all = races_of(sample, false), certain = races_of(sample, true);
    HopperRunner runner;
    runner.block = {sample.block, 1, 1};
    runner.seed = seed;
    runner.checks = {false, true, false};
    int first_line = 0;
    const std::string text = text_of(sample, &first_line);
    INFO("seed ", seed, ", block of ", sample.block, ", racing ", shown(all), "\n", text);
    require_fine(runner.launch(text, HopperRunner::pack(nullptr, {runner.allocate(kBytes)})));
    if (!certain.empty()) CHECK(!runner.findings.empty());
    for (const Finding& finding : runner.findings) {
      INFO(finding.to_string());
      REQUIRE(finding.other);
      CHECK(is_right(all, finding, first_line,
                     [&](std::size_t step) { return sample.steps[step].what != What::write; }));
    }
    ++(all.empty() ? clean : racing);
  }
  CHECK(racing > 300);
  CHECK(clean > 200);
}
