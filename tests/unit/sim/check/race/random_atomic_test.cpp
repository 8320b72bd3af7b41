// The race check on random programs of plain, atomic, relaxed and volatile accesses to a few words,
// in several schedules, beside a plain definition: every pair of accesses, compared one by one.
#include "sim/checks.h"
#include "unit/sim/check/race/race_pairs.h"
#include "unit/sim/device/device_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace kernwright;
using namespace kernwright::sim;
using kernwright::sim::testing::first_seed;
using kernwright::sim::testing::is_right;
using kernwright::sim::testing::Pairs;
using kernwright::sim::testing::shown;

namespace {

constexpr unsigned kFlags = 65536, kBufferBytes = kFlags + 4096;

enum class What : std::uint8_t {
  read,
  write,
  add,
  swap,  ///< atom.cas
  relaxed_read,
  relaxed_write,
  volatile_read,
  volatile_write,
  barrier,
  warp_barrier,
  relay,  ///< blocks pass one after the other: what lies before it in lower ones comes before
};

bool reads(What what) {
  return what == What::read || what == What::relaxed_read || what == What::volatile_read;
}
bool is_volatile(What what) { return what == What::volatile_read || what == What::volatile_write; }
bool is_strong(What what) { return what != What::read && what != What::write; }

/// Threads with t % every == rest, of blocks with b % blocks == 0, touch `bytes` bytes at
/// t % spread * bytes + base. `wide`: of device scope. `early`: a read that all threads make and
/// that those take, at once or (`late`) behind the next step.
struct Step {
  What what = What::read;
  bool shared = false, wide = true, early = false, late = false;
  unsigned bytes = 4, spread = 1, base = 0, every = 1, rest = 0, blocks = 1;

  bool touches() const { return what < What::barrier; }
  bool has(unsigned block, unsigned thread) const {
    return touches() && thread % every == rest && block % blocks == 0;
  }
  unsigned offset(unsigned thread) const { return thread % spread * bytes + base; }
};

struct Program {
  std::vector<Step> steps;
  unsigned grid = 1, block = 64, rounds = 1;
};

struct Generator {
  std::mt19937 random;

