// The ISA table agrees with itself, with the matcher and with its documentation page.
#include "sim/ptx/isa.h"
#include "sim/ptx/isa_table.h"
#include "sim/ptx/manual.h"
#include "sim/ptx/modifier_sets.h"
#include "unit/sim/ptx/isa_page.h"
#include "unit/sim/ptx/ptx_fixture.h"

#include <random>
#include <set>

using namespace kernwright::sim::ptx;
using namespace kernwright::sim::ptx::testing;

namespace {

/// An opcode that the row must accept: optional words in or out, choices drawn by `random`. Reads
/// the pattern's text anew, apart from the table's own reader.
std::string sample(const IsaRow& row, std::mt19937& random) {
  std::string opcode(row.stem);
  std::string_view rest = row.modifiers;
  while (!rest.empty()) {
    const bool optional = rest[0] == '[';
    const std::size_t close = optional ? rest.find(']') : 0;
    std::string_view word = optional ? rest.substr(2, close - 2) : rest.substr(1);
    if (!optional) {
      word = word[0] == '{' ? word.substr(0, word.find('}') + 1)
                            : word.substr(0, std::min(word.size(), word.find_first_of(".[")));
    }
    rest.remove_prefix(optional ? close + 1 : word.size() + 1);
    if (optional && random() % 2 == 0) continue;
    std::vector<std::string> choices;
    if (word[0] == '{') {
      std::stringstream list{std::string(word.substr(1, word.size() - 2))};
      for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
    } else {
      for (const Word& member : named_set(word)) choices.emplace_back(member.text);
      if (choices.empty()) choices.emplace_back(word);
    }
    opcode += "." + choices[random() % choices.size()];
  }
  return opcode;
}

}  // namespace

TEST_CASE("isa: every row accepts what its pattern says") {
  std::mt19937 random(7);
  for (const IsaRow& row : isa_rows()) {
    for (int i = 0; i < 20; ++i) {
      const std::string opcode = sample(row, random);
      CAPTURE(opcode);
      std::vector<Modifiers> modifiers;
      const std::vector<const IsaRow*> rows = match_all(opcode, modifiers);
      CHECK(std::count(rows.begin(), rows.end(), &row) == 1);
      CHECK(rows.size() == modifiers.size());
    }
  }
}

TEST_CASE("isa: words beyond the pattern are refused") {
  std::mt19937 random(9);
  Modifiers modifiers;
  for (const IsaRow& row : isa_rows()) {
    const std::string opcode = sample(row, random);
    CAPTURE(opcode);
    CHECK(match(opcode + ".nonsense", modifiers) == nullptr);
    CHECK(match(opcode + ".", modifiers) == nullptr);
  }
  for (const std::string_view opcode : {"", ".", "add", "add.", "add..s32", "add.s32.s32",
                                        "ADD.s32", "setp.lo.s32", "mul.s32", "cvt.f32.f64"}) {
    CAPTURE(std::string(opcode));
    CHECK(match(opcode, modifiers) == nullptr);
  }
}

TEST_CASE("isa: words stand in any order, but those of one kind, as for ptxas") {
  const auto same = [](std::string_view written, std::string_view manual) {
    Modifiers x, y;
    const IsaRow* const row = match(written, x);
    CAPTURE(std::string(written));
    REQUIRE(row != nullptr);
    CHECK(row == match(manual, y));
    CHECK(x.type == y.type);
    CHECK(x.rounding == y.rounding);
    CHECK(x.sat == y.sat);
    CHECK(x.satfinite == y.satfinite);
    CHECK(x.relu == y.relu);
    CHECK(x.trans == y.trans);
    CHECK(x.space == y.space);
    CHECK(x.vector == y.vector);
    CHECK(x.vote == y.vote);
  };
  same("add.s32.sat", "add.sat.s32");
  same("cvt.f32.rn.s32", "cvt.rn.f32.s32");
  same("cvt.rn.e4m3x2.f32.satfinite", "cvt.rn.satfinite.e4m3x2.f32");
  same("fma.rn.f16x2.relu", "fma.rn.relu.f16x2");
  same("ldmatrix.sync.aligned.x4.m8n8.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16");
  same("ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16",
       "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16");
  same("stmatrix.sync.aligned.m8n8.x4.shared.b16.trans",
       "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16");
  same("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32.satfinite",
       "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32");
  same("vote.ballot.sync.b32", "vote.sync.ballot.b32");
  same("min.abs.NaN.xorsign.f16x2", "min.NaN.xorsign.abs.f16x2");
  same("max.f32.abs.xorsign", "max.xorsign.abs.f32");
  Modifiers modifiers;
  for (const std::string_view opcode :
       {"cvt.rn.satfinite.f32.e4m3x2", "cvt.u32.wide.s16", "mul.wide.u32.u32",
        "mma.sync.aligned.m16n8k8.col.row.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f32"}) {
    CAPTURE(std::string(opcode));
    CHECK(match(opcode, modifiers) == nullptr);
  }
}

