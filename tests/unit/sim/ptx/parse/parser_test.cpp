// Modules, functions, scopes, variables, calls and source places.
#include "unit/sim/ptx/ptx_fixture.h"

using namespace kernwright::sim::ptx;
using namespace kernwright::sim::ptx::testing;

TEST_CASE("parser: the header") {
  const auto module = parse(".version 8.5\n.target sm_90a, debug\n.address_size 64\n");
  CHECK(module->version == 85);
  CHECK(module->target == "sm_90a");
  CHECK(contains(error_of([] { parse(""); }), ".version"));
  CHECK(contains(error_of([] { parse(".version 8\n.target sm_80"); }, 1), ".version needs"));
  CHECK(contains(error_of([] { parse(".version 8.0\n.target x86"); }), "sm_"));
  CHECK(contains(error_of([] { parse(".version 8.0 .target sm_80 .address_size 32"); }), "64"));
  CHECK_NOTHROW(parse(std::string(kHeader) + std::string(3, '\0')));
}

TEST_CASE("parser: variables with every kind of initial value") {
  const auto module = parse_module(R"(
    .visible .global .align 16 .b8 text[5] = {72, 0x69, 0, -1};
    .const .align 4 .f32 values[2] = {0f3F800000, -1.5};
    .global .f64 d = 2;
    .global .u64 table[3] = {text, generic(text)+2, k};
    .global .b8 bytes[4] = {0xFF(text), 0xFF00(text), 0xFF0000(generic(text)+1), 7};
    .global .b32 grid[2][3] = {{1, 2}, {3}};
    .global .s16 open[] = {1, 2, 3};
    .global .v4 .f32 v;
    .extern .shared .align 8 .b8 dynamic[];
    .entry k() { ret; }
  )");
  REQUIRE(module->globals.size() == 9);
  const Variable& text = module->globals[0];
  CHECK(text.name == "text");
  CHECK(text.alignment == 16);
  CHECK(text.bytes() == 5);
  REQUIRE(text.init.size() == 4);
  CHECK(text.init[3].bits == 0xff);
  CHECK(module->globals[1].space == Space::constant);
  CHECK(module->globals[1].init[1].bits == 0xbfc00000);
  CHECK(module->globals[2].init[0].bits == 0x4000000000000000);
  const Variable& table = module->globals[3];
  CHECK(table.init[0].symbol == "text");
  CHECK_FALSE(table.init[0].generic);
  CHECK(table.init[1].generic);
  CHECK(table.init[1].offset == 2);
  CHECK(table.init[2].symbol == "k");
  const Variable& bytes = module->globals[4];
  CHECK(bytes.init[1].mask_shift == 8);
  CHECK(bytes.init[1].mask_bits == 8);
  CHECK(bytes.init[2].offset == 1);
  CHECK(bytes.init[2].generic);
  CHECK(bytes.init[3].mask_bits == 0);
  const Variable& grid = module->globals[5];
  CHECK(grid.count == 6);
  REQUIRE(grid.init.size() == 6);
  CHECK(grid.init[2].bits == 0);
  CHECK(grid.init[3].bits == 3);
  CHECK(module->globals[6].count == 3);
  CHECK(module->globals[7].bytes() == 16);
  CHECK(module->globals[8].is_extern);
  CHECK(module->globals[8].count == 0);
}

TEST_CASE("parser: bad variables") {
  const auto bad = [](std::string_view text) { return error_of([=] { parse_module(text); }, 4); };
  CHECK(contains(bad(".global .b32 x[2] = {1,2,3};"), "2 elements but 3"));
  CHECK(contains(bad(".global .b32 x; .global .b32 x;"), "twice"));
  CHECK(contains(bad(".global x;"), "no type"));
  CHECK(contains(bad(".global .pred x;"), "no type of a variable"));
  CHECK(contains(bad(".global .align 3 .b32 x;"), "power of two"));
  CHECK(contains(bad(".global .b32 x[-1];"), "positive"));
  CHECK(contains(bad(".global .b32 x = 1.5;"), "no .b32"));
  CHECK(contains(bad(".global .b32 x = x;"), "64 bits"));
  CHECK(contains(bad(".global .u64 x = nowhere;"), "not declared"));
  CHECK(contains(bad(".shared .b32 x = 1;"), "initial values"));
  CHECK(contains(bad(".global .b8 x = 0xFF0F(x);"), "mask"));
  CHECK(contains(bad(".global .b32 x = {{1}};"), "nested"));
  CHECK(contains(bad(".global .b128 x = -1;"), "negative initial value of .b128"));
  CHECK(contains(bad(".global .b32 x = 1/0;"), "zero"));
  CHECK(contains(bad(".texture x;"), "module level"));
}