  unsigned pick(std::initializer_list<unsigned> values) {
    return values.begin()[random() % values.size()];
  }
  Step access(unsigned kinds, unsigned strong_bytes, bool shared, bool scopes, bool parts) {
    Step step;
    step.shared = shared;
    const unsigned kind = random() % 8;
    step.what =
        kind < 2   ? What::read
        : kind < 4 ? What::write
        : kind < 6
            ? What::add
            : std::array{
                  What::add,           What::swap,          What::relaxed_read,
                  What::relaxed_write, What::volatile_read, What::volatile_write}[random() % kinds];
    step.bytes = is_strong(step.what) ? strong_bytes : pick({4, 4, 4, 8, 2});
    step.wide = !scopes || is_volatile(step.what) || random() % 2 == 0;
    step.spread = pick({1, 1, 1, 2, 33, 64});
    step.base = 8 * pick({0, 0, 0, 1});
    step.every = pick({1, 2, 32, 64, 128, 128});
    step.rest = pick({0, 0, 1, 33, 64}) % step.every;
    step.blocks = pick({1, 1, 1, 2, 4});
    step.early = step.what == What::read && random() % 3 == 0;
    // Where parts of blocks are ordered, a write between the two may stay unseen.
    step.late = step.early && !parts && random() % 2 == 0;
    return step;
  }
  Program program() {
    Program made;
    made.grid = pick({1, 2, 2, 3});
    made.block = pick({32, 64, 128});
    made.rounds = pick({1, 1, 2});
    const unsigned kinds = pick({1, 2, 4, 6}), strong_bytes = pick({4, 4, 8});
    const bool scopes = random() % 4 == 0, relays = made.grid > 1 && random() % 2 == 0;
    const bool both = random() % 4 == 0, shared = random() % 3 == 0;
    const unsigned accesses = 2 + random() % 4;
    for (unsigned i = 0; i < accesses; ++i) {
      made.steps.push_back(
          access(kinds, strong_bytes, both ? random() % 2 == 0 : shared, scopes, scopes || relays));
      Step order;
      const unsigned kind = random() % 6;
      if (kind == 5) continue;
      order.what = relays && kind < 3 ? What::relay : kind < 4 ? What::barrier : What::warp_barrier;
      made.steps.push_back(order);
    }
    return made;
  }
};

/// The use of an early read's value.
std::string take_of(const Step& step, unsigned number) {
  const std::string n = std::to_string(number), bits = std::to_string(8 * step.bytes);
  return "selp.b" + bits + " %t" + bits + ", %e" + bits + "_" + n + ", 0, %q" + n + "; ";
}

std::string text_of(const Step& step, unsigned number, unsigned count) {
  if (step.what == What::barrier) return "bar.sync 0;\n";
  if (step.what == What::warp_barrier) return "bar.warp.sync 0xffffffff;\n";
  const std::string n = std::to_string(number);
  if (step.what == What::relay) {
    return "bar.sync 0; mad.lo.u32 %r3, %r5, " + std::to_string(count) + ", " + n +
           "; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd3, %rd1; @%p0 bra L" + n + "; W" + n +
           ": ld.acquire.gpu.u32 %r4, [%rd3+" + std::to_string(kFlags) +
           "]; setp.ne.u32 %p1, %r4, %r2; @%p1 bra W" + n +
           "; add.u32 %r4, %r4, 1; st.release.gpu.u32 [%rd3+" + std::to_string(kFlags) +
           "], %r4; L" + n + ": bar.sync 0;\n";
  }
  std::string text =
      "rem.u32 %r3, %r1, " + std::to_string(step.every) + "; setp.ne.u32 %p1, %r3, " +
      std::to_string(step.rest) + "; rem.u32 %r3, %r2, " + std::to_string(step.blocks) +
      "; setp.ne.or.u32 %p1, %r3, 0, %p1; rem.u32 %r3, %r1, " + std::to_string(step.spread) +
      "; mad.lo.u32 %r3, %r3, " + std::to_string(step.bytes) + ", " + std::to_string(step.base) +
      "; cvt.u64.u32 %rd3, %r3; add.u64 %rd3, %rd3, %rd1; mov.u32 %r4, s; "
      "add.u32 %r3, %r3, %r4; ";
  // No two writes write the same value, not even of two bytes.
  text += "mad.lo.u32 %r6, %r5, 16, " + std::to_string(number + 1) +
          "; mad.lo.u32 %r6, %r6, 512, %r7; cvt.u16.u32 %h1, %r6; mov.b64 %rd4, {%r6, %r6}; ";
  if (!step.early) text += "@%p1 bra L" + n + "; ";
  const std::string space = step.shared ? ".shared" : ".global";
  const std::string at = step.shared ? "[%r3]" : "[%rd3]";
  const std::string scope = step.wide ? ".gpu" : ".cta";
  const std::string bits = std::to_string(8 * step.bytes);
  const std::string value = step.bytes == 2 ? "%h1" : step.bytes == 4 ? "%r6" : "%rd4";
  const std::string zero = step.bytes == 8 ? "%rd5" : "%r8";
  if (step.early) {
    text += "not.pred %q" + n + ", %p1; ld" + space + ".u" + bits + " %e" + bits + "_" + n + ", " +
            at + "; ";
    return text + (step.late ? "" : take_of(step, number)) + "\n";
  }
  const auto load = [&](const std::string& how, const std::string& reach) {
    return "ld" + how + reach + space + ".u" + bits + " " + value + ", " + at + ";";
  };
  const auto store = [&](const std::string& how, const std::string& reach) {
    return "st" + how + reach + space + ".u" + bits + " " + at + ", " + value + ";";
  };
  switch (step.what) {
    case What::read:
      text += load("", "");
      break;
    case What::write:
      text += store("", "");
      break;
    case What::relaxed_read:
      text += load(".relaxed", scope);
      break;
    case What::relaxed_write:
      text += store(".relaxed", scope);
      break;
    case What::volatile_read:
      text += load(".volatile", "");
      break;
    case What::volatile_write:
      text += store(".volatile", "");
      break;
    case What::swap:  // never swaps
      text += "atom.relaxed" + scope + space + ".cas.b" + bits + " " + zero + ", " + at + ", -1, " +
              value + ";";
      break;
    default:
      text += "red.relaxed" + scope + space + ".add.u" + bits + " " + at + ", " + value + ";";
  }
  return text + " L" + n + ":\n";
}

/// One line for each step, after a head whose lines are counted in `*first_line`.
std::string text_of(const Program& program, int* first_line) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<10>; .reg .b64 %rd<6>;\n"
      ".shared .align 16 .b8 s[1024];\n"
      ".reg .pred %q<16>; .reg .b16 %e16_<16>, %t16; .reg .b32 %e32_<16>, %t32;\n"
      ".reg .b64 %e64_<16>, %t64;\n"
      "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r5, 0;\n"
      "setp.ne.u32 %p0, %r1, 0; mad.lo.u32 %r7, %r2, 128, %r1; add.u32 %r7, %r7, 1;\nLOOP:\n";
  *first_line = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
  const auto count = static_cast<unsigned>(program.steps.size());
  for (unsigned i = 0; i < count; ++i) {
    text += text_of(program.steps[i], i, count);
    const bool takes = i > 0 && program.steps[i - 1].late;
    if (takes) text.insert(text.size() - 1, take_of(program.steps[i - 1], i - 1));
  }
  if (program.steps.back().late) text += take_of(program.steps.back(), count - 1);
  return text + "add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, " + std::to_string(program.rounds) +
         "; @%p2 bra LOOP; ret;\n}\n";
}

