// The race check on random programs of clusters beside a plain definition of races: accesses to the
// blocks' shared memory, ordered by barriers of warps, blocks and the cluster.
#include "unit/sim/check/race/race_pairs.h"
#include "unit/sim/device/hopper_runner.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

constexpr unsigned kSharedBytes = 8192;

enum class What : std::uint8_t {
  read,
  write,
  warp_barrier,
  barrier,
  fence,           ///< of the cluster
  arrive,          ///< at the cluster's barrier
  arrive_relaxed,  ///< orders the thread's accesses before its last fence
  wait,
};

/// Thread t of the block with rank r touches `bytes` bytes at ((t + add) & mask) * stride + base in
/// the shared memory of rank r + ahead; only threads with t % every == 0 do. Without `ranked` its
/// own is named as such.
struct Step {
  What what = What::read;
  bool ranked = true;
  unsigned ahead = 0, bytes = 4, add = 0, mask = 127, stride = 4, base = 0, every = 1;

  bool touches() const { return what == What::read || what == What::write; }
};

struct Sample {
  std::vector<Step> steps;
  unsigned cluster = 2, clusters = 1, block = 64, rounds = 1;
};

Sample random_program(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<unsigned> values) {
    return values.begin()[random() % values.size()];
  };
  Sample program;
  program.cluster = pick({2, 2, 3, 4});
  program.clusters = pick({1, 1, 2});
  program.block = pick({32, 64, 64, 96});
  program.rounds = pick({1, 1, 2, 3});
  const auto step = [&](What what) { program.steps.push_back({.what = what}); };
  bool arrived = false;
  const unsigned accesses = 2 + random() % 4;
  for (unsigned i = 0; i < accesses; ++i) {
    Step access;
    access.what = random() % 2 == 0 ? What::read : What::write;
    access.ahead = pick({0, 0, 1, 1, 2}) % program.cluster;
    access.ranked = access.ahead != 0 || random() % 4 == 0;
    access.bytes = pick({4, 4, 4, 8, 16, 2});
    access.mask = pick({127, 127, 127, 15, 31});
    access.add = pick({0, 0, 0, 1, 16, 32});
    access.stride = access.bytes * pick({1, 1, 1, 2});
    access.base = access.bytes * pick({0, 0, 0, 1, 3, 64 / access.bytes});
    access.every = pick({1, 1, 1, 2, 3});
    program.steps.push_back(access);
    const unsigned order = random() % 8;
    if (order == 0) step(What::warp_barrier);
    if (order == 1) step(What::barrier);
    if (order == 2) step(What::fence);
    if (order < 3) continue;
    if (!arrived) step(random() % 3 == 0 ? What::arrive_relaxed : What::arrive);
    const bool waits = arrived || random() % 2 == 0;
    if (waits) step(What::wait);
    arrived = !waits;
  }
  if (arrived) step(What::wait);
  return program;
}

std::string text_of(const Step& step, unsigned number) {
  switch (step.what) {
    case What::warp_barrier:
      return "bar.warp.sync 0xffffffff;\n";
    case What::barrier:
      return "bar.sync 0;\n";
    case What::fence:
      return "fence.acq_rel.cluster;\n";
    case What::arrive:
      return "barrier.cluster.arrive.aligned;\n";
    case What::arrive_relaxed:
      return "barrier.cluster.arrive.relaxed.aligned;\n";
    case What::wait:
      return "barrier.cluster.wait.aligned;\n";
    default:
      break;
  }
  const auto text = [](unsigned n) { return std::to_string(n); };
  static const std::map<unsigned, std::pair<std::string, std::string>> kForms = {
      {2, {".u16", "%h1"}},
      {4, {".u32", "%r6"}},
      {8, {".u64", "%d4"}},
      {16, {".v4.u32", "{%r6, %r6, %r6, %r6}"}}};
  const auto& [type, value] = kForms.at(step.bytes);
  const std::string space = step.ranked ? ".shared::cluster" : ".shared";
  // No two writes write the same value.
  return "rem.u32 %r3, %r0, " + text(step.every) + "; setp.eq.u32 %p1, %r3, 0; add.u32 %r3, %r0, " +
         text(step.add) + "; and.b32 %r3, %r3, " + text(step.mask) + "; mad.lo.u32 %r3, %r3, " +
         text(step.stride) + ", %r1; add.u32 %r3, %r3, " + text(step.base) +
         "; add.u32 %r4, %r2, " + text(step.ahead) + "; rem.u32 %r4, %r4, %r8; " +
         (step.ranked ? "mapa.shared::cluster.u32 %r3, %r3, %r4; " : "") +
         "mad.lo.u32 %r6, %r5, 64, " + text(number) +
         "; mad.lo.u32 %r6, %r6, 4096, %r7; cvt.u16.u32 %h1, %r6; mov.b64 %d4, {%r6, %r6}; " +
         (step.what == What::read ? "@%p1 ld" + space + type + " " + value + ", [%r3];\n"
                                  : "@%p1 st" + space + type + " [%r3], " + value + ";\n");
}