TEST_CASE("parser: functions, parameters and directives") {
  const auto module = parse_module(R"(
    .func (.param .b32 r) f(.param .b64 a, .param .align 8 .b8 s[24]);
    .extern .func vprintf;
    .weak .func (.param .b32 r) f(.param .b64 a, .param .align 8 .b8 s[24]) .noreturn { ret; }
    .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .f32 q)
    .maxntid 128, 2 .minnctapersm 3 .maxnreg 64 .pragma "nounroll"; { ret; }
    .entry r() .reqntid 32 { .pragma "nounroll"; ret; }
  )");
  REQUIRE(module->functions.size() == 4);
  const Function& f = module->functions[0];
  CHECK(f.name == "f");
  CHECK(f.has_body);
  CHECK(f.noreturn);
  CHECK(f.is_weak);
  CHECK(f.returns.size() == 1);
  CHECK(f.params.at(1).bytes() == 24);
  CHECK(f.params.at(1).alignment == 8);
  CHECK(module->functions[1].is_extern);
  const Function& k = module->functions[2];
  CHECK(k.is_entry);
  CHECK(k.max_threads == std::array<std::uint32_t, 3>{128, 2, 1});
  CHECK(k.min_blocks == 3);
  CHECK(k.max_registers == 64);
  CHECK(module->functions[3].required_threads == std::array<std::uint32_t, 3>{32, 1, 1});
}

TEST_CASE("parser: registers and scopes") {
  const auto module = parse_body(R"(
    .reg .b32 %r<3>, x, %r1<12>;
    mov.b32 x, %r2;
    { .reg.f32 x; mov.f32 x, 0f00000000; { mov.f32 x, 1.0; } }
    mov.b32 x, %r111;
  )");
  const Function& k = module->functions[0];
  REQUIRE(k.registers.size() == 17);
  CHECK(k.registers[2].name == "%r");
  CHECK(k.registers[2].number == 2);
  CHECK(k.registers[3].number == -1);
  CHECK(k.body[0].operands[0].reg == 3);
  CHECK(k.body[0].operands[1].reg == 2);
  CHECK(k.body[1].operands[0].reg == 16);
  CHECK(k.body[2].operands[0].reg == 16);
  CHECK(k.body[3].operands[1].reg == 15);  // %r1<12> holds %r111
}

TEST_CASE("parser: labels are scoped and found in both directions") {
  const auto module = parse_body(R"(
    .reg .pred p;
    top: bra.uni down;
    { again: @p bra again; bra top; }
    { again: @!p bra again; }
    down: ret;
  )");
  const Function& k = module->functions[0];
  const auto target = [&](std::size_t i) {
    return k.labels[k.body[i].operands[0].label].instruction;
  };
  CHECK(target(0) == 4);
  CHECK(target(1) == 1);
  CHECK(target(2) == 0);
  CHECK(target(3) == 3);
  CHECK(k.body[1].guarded);
  CHECK_FALSE(k.body[1].guard_negated);
  CHECK(k.body[3].guard_negated);
  CHECK(contains(error_of([] { parse_body("bra nowhere;"); }), "nowhere"));
  CHECK(contains(error_of([] { parse_body("{ l: ret; } bra l;"); }), "not defined"));
  CHECK(contains(error_of([] { parse_body("l: ret; l: ret;"); }), "twice"));
}

