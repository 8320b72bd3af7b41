// The race check on bytes and halves of neighbouring threads: noted by words, told apart by
// threads.
#include "sim/check/history/shadow.h"
#include "sim/checks.h"
#include "unit/sim/check/check_kernel.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

namespace {

/// Elements of one width in one memory, `first` bytes behind its beginning: %r8 or %rd3 is the
/// address of the thread's own one.
struct Elements {
  bool shared = true;
  unsigned bytes = 1, first = 0;

  std::string head() const {
    const std::string size = std::to_string(bytes), from = std::to_string(first);
    return "mul.lo.u32 %r9, %r1, " + size + ";\nadd.u32 %r8, %r9, %r20;\nadd.u32 %r8, %r8, " +
           from + ";\nmul.wide.u32 %rd3, %r1, " + size + ";\nadd.u64 %rd3, %rd3, %rd1;\n" +
           "add.u64 %rd3, %rd3, " + from + ";\nand.b32 %r10, %r1, 31;\nmul.lo.u32 %r10, %r10, " +
           size + ";\nadd.u32 %r10, %r10, %r20;\nadd.u32 %r10, %r10, " + from +
           ";\nand.b32 %r11, %r1, 31;\nmul.wide.u32 %rd4, %r11, " + size +
           ";\nadd.u64 %rd4, %rd4, %rd1;\nadd.u64 %rd4, %rd4, " + from +
           ";\ncvt.u16.u32 %h1, %r1;\n";
  }
  std::string space() const { return shared ? ".shared" : ".global"; }
  std::string type() const { return space() + (bytes == 1 ? ".u8 " : ".u16 "); }
  /// Displaced by `by` bytes.
  std::string own(unsigned by = 0) const {
    return "[" + std::string(shared ? "%r8" : "%rd3") + "+" + std::to_string(by) + "]";
  }
  /// The element of the same lane of warp 0.
  std::string lane() const { return shared ? "[%r10]" : "[%rd4]"; }
  std::string of(unsigned thread) const {
    return "[" + std::string(shared ? "%r20" : "%rd1") + "+" +
           std::to_string(first + thread * bytes) + "]";
  }
  std::string read(const std::string& place) const { return "ld" + type() + "%h2, " + place; }
  std::string write(const std::string& place) const { return "st" + type() + place + ", %h1"; }
};

template <typename F>
void each_kind(F f) {
  for (const bool shared : {false, true}) {
    for (const unsigned bytes : {1u, 2u}) {
      for (unsigned first = 0; first < 4; first += bytes) {
        INFO("shared ", shared, ", bytes ", bytes, ", first ", first);
        f(Elements{shared, bytes, first});
      }
    }
  }
}

const std::string kWaitForWarp = "bar.warp.sync 0xffffffff;\n";
const std::string kWaitForAll = "bar.sync 0;\n";

std::string only(unsigned thread, const std::string& instruction) {
  return "setp.eq.u32 %p1, %r1, " + std::to_string(thread) + ";\n@%p1 " + instruction + ";\n";
}

}  // namespace

TEST_CASE("check rows: a shadow of several threads tells of each byte who touched it") {
  const Shadow base = Shadow{77} << kTickShift | Shadow{5} << kSiteShift;
  for (const std::uint32_t width : {1u, 2u}) {
    for (const std::uint32_t bytes : {1u, 3u, 7u, 8u, 12u, 14u, 15u}) {
      const std::uint32_t code = lanes_code(width, bytes);
      if (width == 2 && bytes != 3 && bytes != 12 && bytes != 15) {
        CHECK(code == 0);
        continue;
      }
      for (const std::uint32_t thread : {0u, 32u, 1022u}) {
        const Shadow shadow = base | Shadow{code} << kBytesShift | thread;
        CHECK(kTouchedBytes[code] == bytes);
        for (std::uint32_t b = 0; b < 4; ++b) {
          const Shadow byte = byte_shadow(shadow, b);
          CHECK((byte != 0) == ((bytes >> b & 1) != 0));
          if (byte == 0) continue;
          CHECK(get_thread(byte) == (thread + b / width) % 1024);
          CHECK((get_bytes(byte) >> b & 1) != 0);
          CHECK(((byte ^ shadow) & ~(kAllBytes | kThreadMask)) == 0);
        }
      }
    }
  }
}

