// Divergence, calls, barriers, waiting, budgets: what the scheduler promises.
#include "unit/sim/exec/control_support.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::sim;
using namespace kernwright::sim::testing;

TEST_CASE("divergent loops with break and continue give each lane its own count") {
  // Collatz steps: loop lengths differ from lane to lane.
  const std::string body = R"(
    add.u32 %r2, %t, 1;
    mov.u32 %r3, 0;
  LOOP:
    setp.eq.u32 %p0, %r2, 1;
    @%p0 bra DONE;
    add.u32 %r3, %r3, 1;
    and.b32 %r4, %r2, 1;
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra EVEN;
    mad.lo.u32 %r2, %r2, 3, 1;
    bra LOOP;
  EVEN:
    shr.u32 %r2, %r2, 1;
    bra LOOP;
  DONE:
    cvt.u64.u32 %d1, %r3;
    st.global.u64 [%out], %d1;
    ret;)";
  for (const unsigned block : {1u, 31u, 32u, 33u, 256u}) {
    check_words(kernel(body), {.grid = 2, .block = block}, [](std::uint64_t t) {
      std::uint64_t n = t + 1, steps = 0;
      for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
      return steps;
    });
  }
}

TEST_CASE("guards on any instruction touch only lanes whose predicate holds") {
  const std::string body = R"(
    and.b32 %r2, %t, 3;
    setp.eq.u32 %p0, %r2, 1;
    setp.eq.u32 %p1, %r2, 2;
    mov.u64 %d1, 100;
    @%p0 add.u64 %d1, %d1, 7;
    @!%p0 mul.lo.u64 %d1, %d1, 2;
    @%p1 st.global.u64 [%out], %d1;
    @%p1 exit;
    @%p0 mov.u64 %d2, 5;
    @%p0 add.u64 %d1, %d1, %d2;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.block = 64},
              [](std::uint64_t t) { return t % 4 == 1 ? std::uint64_t{112} : std::uint64_t{200}; });
}

TEST_CASE("brx.idx sends each lane to its own target") {
  const std::string body = R"(
    and.b32 %r2, %t, 3;
  targets: .branchtargets A, B, C, A;
    brx.idx %r2, targets;
  A:
    mov.u64 %d1, 10;
    bra STORE;
  B:
    mov.u64 %d1, 20;
    bra STORE;
  C:
    mov.u64 %d1, 30;
  STORE:
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.block = 48}, [](std::uint64_t t) {
    return std::vector<std::uint64_t>{10, 20, 30, 10}[t % 4];
  });
}

TEST_CASE("calls: parameters, results, recursion and function pointers per lane") {
  const std::string functions = R"(
.func (.param .b64 result) factorial(.param .b64 n) {
  .reg .b64 %n, %m, %r; .reg .pred %p;
  ld.param.u64 %n, [n];
  mov.u64 %r, 1;
  setp.le.u64 %p, %n, 1;
  @%p bra OUT;
  sub.u64 %m, %n, 1;
  { .param .b64 a; .param .b64 b;
    st.param.b64 [a], %m;
    call.uni (b), factorial, (a);
    ld.param.b64 %r, [b]; }
  mul.lo.u64 %r, %r, %n;
OUT:
  st.param.b64 [result], %r;
  ret;
}
.func (.param .b64 result) twice(.param .b64 n) {
  .reg .b64 %n;
  ld.param.u64 %n, [n];
  add.u64 %n, %n, %n;
  st.param.b64 [result], %n;
  ret;
}
)";
  const std::string body = R"(
    cvt.u64.u32 %d1, %t;
    rem.u64 %d1, %d1, 12;
    and.b32 %r2, %t, 1;
    setp.eq.u32 %p0, %r2, 0;
    mov.u64 %d2, factorial;
    mov.u64 %d3, twice;
    selp.b64 %d4, %d2, %d3, %p0;
    { .param .b64 a; .param .b64 b;
      st.param.b64 [a], %d1;
    proto: .callprototype (.param .b64 _) _ (.param .b64 _);
      call (b), %d4, (a), proto;
      ld.param.b64 %d5, [b]; }
    st.global.u64 [%out], %d5;
    ret;)";
  check_words(kernel(body, functions), {.block = 64}, [](std::uint64_t t) {
    const std::uint64_t n = t % 12;
    if (t % 2 != 0) return 2 * n;
    std::uint64_t f = 1;
    for (std::uint64_t i = 2; i <= n; ++i) f *= i;
    return f;
  });
}

