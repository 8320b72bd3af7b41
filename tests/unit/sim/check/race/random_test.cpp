// The race check on random programs beside a plain definition of races: every pair of accesses,
// compared one by one.
#include "sim/checks.h"
#include "unit/sim/check/race/race_pairs.h"
#include "unit/sim/device/device_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

using namespace kernwright;
using namespace kernwright::sim;
using kernwright::sim::testing::first_seed;
using kernwright::sim::testing::Pairs;
using kernwright::sim::testing::shown;

namespace {

constexpr unsigned kSharedBytes = 8192, kGlobalBytes = 1u << 19;

enum class What : std::uint8_t { read, write, copy, barrier, warp_barrier, group, wait, wait_all };

/// Thread t touches `bytes` bytes at lane * stride + lane / 16 * pitch + base, where lane is
/// ((t + add) & mask) >> shift, in global memory a block's distance further on per block; only
/// threads with t % every == 0 do. A copy takes them from this place in global memory to the same
/// one in shared memory. A wait leaves `left` groups in progress.
struct Step {
  What what = What::read;
  bool shared = true;
  unsigned bytes = 4, add = 0, mask = 127, shift = 0, stride = 4, base = 0, every = 1, left = 0;
  unsigned pitch = 0;

  bool touches() const { return what == What::read || what == What::write || what == What::copy; }
};

struct Program {
  std::vector<Step> steps;
  unsigned grid = 1, block = 64, rounds = 1, block_distance = 0;
  bool fence = false;  ///< orders nothing here, but readers are told apart one by one