TEST_CASE("check rows: threads that keep to their own elements do not race") {
  each_kind([](const Elements& e) {
    const std::string update = e.read(e.own()) + ";\n" + e.write(e.own()) + ";\n";
    for (const unsigned block : {32u, 64u, 96u, 100u}) {
      CHECK(!races(e.head() + update + update, {1, block, false}));
      CHECK(!races(e.head() + update + kWaitForWarp + update + kWaitForAll + update,
                   {1, block, false}));
    }
  });
}

TEST_CASE("check rows: who touches another thread's element races with that very thread") {
  each_kind([](const Elements& e) {
    // Thread 70 is of the third warp, and its own element is apart.
    for (const unsigned thread : {0u, 1u, 2u, 3u, 4u, 30u, 31u, 32u, 33u, 34u, 63u}) {
      INFO("thread ", thread);
      for (const bool writes : {true, false}) {
        const std::string row = "setp.lt.u32 %p2, %r1, 64;\n@!%p2 bra ON;\n" +
                                (writes ? e.write(e.own()) : e.read(e.own())) + ";\nON:\n";
        const std::string other = only(70, writes ? e.read(e.of(thread)) : e.write(e.of(thread)));
        const auto findings = run(e.head() + row + other, {1, 96, false});
        REQUIRE(findings.size() == 1);
        CHECK(findings[0].other->thread == std::array<unsigned, 3>{thread, 0, 0});
        CHECK(!races(e.head() + row + kWaitForAll + other, {1, 96, false}));
        CHECK(!races(e.head() + row + only(70, writes ? e.read(e.of(64)) : e.write(e.of(64))),
                     {1, 96, false}));
      }
    }
  });
}

TEST_CASE("check rows: of several readers all are known") {
  each_kind([](const Elements& e) {
    const std::string read = e.read(e.lane()) + ";\n", write = only(5, e.write(e.of(5)));
    CHECK(!races(e.head() + read + read + write, {1, 32, false}));
    CHECK(races(e.head() + read + write, {1, 64, false}));
    CHECK(races(e.head() + read + kWaitForWarp + write, {1, 64, false}));
    CHECK(!races(e.head() + read + kWaitForAll + write, {1, 64, false}));
    // The neighbour's too, after the own one or before.
    const std::string own = e.read(e.own()) + ";\n", next = e.read(e.own(e.bytes)) + ";\n";
    const std::string by_first = only(32, e.write(e.of(32))),
                      by_second = only(33, e.write(e.of(33)));
    for (const std::string& both : {own + next, next + own}) {
      CHECK(races(e.head() + both + write, {1, 32, false}));
      CHECK(!races(e.head() + both + kWaitForWarp + write, {1, 32, false}));
      CHECK(races(e.head() + both + kWaitForWarp + by_first, {1, 64, false}));
      CHECK(!races(e.head() + both + kWaitForWarp + by_second, {1, 64, false}));
      // Where the first warp's reads are of the same time: it waits for nothing.
      CHECK(!races(e.head() + both + "setp.lt.u32 %p3, %r1, 32;\n@%p3 bra END;\n" + kWaitForWarp +
                       by_second + "END:\n",
                   {1, 64, false}));
    }
  });
}