TEST_CASE("endless recursion is a finding") {
  const std::string functions = ".func f() {\ncall f;\nret;\n}\n";
  const Outcome outcome = run(kernel("call f;\nret;", functions), {});
  REQUIRE(outcome.fault);
  CHECK(outcome.fault->message.find("recursion") != std::string::npos);
}

TEST_CASE("local variables belong to the thread and to the call") {
  const std::string functions = R"(
.func (.param .b32 result) depth(.param .b32 n) {
  .local .align 8 .b8 box[16];
  .reg .b32 %n, %m, %r; .reg .b64 %a; .reg .pred %p;
  ld.param.u32 %n, [n];
  mov.u64 %a, box;
  st.local.u32 [%a+4], %n;
  setp.eq.u32 %p, %n, 0;
  mov.u32 %r, 0;
  @%p bra OUT;
  sub.u32 %m, %n, 1;
  { .param .b32 x; .param .b32 y;
    st.param.b32 [x], %m;
    call.uni (y), depth, (x);
    ld.param.b32 %r, [y]; }
  ld.local.u32 %m, [box+4];
  add.u32 %r, %r, %m;
OUT:
  st.param.b32 [result], %r;
  ret;
}
)";
  const std::string body = R"(
    and.b32 %r2, %t, 15;
    { .param .b32 x; .param .b32 y;
      st.param.b32 [x], %r2;
      call.uni (y), depth, (x);
      ld.param.b32 %r3, [y]; }
    cvt.u64.u32 %d1, %r3;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body, functions), {.block = 96},
              [](std::uint64_t t) { return (t % 16) * (t % 16 + 1) / 2; });
}

TEST_CASE("barriers order shared memory between warps") {
  // Each thread reads what the thread of the opposite end wrote, ten times.
  const std::string body = R"(
    .shared .align 4 .b32 box[128];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, box;
    mad.lo.u32 %r4, %r2, 4, %r3;
    sub.u32 %r5, 127, %r2;
    mad.lo.u32 %r5, %r5, 4, %r3;
    mov.u32 %r6, %r2;
    mov.u32 %r7, 0;
  LOOP:
    st.shared.u32 [%r4], %r6;
    bar.sync 0;
    ld.shared.u32 %r6, [%r5];
    bar.sync 0;
    add.u32 %r6, %r6, 1;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p0, %r7, 10;
    @%p0 bra LOOP;
    cvt.u64.u32 %d1, %r6;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.grid = 2, .block = 128},
              [](std::uint64_t t) { return t % 128 + 10; });
}

TEST_CASE("bar.red counts and combines predicates of the whole block") {
  const std::string body = R"(
    setp.lt.u32 %p0, %r1, 37;
    setp.lt.u32 %p1, %r1, 1000;
    bar.red.popc.u32 %r2, 0, %p0;
    bar.red.and.pred %p2, 1, %p1;
    bar.red.or.pred %p3, 2, !%p1;
    selp.u32 %r3, 1000, 0, %p2;
    selp.u32 %r4, 5000, 0, %p3;
    add.u32 %r2, %r2, %r3;
    add.u32 %r2, %r2, %r4;
    cvt.u64.u32 %d1, %r2;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.block = 100}, [](std::uint64_t) { return std::uint64_t{1037}; });
}

