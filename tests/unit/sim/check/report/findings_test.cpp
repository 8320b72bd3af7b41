// The list of findings: equal ones become one, the limit holds, text and JSON say everything.
#include "sim/check/report/findings.h"

#include "base/errors.h"
#include "sim/checks.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

Finding race(int line, int other_line) {
  Finding finding;
  finding.fault.kind = FaultKind::race;
  finding.fault.message = "write and read of \"x\"\n";
  finding.fault.kernel = "k";
  finding.fault.file = "k.cu";
  finding.fault.line = line;
  finding.fault.ptx_line = 10 * line;
  finding.what = "read";
  finding.value = "0x01";
  finding.hint = "wait";
  OtherAccess other;
  other.what = "write";
  other.line = other_line;
  other.ptx_line = 10 * other_line;
  other.thread = {3, 2, 1};
  other.value = "0x02";
  finding.other = other;
  return finding;
}

}  // namespace

TEST_CASE("findings: the same places make one finding with a count") {
  Findings findings;
  findings.add(race(1, 2));
  findings.add(race(1, 2));
  findings.add(race(2, 1));
  const auto list = findings.list();
  REQUIRE(list.size() == 2);
  CHECK(list[0].count == 2);
  CHECK(list[1].count == 1);
  CHECK(findings.total() == 3);
  CHECK(findings.take().size() == 2);
  CHECK(findings.list().empty());
  CHECK(findings.total() == 0);
}

TEST_CASE("findings: the instructions of one line are one place, whatever their number") {
  Findings findings;
  for (int i = 0; i < 8; ++i) {
    Finding finding = race(1, 2);
    finding.fault.ptx_line += i;
    finding.other->ptx_line += 100 * i;
    finding.count = 4;
    findings.add(std::move(finding));
  }
  const auto list = findings.list();
  REQUIRE(list.size() == 1);
  CHECK(list[0].count == 32);
  CHECK(list[0].fault.ptx_line == 10);
}

TEST_CASE("findings: other lines, files, kernels, code and unknown lines are other places") {
  Findings findings;
  const auto add = [&](auto change) {
    Finding finding = race(1, 2);
    change(finding);
    findings.add(std::move(finding));
  };
  add([](Finding&) {});
  add([](Finding& finding) { finding.other->line = 3; });
  add([](Finding& finding) { finding.fault.file = "k.h"; });
  add([](Finding& finding) { finding.other->file = "k.h"; });
  add([](Finding& finding) { finding.fault.kernel = "l"; });
  add([](Finding& finding) { finding.code = 7; });
  add([](Finding& finding) { finding.what = "write"; });
  add([](Finding& finding) { finding.fault.line = 0; });
  add([](Finding& finding) {
    finding.fault.line = 0;
    finding.fault.ptx_line = 11;
  });
  CHECK(findings.list().size() == 9);
  CHECK(code_id("a") != code_id("b"));
}

TEST_CASE("findings: beyond the limit only the total grows") {
  Findings findings;
  findings.set_limit(2);
  for (int line = 1; line <= 5; ++line) findings.add(race(line, 9));
  CHECK(findings.list().size() == 2);
  CHECK(findings.total() == 5);
}

TEST_CASE("findings: text and JSON name both places") {
  const Finding list[] = {race(4, 7)};
  const std::string text = findings_text(list);
  for (const char* part :
       {"race", "k.cu:4", "line 7", "thread (3, 2, 1)", "0x01", "0x02", "wait"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(findings_text({}) == "no findings\n");
  CHECK(findings_text(list, 1).ends_with("\n1 finding\n"));
  CHECK(findings_text(list, 10).find("1 finding, and 9 more times") != std::string::npos);
  CHECK(findings_text({}, 3).starts_with("0 findings, and 3 more times"));
  const auto json = nlohmann::json::parse(findings_json(list));
  REQUIRE(json.size() == 1);
  CHECK(json[0]["kind"] == "race");
  CHECK(json[0]["message"] == "write and read of \"x\"\n");
  CHECK(json[0]["other"]["line"] == 7);
  CHECK(json[0]["other"]["first_line"] == 1);
  CHECK(json[0]["other"]["thread"] == nlohmann::json({3, 2, 1}));
  CHECK(nlohmann::json::parse(findings_json({})).empty());
}

TEST_CASE("findings: both sides are numbered in the same way") {
  Finding finding = race(4, 7);
  finding.fault.file = finding.other->file = "app.py";
  finding.fault.first_line = finding.other->first_line = 41;
  const std::string text = finding.to_string();
  CHECK(text.find("at app.py:44 (line 4 of the kernel's text)") != std::string::npos);
  CHECK(text.find("at app.py:47 (line 7 of the kernel's text)") != std::string::npos);
}

TEST_CASE("findings: kernels are named as in C++") {
  Finding finding = race(1, 2);
  finding.fault.kernel = "_Z1fILi64EdEvPT0_";
  CHECK(finding.to_string().find("in f<64, double>, block") != std::string::npos);
  const Finding list[] = {finding};
  CHECK(nlohmann::json::parse(findings_json(list))[0]["kernel"] == finding.fault.kernel);
}

TEST_CASE("findings: words of checks") {
  const std::vector<std::string> some{"memory", "race"}, all{"all"}, wrong{"rase"};
  const std::vector<std::string> late{"all", "rase"}, streams{"streams"};
  CHECK(check_set(some) == CheckSet{false, true, false});
  CHECK(check_set(all) == CheckSet{true, true, true});
  CHECK_THROWS_WITH_AS(check_set(wrong), doctest::Contains("rase"), InvalidArgument);
  CHECK_THROWS_WITH_AS(check_set(late), doctest::Contains("rase"), InvalidArgument);
  CHECK_THROWS_WITH_AS(check_set(streams), doctest::Contains("KERNWRIGHT_CHECKS=streams"),
                       InvalidArgument);
}