TEST_CASE("parser: branch tables") {
  const auto module = parse_body(R"(
    .reg .b32 i;
    table: .branchtargets a, b, a;
    brx.idx.uni i, table;
    a: ret;
    b: exit;
  )");
  const Function& k = module->functions[0];
  const Label& table = k.labels.at(k.body[0].operands.at(1).label);
  REQUIRE(table.branch_targets.size() == 3);
  CHECK(k.labels[table.branch_targets[0]].name == "a");
  CHECK(k.labels[table.branch_targets[1]].name == "b");
}

TEST_CASE("parser: calls of every shape") {
  const auto module = parse_module(R"(
    .func plain() { ret; }
    .func (.param .b32 r) one(.param .b32 a) { ret; }
    .entry k() {
      .reg .b64 f;
      { .param .b32 x; .param .b32 y; call (y), one, (x); }
      call.uni plain;
      proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 4 .b8 _[8]);
      { .param .b32 x; .param .b32 y; .param .align 4 .b8 z[8]; call (y), f, (x, z), proto; }
      targets: .calltargets plain, one;
      call f, targets;
    }
  )");
  const Function& k = module->functions[2];
  REQUIRE(k.body.size() == 4);
  const auto& direct = k.body[0].operands;
  REQUIRE(direct.size() == 4);
  CHECK(direct[0].elements.at(0).symbol_kind == SymbolKind::variable);
  CHECK(k.variables[direct[0].elements[0].symbol_index].name == "y");
  CHECK(direct[1].symbol_kind == SymbolKind::function);
  CHECK(direct[1].symbol_index == 1);
  CHECK(direct[3].kind == OperandKind::none);
  CHECK(k.body[1].operands[0].elements.empty());
  CHECK(k.body[1].modifiers.uni);
  const auto& indirect = k.body[2].operands;
  CHECK(indirect[1].kind == OperandKind::reg);
  CHECK(indirect[2].elements.size() == 2);
  const Label& proto = k.labels.at(indirect[3].label);
  CHECK(proto.is_prototype);
  CHECK(proto.params.at(1).bytes() == 8);
  CHECK(k.labels.at(k.body[3].operands[3].label).call_targets == std::vector<std::uint32_t>{0, 1});
  const auto bad = [](std::string_view text) { return error_of([=] { parse_body(text); }); };
  CHECK(contains(bad("call nowhere;"), "nowhere"));
  CHECK(contains(bad(".reg .b64 f; call f;"), "prototype"));
  CHECK(contains(bad(".reg .b32 r; call k, (r);"), ".param"));
}

TEST_CASE("parser: aliases stand for their function") {
  const auto module = parse_module(R"(
    .func real() { ret; }
    .func other();
    .alias other, real;
    .entry k() { call other; }
  )");
  CHECK(module->functions[2].body[0].operands[1].symbol_index == 0);
}

TEST_CASE("parser: addresses, offsets and constants") {
  const auto module = parse_module(R"(
    .global .b32 g[4];
    .entry k(.param .u64 k_p) {
      .reg .b64 a; .reg .b32 x;
      .shared .b32 s[2];
      ld.param.u64 a, [k_p];
      ld.global.u32 x, [a+-4];
      ld.global.u32 x, [a - 8];
      ld.global.u32 x, [g + 4*2];
      ld.shared.u32 x, [s+4];
      ld.global.u32 x, [0x1000];
      mov.u64 a, g+12;
      mov.u32 x, s;
      mov.u32 x, (WARP_SZ << 1) | 3;
      mov.u32 x, ~0;
      mov.u32 x, -7/2;
      ld.global.u32 x, [a].unified;
    })");
  const auto& body = module->functions[0].body;
  CHECK(body[0].operands[1].symbol_kind == SymbolKind::parameter);
  CHECK(body[1].operands[1].offset == -4);
  CHECK(body[2].operands[1].offset == -8);
  CHECK(body[3].operands[1].symbol_kind == SymbolKind::global);
  CHECK(body[3].operands[1].offset == 8);
  CHECK(body[4].operands[1].symbol_kind == SymbolKind::variable);
  CHECK(body[5].operands[1].base == OperandKind::integer);
  CHECK(body[5].operands[1].offset == 0x1000);
  CHECK(body[6].operands[1].offset == 12);
  CHECK(body[7].operands[1].symbol_kind == SymbolKind::variable);
  CHECK(body[8].operands[1].bits == 67);
  CHECK(body[9].operands[1].bits == ~std::uint64_t{0});
  CHECK(static_cast<std::int64_t>(body[10].operands[1].bits) == -3);
  CHECK(body[11].modifiers.unified);
}