TEST_CASE("named barriers: producers arrive, consumers wait, counts are whole warps") {
  const std::string body = R"(
    .shared .align 4 .b32 box[64];
    mov.u32 %r3, box;
    setp.lt.u32 %p0, %r1, 32;
    @%p0 bra CONSUMER;
    sub.u32 %r4, %r1, 32;
    mad.lo.u32 %r4, %r4, 4, %r3;
    st.shared.u32 [%r4], %r1;
    bar.arrive 3, 64;
    ret;
  CONSUMER:
    bar.sync 3, 64;
    mad.lo.u32 %r4, %r1, 4, %r3;
    ld.shared.u32 %r5, [%r4];
    cvt.u64.u32 %d1, %r5;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.block = 64},
              [](std::uint64_t t) { return t < 32 ? t + 32 : std::uint64_t{0}; });
}

TEST_CASE("threads that returned early do not hold up a barrier; lanes may come in two groups") {
  const std::string body = R"(
    setp.ge.u32 %p0, %r1, 40;
    @%p0 bra OUT;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra EVEN;
    bar.sync 0;
    mov.u64 %d1, 1;
    bra STORE;
  EVEN:
    bar.sync 0;
    mov.u64 %d1, 2;
  STORE:
    st.global.u64 [%out], %d1;
  OUT:
    ret;)";
  check_words(kernel(body), {.block = 64}, [](std::uint64_t t) {
    return t >= 40 ? std::uint64_t{0} : t % 2 == 0 ? 2 : 1;
  });
}

TEST_CASE("a barrier that not everybody can reach is a finding that names who waits") {
  const std::string body = R"(
    .shared .align 4 .b32 flag;
    setp.lt.u32 %p0, %r1, 32;
    @%p0 bra FIRST;
    bar.sync 1;
    ret;
  FIRST:
    bar.sync 2;
    ret;)";
  const Outcome outcome = run(kernel(body), {.block = 64});
  REQUIRE(outcome.fault);
  CHECK(outcome.fault->kind == FaultKind::sync);
  CHECK(outcome.fault->opcode == "bar.sync");
  REQUIRE(outcome.fault->places.size() == 2);
  CHECK(outcome.fault->places[0].what == "warp 0: lanes 0xffffffff wait for a barrier");
  CHECK(outcome.fault->places[1].what == "warp 1: lanes 0xffffffff wait for a barrier");
  for (const FaultPlace& place : outcome.fault->places) CHECK(place.opcode == "bar.sync");
  CHECK(outcome.fault->places[0].ptx_line > outcome.fault->places[1].ptx_line);
}

TEST_CASE("a spin lock inside a warp makes progress") {
  const std::string body = R"(
    .shared .align 4 .b32 lock;
    .shared .align 4 .b32 count;
    mov.u32 %r2, lock;
    mov.u32 %r3, count;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra READY;
    st.shared.u32 [%r2], 0;
    st.shared.u32 [%r3], 0;
  READY:
    bar.sync 0;
  SPIN:
    atom.shared.cas.b32 %r4, [%r2], 0, 1;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra SPIN;
    ld.volatile.shared.u32 %r5, [%r3];
    add.u32 %r5, %r5, 1;
    st.volatile.shared.u32 [%r3], %r5;
    atom.shared.exch.b32 %r4, [%r2], 0;
    bar.sync 0;
    ld.shared.u32 %r5, [%r3];
    cvt.u64.u32 %d1, %r5;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.block = 96, .budget = 1000000},
              [](std::uint64_t) { return std::uint64_t{96}; });
}

TEST_CASE("a warp may wait for a flag that another warp or lane sets later") {
  const std::string body = R"(
    .shared .align 4 .b32 flag;
    mov.u32 %r2, flag;
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra READY;
    st.shared.u32 [%r2], 0;
  READY:
    bar.sync 0;
    setp.eq.u32 %p0, %r1, 63;
    @%p0 bra SET;
  WAIT:
    ld.volatile.shared.u32 %r3, [%r2];
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra WAIT;
    bra OUT;
  SET:
    st.volatile.shared.u32 [%r2], 9;
    mov.u32 %r3, 9;
  OUT:
    cvt.u64.u32 %d1, %r3;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.block = 64, .budget = 1000000},
              [](std::uint64_t) { return std::uint64_t{9}; });
}