/// One line for each step, after a head whose lines are counted in `*first_line`.
std::string text_of(const Sample& program, int* first_line) {
  const std::string sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
  std::string text =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
      ".reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<10>; .reg .b64 %d<6>;\n"
      ".shared .align 16 .b8 s[" +
      std::to_string(kSharedBytes) +
      "];\nmov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r2, %cluster_ctarank; mov.u32 %r5, 0;\n"
      "mov.u32 %r8, %cluster_nctarank; mov.u32 %r7, %ctaid.x; mad.lo.u32 %r7, %r7, 128, %r0;\n"
      "add.u32 %r7, %r7, 1;\n" +
      sync + "LOOP:\n";
  *first_line = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  for (unsigned i = 0; i < program.steps.size(); ++i) text += text_of(program.steps[i], i);
  return text + "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, " + std::to_string(program.rounds) +
         "; @%p2 bra LOOP;\n" + sync + "ret;\n}\n";
}

/// The steps between the `from`th and the `to`th one of the threads, over all rounds.
class Order {
 public:
  explicit Order(const Sample& program) : program_(program) {
    int last_fence = -1, released = -1;
    for (int i = 0; i < length(); ++i) {
      const What what = at(i).what;
      if (what == What::fence) last_fence = i;
      if (what == What::arrive) released = i;
      if (what == What::arrive_relaxed) released = last_fence;
      if (what == What::wait) phases_.emplace_back(released, i);
    }
  }
  int length() const { return static_cast<int>(program_.rounds * program_.steps.size()); }
  const Step& at(int i) const {
    return program_.steps[static_cast<std::size_t>(i) % program_.steps.size()];
  }
  bool has(What what, int from, int to) const {
    for (int i = from + 1; i < to; ++i) {
      if (at(i).what == what) return true;
    }
    return false;
  }
  /// Steps before `from` are released to all of the cluster; its threads acquire them before `to`.
  bool has_phase(int from, int to) const {
    return std::any_of(phases_.begin(), phases_.end(),
                       [&](const auto& phase) { return from < phase.first && phase.second < to; });
  }

 private:
  const Sample& program_;
  std::vector<std::pair<int, int>> phases_;
};

struct Access {
  int when = 0;
  unsigned rank = 0, thread = 0;
  bool writes = false;
};

/// By definition: two threads of a cluster, bytes in common, a write among the two, and no order by
/// the program, or by a barrier of their common warp, block or cluster. Clusters are all alike.
Pairs races_of(const Sample& program) {
  const Order order(program);
  std::map<std::pair<unsigned, unsigned>, std::vector<Access>> memory;  // by rank and byte
  for (unsigned rank = 0; rank < program.cluster; ++rank) {
    for (unsigned t = 0; t < program.block; ++t) {
      for (int i = 0; i < order.length(); ++i) {
        const Step& step = order.at(i);
        if (!step.touches() || t % step.every != 0) continue;
        const unsigned first = ((t + step.add) & step.mask) * step.stride + step.base;
        for (unsigned byte = first; byte < first + step.bytes; ++byte) {
          memory[{(rank + step.ahead) % program.cluster, byte}].push_back(
              {i, rank, t, step.what == What::write});
        }
      }
    }
  }
  const auto is_before = [&](const Access& a, const Access& b) {
    if (a.rank == b.rank) {
      if (a.thread == b.thread && a.when < b.when) return true;
      if (order.has(What::barrier, a.when, b.when)) return true;
      if (a.thread / 32 == b.thread / 32 && order.has(What::warp_barrier, a.when, b.when))
        return true;
    }
    return order.has_phase(a.when, b.when);
  };
  Pairs pairs;
  const int steps = static_cast<int>(program.steps.size());
  for (const auto& [place, accesses] : memory) {
    for (const Access& write : accesses) {
      for (const Access& other : accesses) {
        const bool same = write.rank == other.rank && write.thread == other.thread;
        if (!write.writes || (same && write.when == other.when)) continue;
        if (is_before(write, other) || is_before(other, write)) continue;
        pairs.insert(std::minmax(write.when % steps, other.when % steps));
      }
    }
  }
  return pairs;
}

}  // namespace

TEST_CASE("check random cluster: what is found races, and something is found where anything does") {
  int racing = 0, clean = 0;
  for (unsigned seed = first_seed(); seed < first_seed() + 1200; ++seed) {
    std::mt19937 random(seed);
    const Sample program = random_program(random);
    const Pairs expected = races_of(program);
    HopperRunner runner;
    runner.grid = {program.cluster * program.clusters, 1, 1};
    runner.cluster = {program.cluster, 1, 1};
    runner.block = {program.block, 1, 1};
    runner.width = static_cast<int>(1 + seed % 2);
    runner.checks = {false, true, false};
    int first_line = 0;
    const std::string text = text_of(program, &first_line);
    INFO("seed ", seed, ", clusters of ", program.cluster, " blocks of ", program.block,
         ", racing ", shown(expected), "\n", text);
    require_fine(runner.launch(text, HopperRunner::pack(nullptr, {})));
    CHECK(runner.findings.empty() == expected.empty());
    for (const Finding& finding : runner.findings) {
      INFO(finding.to_string());
      REQUIRE(finding.other);
      CHECK(is_right(expected, finding, first_line,
                     [&](std::size_t step) { return program.steps[step].what == What::read; }));
    }
    ++(expected.empty() ? clean : racing);
  }
  CHECK(racing > 200);
  CHECK(clean > 200);
}