struct Access {
  unsigned at;  ///< steps before
  unsigned step, block, thread;
};

/// Whether steps between the two order them, in one direction.
bool is_before(const Program& program, const Access& x, const Access& y) {
  if (x.block == y.block && x.thread == y.thread) return x.at < y.at;
  for (unsigned i = x.at; i < y.at; ++i) {
    const What what = program.steps[i % program.steps.size()].what;
    if (what == What::relay && x.block <= y.block) return true;
    if (x.block != y.block) continue;
    if (what == What::barrier || (what == What::warp_barrier && x.thread / 32 == y.thread / 32))
      return true;
  }
  return false;
}

/// Whether two accesses of the same bytes race where nothing orders them.
bool conflict(const Program& program, const Access& x, const Access& y) {
  const Step &a = program.steps[x.step], &b = program.steps[y.step];
  if (reads(a.what) && reads(b.what)) return false;
  if ((a.what == What::swap && reads(b.what)) || (b.what == What::swap && reads(a.what)))
    return false;
  if (!is_strong(a.what) || !is_strong(b.what)) return true;
  if (x.block != y.block) return !a.wide || !b.wide;
  return x.thread / 32 == y.thread / 32 && (is_volatile(a.what) || is_volatile(b.what));
}

Pairs races_of(const Program& program) {
  std::map<std::pair<unsigned, unsigned>, std::vector<Access>> memory;  // by space and byte
  for (unsigned at = 0; at < program.rounds * program.steps.size(); ++at) {
    const auto number = static_cast<unsigned>(at % program.steps.size());
    const Step& step = program.steps[number];
    for (unsigned b = 0; b < program.grid; ++b) {
      for (unsigned t = 0; t < program.block; ++t) {
        if (!step.has(b, t)) continue;
        for (unsigned byte = 0; byte < step.bytes; byte += 2)
          memory[{step.shared ? b + 1 : 0, step.offset(t) + byte}].push_back({at, number, b, t});
      }
    }
  }
  Pairs pairs;
  for (const auto& [place, all] : memory) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Access &x = all[j], &y = all[i];
        const std::pair<int, int> both =
            std::minmax(static_cast<int>(x.step), static_cast<int>(y.step));
        if (x.block == y.block && x.thread == y.thread) continue;
        if (pairs.contains(both) || !conflict(program, x, y)) continue;
        if (!is_before(program, x, y) && !is_before(program, y, x)) pairs.insert(both);
      }
    }
  }
  return pairs;
}

struct Subject {
  CurrentDevice device;
  CUdeviceptr buffer = 0;

  std::vector<Finding> run(const Program& program, CUfunction function) {
    const DriverApi& api = device.api;
    REQUIRE(api.cuMemsetD8(buffer, 0, kBufferBytes) == CUDA_SUCCESS);
    const CheckScope scope({false, true, false});
    void* parameters[] = {&buffer};
    REQUIRE(api.cuLaunchKernel(function, program.grid, 1, 1, program.block, 1, 1, 0, nullptr,
                               parameters, nullptr) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    return scope.findings();
  }
};

}  // namespace

TEST_CASE("check random atomic: what is found races, and it is found in every schedule") {
  Subject subject;
  const DriverApi& api = subject.device.api;
  REQUIRE(api.cuMemAlloc(&subject.buffer, kBufferBytes) == CUDA_SUCCESS);
  int racing = 0, clean = 0;
  for (unsigned seed = first_seed(); seed < first_seed() + 1500; ++seed) {
    Generator generator{std::mt19937(seed)};
    const Program program = generator.program();
    const Pairs expected = races_of(program);
    int line = 0;
    const std::string text = text_of(program, &line);
    INFO("seed ", seed, ", racing ", shown(expected), "\n", text);
    CUmodule module = nullptr;
    REQUIRE(api.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
    CUfunction function = nullptr;
    REQUIRE(api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
    for (unsigned schedule = 0; schedule < 4; ++schedule) {
      INFO("schedule ", schedule);
      set_launch_seed(schedule == 0 ? std::nullopt
                                    : std::optional<std::uint64_t>(seed * 8 + schedule));
      const std::vector<Finding> found = subject.run(program, function);
      CHECK(found.empty() == expected.empty());
      for (const Finding& finding : found) {
        INFO(finding.to_string());
        REQUIRE(finding.other);
        CHECK(is_right(expected, finding, line,
                       [&](std::size_t step) { return reads(program.steps[step].what); }));
      }
    }
    REQUIRE(api.cuModuleUnload(module) == CUDA_SUCCESS);
    ++(expected.empty() ? clean : racing);
  }
  set_launch_seed(std::nullopt);
  CHECK(racing > 300);
  CHECK(clean > 300);
  CHECK(api.cuMemFree(subject.buffer) == CUDA_SUCCESS);
}