  unsigned offset(const Step& step, bool shared, unsigned block_index, unsigned thread) const {
    const unsigned lane = ((thread + step.add) & step.mask) >> step.shift;
    return lane * step.stride + lane / 16 * step.pitch + step.base +
           (shared ? 0 : block_index * block_distance);
  }
};

What pick_one(std::initializer_list<What> values, std::uint64_t random) {
  return values.begin()[random % values.size()];
}

Program random_program(std::mt19937& random) {
  const auto pick = [&](std::initializer_list<unsigned> values) {
    return values.begin()[random() % values.size()];
  };
  Program program;
  program.grid = pick({1, 1, 2, 3});
  program.block = pick({32, 64, 96, 128});
  program.rounds = pick({1, 1, 2, 3});
  program.block_distance = pick({0, 48, 64, 128, 256, 512, 2048, 65536});
  program.fence = random() % 4 == 0;
  const bool copies = random() % 3 == 0;
  const bool either = random() % 2 == 0, shared = random() % 2 == 0;
  const unsigned widths = random() % 3;
  const unsigned accesses = 2 + random() % 4;
  for (unsigned i = 0; i < accesses; ++i) {
    Step step;
    step.shared = either ? random() % 2 == 0 : shared;
    step.what = random() % 2 == 0 ? What::read : What::write;
    step.bytes = widths == 0   ? pick({4, 4, 4, 8, 16, 1, 2})
                 : widths == 1 ? pick({2, 2, 2, 2, 4, 8, 1, 2})
                               : pick({1, 1, 1, 1, 2, 4, 8});
    // Copies are of zeros, which no write of two bytes or more is.
    if (copies && step.bytes == 1) step.bytes = 2;
    if (copies && random() % 2 == 0) {
      step.what = What::copy;
      step.shared = true;
      step.bytes = pick({4, 4, 8, 16});
    }
    step.mask = pick({127, 127, 127, 127, 15, 31, 0, 112});
    step.shift = step.mask == 112 ? 4 : 0;
    step.add = pick({0, 0, 0, 1, 16, 32});
    const unsigned wide = step.shared ? 2 : 64;
    step.stride = step.bytes * pick({1, 1, 1, 2, wide});
    if (!step.shared && random() % 6 == 0) step.stride = pick({256, 4096});
    step.base = step.bytes * pick({0, 0, 0, 16 / step.bytes, 1, 3, 64 / step.bytes});
    step.every = pick({1, 1, 1, 1, 2, 3});
    if (step.bytes <= 4) step.pitch = step.bytes * pick({0, 0, 0, 0, 0, 1, 16, 48});
    program.steps.push_back(step);
    if (copies && random() % 3 != 0) {
      Step order;
      order.what = pick_one({What::group, What::group, What::wait, What::wait_all}, random());
      order.left = pick({0, 0, 1, 2});
      program.steps.push_back(order);
    }
    if (random() % 3 != 0) {
      Step order;
      order.what = random() % 3 == 0 ? What::warp_barrier : What::barrier;
      program.steps.push_back(order);
    }
  }
  return program;
}

std::string text_of(const Step& step, unsigned number) {
  if (step.what == What::barrier) return "bar.sync 0;\n";
  if (step.what == What::warp_barrier) return "bar.warp.sync 0xffffffff;\n";
  if (step.what == What::group) return "cp.async.commit_group;\n";
  if (step.what == What::wait) return "cp.async.wait_group " + std::to_string(step.left) + ";\n";
  if (step.what == What::wait_all) return "cp.async.wait_all;\n";
  const std::string n = std::to_string(number);
  std::string text = "rem.u32 %r3, %r1, " + std::to_string(step.every) +
                     "; setp.eq.u32 %p1, %r3, 0; add.u32 %r3, %r1, " + std::to_string(step.add) +
                     "; and.b32 %r3, %r3, " + std::to_string(step.mask) + "; shr.u32 %r3, %r3, " +
                     std::to_string(step.shift) + "; shr.u32 %r8, %r3, 4; mad.lo.u32 %r8, %r8, " +
                     std::to_string(step.pitch) + ", " + std::to_string(step.base) +
                     "; mad.lo.u32 %r3, %r3, " + std::to_string(step.stride) + ", %r8; ";
  text +=
      "cvt.u64.u32 %rd3, %r3; add.u64 %rd3, %rd3, %rd2; mov.u32 %r4, s; "
      "add.u32 %r3, %r3, %r4; ";
  // No two writes write the same value.
  text += "mad.lo.u32 %r6, %r5, 64, " + n + "; mad.lo.u32 %r6, %r6, 4096, %r7; " +
          "cvt.u16.u32 %h1, %r6; mov.b64 %rd4, {%r6, %r6}; @!%p1 bra L" + n + "; ";
  const std::string space = step.shared ? ".shared" : ".global";
  const std::string at = step.shared ? "[%r3]" : "[%rd3]";
  static const std::map<unsigned, std::pair<std::string, std::string>> kForms = {
      {1, {".u8", "%h1"}},
      {2, {".u16", "%h1"}},
      {4, {".u32", "%r6"}},
      {8, {".u64", "%rd4"}},
      {16, {".v4.u32", "{%r6, %r6, %r6, %r6}"}}};
  const auto& [type, value] = kForms.at(step.bytes);
  if (step.what == What::copy) {
    return text + "cp.async.ca.shared.global [%r3], [%rd3], " + std::to_string(step.bytes) + "; L" +
           n + ":\n";
  }
  text += step.what == What::read ? "ld" + space + type + " " + value + ", " + at + ";"
                                  : "st" + space + type + " " + at + ", " + value + ";";
  return text + " L" + n + ":\n";
}

/// One line for each step, after a head whose lines are counted in `*first_line`.
std::string text_of(const Program& program, int* first_line) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<10>; .reg .b64 %rd<6>;\n"
      ".shared .align 16 .b8 s[" +
      std::to_string(kSharedBytes) +
      "];\nld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r5, 0;\n"
      "mul.wide.u32 %rd2, %r2, " +
      std::to_string(program.block_distance) +
      "; add.u64 %rd2, %rd2, %rd1; mad.lo.u32 %r7, %r2, 128, %r1; add.u32 %r7, %r7, 1;\nLOOP:\n";
  if (program.fence) text += "membar.cta;\n";
  *first_line = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  for (unsigned i = 0; i < program.steps.size(); ++i) text += text_of(program.steps[i], i);
  return text + "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, " + std::to_string(program.rounds) +
         "; @%p2 bra LOOP; ret;\n}\n";
}