TEST_CASE("parser: opcodes with spaces inside") {
  const auto module = parse_instruction("ld .global .v2\n.f32 { %f1 , %f2 } , [ %l1 ] ;");
  CHECK(module->functions[0].body[0].opcode == "ld.global.v2.f32");
}

TEST_CASE("parser: places, inlined code and errors that carry them") {
  const std::string text =
      std::string(kHeader) + R"(.entry k() {
    .reg .b32 %r<2>;
    .loc 1 10 3
    mov.b32 %r1, 0;
    .loc 2 99 1, function_name $L__info0, inlined_at 1 11 5
    mov.b32 %r1, 1;
    .loc 2 50 1, function_name $L__info1+4, inlined_at 2 99 1
    mov.b32 %r1, 2;
    .loc 1 0 0
    mov.b32 %r1, 3;
    .loc 3 7 7, function_name $L__info1, inlined_at 1 12 5
    mov.b32 %r1, 4;
  })" +
      "\n.file 1 \"user.cu\"\n.file 2 \"/x/include/cuda_fp16.hpp\"\n.file 3 \"mine.cuh\", 12, 34\n";
  const auto module = parse(text);
  const auto& body = module->functions[0].body;
  CHECK(body[0].source.line == 10);
  CHECK(body[1].source.file == 1);
  CHECK(body[1].source.line == 11);
  CHECK(body[2].source.line == 11);
  CHECK(body[3].source.line == 11);  // line 0 says nothing
  CHECK(body[4].source.file == 3);
  CHECK(body[4].source.line == 7);

  std::string broken = text;
  broken.replace(broken.find("mov.b32 %r1, 2"), 3, "tex");
  try {
    parse(broken);
    FAIL("parsed");
  } catch (const PtxError& error) {
    CHECK(error.opcode == "tex.b32");
    CHECK(error.source.line == 11);
    CHECK(error.file == "user.cu");
    CHECK(contains(error.what(), "user.cu:11"));
  }
}

TEST_CASE("parser: debug sections are skipped") {
  const auto module = parse_module(R"(
    .entry k() { ret; }
    .section .debug_info { .b32 12, $L + 4; .b8 1
      label: .b64 .debug_abbrev }
    .global .b32 after;
  )");
  CHECK(module->globals.size() == 1);
  CHECK(contains(error_of([] { parse_module(".section .debug_info { .b8 1"); }), "not closed"));
}

TEST_CASE("parser: broken bodies name their line") {
  const auto bad = [](std::string_view text, int line) {
    return error_of([=] { parse_body(text); }, line);
  };
  CHECK(contains(bad("ret", 7), "found '}'"));
  CHECK(contains(bad("\n.reg .b32 %r<2>, %r<3>;", 7), "twice"));
  CHECK(contains(bad("mov.b32 %r1, 1;", 6), "%r1"));
  CHECK(contains(bad("@q bra x;", 6), "q"));
  CHECK(contains(bad(".reg .b32 q; @q ret;", 6), "not a predicate"));
  CHECK(contains(bad(".reg .v4 .f64 q;", 6), "128 bits"));
  CHECK(contains(bad(".reg .b32 q; mov.b32 q, {q,{q,q}};", 6), "inside a vector"));
  CHECK(contains(bad("5;", 6), "begins no statement"));
  CHECK(contains(error_of([] { parse_module(".entry k() { ret;"); }), "not closed"));
  CHECK(contains(error_of([] { parse_module(".entry k() {} .entry k() {}"); }), "twice"));
  CHECK(contains(error_of([] { parse_module(".func f(.reg .b32 x);"); }), "registers"));
}