TEST_CASE("an endless loop ends on the instruction budget") {
  for (const char* loop : {"LOOP:\nbra LOOP;", "LOOP:\n@%p0 bra LOOP;\nbra LOOP;",
                           "LOOP:\nsetp.lt.u32 %p0, %t, 3;\n@%p0 bra LOOP;\nbra LOOP;"}) {
    const Outcome outcome = run(kernel(loop), {.budget = 100000});
    REQUIRE(outcome.fault);
    CHECK(outcome.fault->kind == FaultKind::timeout);
    CHECK(outcome.fault->message.find("KERNWRIGHT_SIM_BUDGET") != std::string::npos);
    CHECK(outcome.fault->message.find("cooperative") == std::string::npos);
  }
  const Outcome of_two = run(kernel("LOOP:\nbra LOOP;"), {.grid = 2, .budget = 100000});
  REQUIRE(of_two.fault);
  CHECK(of_two.fault->message.find("cooperative launch") != std::string::npos);
}

TEST_CASE("the warps of a block have a budget of their own, twice that of one") {
  const std::string body = R"(
    mov.u32 %r2, 0;
  LOOP:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 20000;
    @%p0 bra LOOP;
    cvt.u64.u32 %d1, %r2;
    st.global.u64 [%out], %d1;
    ret;)";
  // Three instructions an iteration: 60000 of each warp.
  check_words(kernel(body), {.block = 96, .budget = 100000},
              [](std::uint64_t) { return std::uint64_t{20000}; });
  const Outcome outcome = run(kernel(body), {.block = 256, .budget = 100000});
  REQUIRE(outcome.fault);
  CHECK(outcome.fault->kind == FaultKind::timeout);
  CHECK(outcome.fault->message.find("the warps of a block ran more than 200000 instructions") == 0);
}

TEST_CASE("what takes long counts for several instructions in the budget") {
  const auto loop_of = [](const std::string& work, int times) {
    return kernel(".shared .align 8 .b64 word;\nmov.u32 %r2, 0;\nmov.u32 %r3, word;\nLOOP:\n" +
                  work + "\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p0, %r2, " + std::to_string(times) +
                  ";\n@%p0 bra LOOP;\nret;");
  };
  const auto ends = [&](const std::string& work, int times) {
    return !run(loop_of(work, times), {.block = 32, .budget = 100000}).fault.has_value();
  };
  CHECK(ends("xor.b32 %r4, %r2, 5;", 20000));
  // An atomic counts for each lane that executes it, here 32 or one.
  CHECK(ends("atom.shared.add.u32 %r4, [%r3], 1;", 2000));
  CHECK_FALSE(ends("atom.shared.add.u32 %r4, [%r3], 1;", 20000));
  CHECK(ends("setp.eq.u32 %p1, %t, 0;\n@%p1 atom.shared.add.u32 %r4, [%r3], 1;", 10000));
  CHECK_FALSE(ends("bar.sync 0;", 20000));
  CHECK_FALSE(ends("nanosleep.u32 100;", 20000));
  CHECK_FALSE(ends("match.any.sync.b32 %r4, %t, 0xffffffff;", 20000));
}

TEST_CASE("special registers") {
  const std::string body = R"(
    mov.u32 %r2, %laneid;
    mov.u32 %r3, %lanemask_lt;
    mov.u32 %r4, %warpid;
    mov.u32 %r5, %nctaid.x;
    add.u32 %r6, %r5, %nwarpid;
    mad.lo.u32 %r2, %r4, 100, %r2;
    mad.lo.u32 %r2, %r6, 1000, %r2;
    popc.b32 %r3, %r3;
    mad.lo.u32 %r2, %r3, 100000, %r2;
    cvt.u64.u32 %d1, %r2;
    st.global.u64 [%out], %d1;
    ret;)";
  check_words(kernel(body), {.grid = 3, .block = 96}, [](std::uint64_t t) {
    const std::uint64_t lane = t % 96 % 32, warp = t % 96 / 32;
    return lane + 100 * warp + 1000 * (3 + 64) + 100000 * lane;
  });
}