/// Steps and barriers passed by a thread.
struct Time {
  unsigned steps = 0, barriers = 0, warp_barriers = 0;
};
constexpr Time kNever{~0u, ~0u, ~0u};

/// From `begin` to `end`; for a copy, the end is the wait that covers it.
struct Access {
  int step;
  unsigned block, thread;
  Time begin, end;
  std::optional<std::array<unsigned, 3>> copy = {};  ///< of a copy's write: from, to, bytes

  bool is_before(const Access& other) const {
    if (block != other.block) return false;
    if (thread == other.thread && end.steps < other.begin.steps) return true;
    if (thread / 32 == other.thread / 32 && end.warp_barriers < other.begin.warp_barriers)
      return true;
    return end.barriers < other.begin.barriers;
  }
};

/// When each of a thread's steps begins and ends, in order.
std::vector<std::pair<Time, Time>> times_of(const Program& program) {
  std::vector<std::pair<Time, Time>> times;
  std::vector<std::size_t> open;
  std::vector<std::vector<std::size_t>> groups;
  Time now;
  const auto finish = [&](std::vector<std::size_t>& copies) {
    for (const std::size_t copy : copies) times[copy].second = now;
    copies.clear();
  };
  for (unsigned i = 0; i < program.rounds * program.steps.size(); ++i, ++now.steps) {
    const Step& step = program.steps[i % program.steps.size()];
    now.barriers += step.what == What::barrier ? 1 : 0;
    now.warp_barriers += step.what == What::warp_barrier ? 1 : 0;
    times.emplace_back(now, step.what == What::copy ? kNever : now);
    if (step.what == What::copy) open.push_back(i);
    if (step.what == What::group || step.what == What::wait_all)
      groups.push_back(std::exchange(open, {}));
    if (step.what != What::wait && step.what != What::wait_all) continue;
    const std::size_t left = step.what == What::wait ? step.left : 0;
    for (; groups.size() > left; groups.erase(groups.begin())) finish(groups.front());
  }
  return times;
}

/// By definition: two threads (or a thread and its own copy), bytes in common, a write among the
/// two, and neither over before the other began, by program order and barriers of their common
/// block or warp. Copies of the same bytes do not race.
Pairs races_of(const Program& program) {
  struct Bytes {
    std::vector<Access> reads, writes;
  };
  std::map<std::pair<unsigned, unsigned>, Bytes> memory;  // by block (of shared memory) and byte
  const auto times = times_of(program);
  const auto note = [&](const Step& step, bool shared, bool writes, const Access& access) {
    const unsigned at = program.offset(step, shared, access.block, access.thread);
    for (unsigned byte = at; byte < at + step.bytes; ++byte) {
      Bytes& there = memory[{shared ? access.block + 1 : 0, byte}];
      (writes ? there.writes : there.reads).push_back(access);
    }
  };
  for (unsigned b = 0; b < program.grid; ++b) {
    for (unsigned t = 0; t < program.block; ++t) {
      for (unsigned i = 0; i < times.size(); ++i) {
        const auto number = static_cast<int>(i % program.steps.size());
        const Step& step = program.steps[static_cast<std::size_t>(number)];
        if (!step.touches() || t % step.every != 0) continue;
        Access access{number, b, t, times[i].first, times[i].second};
        if (step.what == What::copy) {
          access.copy = {program.offset(step, false, b, t), program.offset(step, true, b, t),
                         step.bytes};
        }
        note(step, step.shared, step.what != What::read, access);
        if (step.what == What::copy) note(step, false, false, access);
      }
    }
  }
  Pairs pairs;
  const auto compare = [&](const Access& x, const Access& y) {
    const bool same = x.block == y.block && x.thread == y.thread && x.begin.steps == y.begin.steps;
    const bool repeats = x.copy && y.copy && *x.copy == *y.copy;
    if (same || repeats || x.is_before(y) || y.is_before(x)) return;
    pairs.insert(std::minmax(x.step, y.step));
  };
  for (const auto& [place, bytes] : memory) {
    for (const Access& write : bytes.writes) {
      for (const Access& other : bytes.writes) compare(write, other);
      for (const Access& read : bytes.reads) compare(write, read);
    }
  }
  return pairs;
}