TEST_CASE("check rows: what a loop reads again counts again") {
  each_kind([](const Elements& e) {
    for (const char* round : {"0", "1", "2"}) {  // there are two
      const std::string body = e.head() + "mov.u32 %r13, 0;\nL:\n" + e.read(e.own()) +
                               ";\nsetp.ne.u32 %p4, %r13, " + round + ";\n@%p4 bra N;\n" +
                               only(40, e.write(e.of(0))) + "N:\n" + kWaitForAll +
                               "add.u32 %r13, %r13, 1;\nsetp.lt.u32 %p5, %r13, 2;\n@%p5 bra L;\n";
      CHECK(races(body) == (round[0] != '2'));
    }
  });
}

TEST_CASE("check rows: warps race where their rows lap over each other by one element") {
  each_kind([](const Elements& e) {
    for (const unsigned lap : {0u, e.bytes}) {
      const std::string back =
          "setp.lt.u32 %p2, %r1, 32;\nselp.u32 %r12, 0, " + std::to_string(lap) +
          ", %p2;\nsub.u32 %r8, %r8, %r12;\ncvt.u64.u32 %rd5, %r12;\nsub.u64 %rd3, %rd3, %rd5;\n";
      const std::string read = e.read(e.own()) + ";\n", write = e.write(e.own()) + ";\n";
      const std::string first_reads = "@!%p2 bra W;\n" + read + "bra END;\nW:\n" + write + "END:\n";
      const std::string first_writes =
          "@!%p2 bra R;\n" + write + "bra END;\nR:\n" + read + "END:\n";
      for (const std::string& rows : {write, first_reads, first_writes}) {
        CHECK(races(e.head() + back + rows) == (lap != 0));
      }
      CHECK(!races(e.head() + back + read));
    }
  });
}

TEST_CASE("check rows: words that were touched by bytes, and bytes by words") {
  each_kind([](const Elements& e) {
    const std::string word =
        "ld" + e.space() + ".u32 %r6, [" + (e.shared ? "%r3" : "%rd2") + "];\n";
    const std::string store =
        "st" + e.space() + ".u32 [" + (e.shared ? "%r3" : "%rd2") + "], %r1;\n";
    const std::string row = e.write(e.own()) + ";\n", read = e.read(e.own()) + ";\n";
    // The first thread of the four bytes behind the first word has no more than its own ones.
    const unsigned thread = (4 - e.first) / e.bytes;
    const std::string place = std::string(e.shared ? "[%r20" : "[%rd1") + "+4]";
    CHECK(races(e.head() + row + only(thread, "ld" + e.space() + ".u32 %r6, " + place)));
    CHECK(races(e.head() + read + only(thread, "st" + e.space() + ".u32 " + place + ", %r1")));
    for (const unsigned block : {32u, 64u}) {
      const Shape shape{1, block, false};
      CHECK(races(e.head() + row + word, shape));
      CHECK(races(e.head() + read + store, shape));
      CHECK(races(e.head() + word + row, shape));
      CHECK(races(e.head() + store + read, shape));
      CHECK(!races(e.head() + read + word + read, shape));
      CHECK(!races(e.head() + row + kWaitForAll + word + kWaitForAll + row, shape));
      CHECK(!races(e.head() + row + kWaitForAll + store + kWaitForAll + read, shape));
    }
  });
}

TEST_CASE("check rows: blocks race where their rows meet") {
  for (const unsigned first : {0u, 1u}) {
    const Elements e{false, 1, first};
    const auto rows = [&](unsigned distance) {
      return e.head() + "mul.wide.u32 %rd5, %r2, " + std::to_string(distance) +
             ";\nadd.u64 %rd3, %rd3, %rd5;\nmad.lo.u32 %r7, %r2, 64, %r1;\ncvt.u16.u32 %h1, "
             "%r7;\n" +
             e.read(e.own()) + ";\n" + e.write(e.own()) + ";\n";
    };
    CHECK(!races(rows(64), {3, 64, false}));
    CHECK(!races(rows(65), {3, 64, false}));
    CHECK(races(rows(63), {3, 64, false}));
    CHECK(races(rows(0), {3, 64, false}));
  }
}