TEST_CASE("mov packs and unpacks vectors") {
  const std::string body = R"(
    .reg .b16 %h<4>;
    mov.u64 %d1, 0x1122334455667788;
    cvt.u64.u32 %d2, %t;
    add.u64 %d1, %d1, %d2;
    mov.b64 {%h0, %h1, %h2, %h3}, %d1;
    mov.b32 %r2, {%h3, %h0};
    mov.b64 {%r3, %r4}, %d1;
    mov.b64 {_, %r5}, %d1;
    mov.b64 %d3, {%r2, %r5};
    st.global.u64 [%out], %d3;
    ret;)";
  check_words(kernel(body), {.block = 33}, [](std::uint64_t t) {
    const std::uint64_t value = 0x1122334455667788 + t;
    return (value >> 32) << 32 | (value & 0xffff) << 16 | value >> 48;
  });
}

TEST_CASE("dynamic shared memory follows the static and begins poisoned") {
  const std::string before = ".extern .shared .align 16 .b8 dynamic[];\n";
  const std::string body = R"(
    .shared .align 4 .b32 fixed[3];
    mov.u32 %r2, dynamic;
    mov.u32 %r3, fixed;
    sub.u32 %r4, %r2, %r3;
    ld.shared.u32 %r5, [dynamic+4];
    mov.b64 %d1, {%r4, %r5};
    st.global.u64 [%out], %d1;
    st.shared.u32 [dynamic+4], 0;
    ret;)";
  check_words(kernel(body, before), {.grid = 2, .block = 1, .shared = 64},
              [](std::uint64_t) { return std::uint64_t{0xcdcdcdcd00000010}; });
}

TEST_CASE("registers that are read before they are written are zero in every block") {
  const std::string body = R"(
    setp.eq.u32 %p0, %t, 5000;
    @%p0 bra SET;
    bra USE;
  SET:
    mov.u64 %d7, 3;
  USE:
    add.u64 %d7, %d7, 1;
    st.global.u64 [%out], %d7;
    ret;)";
  check_words(kernel(body), {.grid = 3, .block = 64},
              [](std::uint64_t) { return std::uint64_t{1}; });
}

TEST_CASE("blocks can be suspended between turns") {
  // Block 0 waits for a flag that block 1 sets: neither could finish alone.
  const std::string text = kHeader + std::string(R"(
.visible .entry k(.param .u64 flag) {
  .reg .b64 %f; .reg .b32 %r<4>; .reg .pred %p<2>;
  ld.param.u64 %f, [flag];
  mov.u32 %r0, %ctaid.x;
  setp.eq.u32 %p0, %r0, 1;
  @%p0 bra SET;
WAIT:
  ld.volatile.global.u32 %r1, [%f];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  ret;
SET:
  st.volatile.global.u32 [%f], 1;
  ret;
})");
  Machine machine;
  const auto program = compile(text);
  const std::vector<std::uint64_t> params{machine.upload(std::vector<std::uint32_t>{0})};
  LaunchContext launch;
  launch.program = program.get();
  launch.grid = {2, 1, 1};
  launch.block = {64, 1, 1};
  launch.memory = &machine.memory;
  launch.parameters = reinterpret_cast<const std::byte*>(params.data());
  launch.parameter_bytes = 8;
  BlockRunner waits(launch), sets(launch);
  waits.start({0, 0, 0});
  sets.start({1, 0, 0});
  for (int turn = 0; turn < 5; ++turn) CHECK(waits.advance() == Progress::running);
  while (sets.advance() == Progress::running) {}
  Progress progress = Progress::running;
  for (int turn = 0; turn < 10 && progress == Progress::running; ++turn) progress = waits.advance();
  CHECK(progress == Progress::done);
}