TEST_CASE("isa: modifiers arrive in their fields") {
  const auto of = [](std::string_view opcode) {
    Modifiers modifiers;
    REQUIRE(match(opcode, modifiers) != nullptr);
    return modifiers;
  };
  const Modifiers fma = of("fma.rz.ftz.sat.f32");
  CHECK(fma.rounding == Rounding::rz);
  CHECK((fma.ftz && fma.sat && fma.type[0] == Type::f32 && fma.type_count == 1));
  const Modifiers setp = of("setp.geu.xor.f64");
  CHECK((setp.compare == Compare::geu && setp.bool_op == BoolOp::xor_));
  const Modifiers load = of("ld.acquire.sys.shared.v4.u32");
  CHECK((load.semantics == Semantics::acquire && load.scope == Scope::sys));
  CHECK((load.space == Space::shared && load.vector == 4));
  const Modifiers atom = of("atom.release.cluster.shared::cta.cas.b64");
  CHECK((atom.atom == AtomOp::cas && atom.scope == Scope::cluster && atom.space == Space::shared));
  const Modifiers mma = of("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc");
  CHECK((mma.m == 16 && mma.n == 8 && mma.k == 256 && mma.bool_op == BoolOp::and_));
  CHECK((mma.layout_a == Layout::row && mma.layout_b == Layout::col && mma.type_count == 4));
  const Modifiers copy = of("cp.async.ca.shared.global");
  CHECK((copy.space == Space::shared && copy.space2 == Space::global));
  const Modifiers wait = of("mbarrier.try_wait.parity.acquire.cta.shared::cta.b64");
  CHECK((wait.verb == Verb::try_wait && wait.parity));
  const Modifiers min = of("min.ftz.NaN.xorsign.abs.f32");
  CHECK((min.nan && min.xorsign_abs));
  for (const std::string_view opcode : {"fence.sc.cta", "fence.cta.sc"}) {  // libcu++ writes both
    const Modifiers fence = of(opcode);
    CHECK((fence.semantics == Semantics::sc && fence.scope == Scope::cta));
  }
  CHECK(of("cvta.to.global.u64").to);
  CHECK(of("mad.hi.cc.u32").cc);
  CHECK(of("redux.sync.xor.b32").atom == AtomOp::xor_);
  CHECK(of("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16").selector == 2);
  CHECK(of("vote.sync.ballot.b32").vote == VoteMode::ballot);
}

TEST_CASE("isa: operand specifications are consistent") {
  for (const IsaRow& row : isa_rows()) {
    CAPTURE(std::string(row.stem) + std::string(row.modifiers));
    const RowOperands& operands = row_operands(row);
    if (operands.rule == OperandRule::listed) {
      CHECK(operands.specs.size() >= operands.required);
    }
    CHECK(row.handler < Handler::count_);
    CHECK(row.min_sm >= 0);
    CHECK(row.min_sm <= 90);
  }
}

TEST_CASE("isa: arithmetic, logic, comparisons and selects compute on registers alone") {
  for (const Handler handler : {Handler::add, Handler::madc, Handler::lop3, Handler::prmt,
                                Handler::fma, Handler::testp, Handler::set, Handler::slct}) {
    CHECK(computes(handler));
  }
  for (const Handler handler : {Handler::mov, Handler::ld, Handler::shfl, Handler::atom,
                                Handler::bra, Handler::mma, Handler::vadd, Handler::setmaxnreg}) {
    CHECK_FALSE(computes(handler));
  }
}

TEST_CASE("isa: every row belongs to an instruction of the manual, what has none says why") {
  std::set<const IsaRow*> found;
  std::set<std::string_view> names;
  for (const ManualEntry& entry : manual_entries()) {
    CAPTURE(std::string(entry.name));
    CHECK(names.insert(entry.name).second);
    const std::vector<const IsaRow*> rows = find_rows(entry);
    CHECK((!rows.empty() || !entry.reason.empty()));
    found.insert(rows.begin(), rows.end());
  }
  CHECK(names.size() >= 180);
  for (const IsaRow& row : isa_rows()) {
    CAPTURE(std::string(row.stem) + std::string(row.modifiers));
    CHECK(found.contains(&row));
  }
}

TEST_CASE("isa: the documentation page is fresh") {
  const auto path = tests_folder().parent_path() / "docs" / "ptx_coverage.md";
  const bool fresh = read_file(path) == isa_page();
  CHECK_MESSAGE(fresh, "docs/ptx_coverage.md is stale: run write_isa_page docs/ptx_coverage.md");
}