/// A finding's claim. With "one of several threads", the named reader was ordered, and some other
/// read races with the write.
struct Claim {
  std::pair<int, int> steps;
  int write_after_read = -1;  ///< the step that wrote
};

bool is_right(const Program& program, const Claim& claim, const Pairs& racing) {
  if (racing.contains(claim.steps)) return true;
  return std::any_of(racing.begin(), racing.end(), [&](const std::pair<int, int>& pair) {
    if (pair.first != claim.write_after_read && pair.second != claim.write_after_read) return false;
    const int other = pair.first == claim.write_after_read ? pair.second : pair.first;
    const What what = program.steps[static_cast<std::size_t>(other)].what;
    return what == What::read || what == What::copy;
  });
}

std::vector<Claim> claims_of(CurrentDevice& device, const Program& program, CUdeviceptr buffer) {
  const DriverApi& api = device.api;
  int first_line = 0;
  const std::string text = text_of(program, &first_line);
  CUmodule module = nullptr;
  REQUIRE(api.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  REQUIRE(api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
  const CheckScope scope({false, true, false});
  void* parameters[] = {&buffer};
  REQUIRE(api.cuLaunchKernel(function, program.grid, 1, 1, program.block, 1, 1, 0, nullptr,
                             parameters, nullptr) == CUDA_SUCCESS);
  REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
  std::vector<Claim> claims;
  for (const Finding& finding : scope.findings()) {
    REQUIRE(finding.fault.kind == FaultKind::race);
    REQUIRE(finding.other);
    const int here = finding.fault.ptx_line - first_line;
    claims.push_back({std::minmax(here, finding.other->ptx_line - first_line),
                      finding.other->thread_known ? -1 : here});
  }
  REQUIRE(api.cuModuleUnload(module) == CUDA_SUCCESS);
  return claims;
}

}  // namespace

TEST_CASE("check random: what is found races, and something is found wherever anything races") {
  CurrentDevice device;
  CUdeviceptr buffer = 0;
  REQUIRE(device.api.cuMemAlloc(&buffer, kGlobalBytes + 65536 * 4) == CUDA_SUCCESS);
  int racing = 0, clean = 0;
  for (unsigned seed = first_seed(); seed < first_seed() + 2500; ++seed) {
    std::mt19937 random(seed);
    const Program program = random_program(random);
    // Every other program with several blocks in flight.
    set_launch_seed(seed % 2 == 0 ? std::nullopt : std::optional<std::uint64_t>(seed));
    const Pairs expected = races_of(program);
    const std::vector<Claim> found = claims_of(device, program, buffer);
    int line = 0;
    INFO("seed ", seed, ", racing ", shown(expected), "\n", text_of(program, &line));
    CHECK(found.empty() == expected.empty());
    for (const Claim& claim : found) {
      INFO("found ", claim.steps.first, "-", claim.steps.second);
      CHECK(is_right(program, claim, expected));
    }
    ++(expected.empty() ? clean : racing);
  }
  set_launch_seed(std::nullopt);
  CHECK(racing > 500);
  CHECK(clean > 500);
  CHECK(device.api.cuMemFree(buffer) == CUDA_SUCCESS);
}
