// Journals: trials as rows and back, resumption, two sessions on one store, a full disk.
#include "tune/session/journal.h"

#include "base/errors.h"
#include "unit/base/temporary_directory.h"
#include "unit/tune/session/scripted_backend.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace kernwright;

namespace {

Space mixed() {
  Space space;
  space.add("block", {std::int64_t{32}, std::int64_t{64}});
  space.add("fast", {true, false});
  space.add("scale", {0.5, 2.0});
  space.add("order", {std::string("row"), std::string("col")});
  return space;
}

StoreKey key_of(const Space& space) {
  StoreKey key;
  key.kernel = "k";
  key.source = "1234";
  key.space = space_hash(space);
  key.device = {"GPU", 9, 0, 132};
  key.nvrtc = "13.0";
  key.driver = 13000;
  key.policy = "cold";
  key.objective = "time";
  key.problem = {{"n", std::int64_t{4096}}};
  return key;
}

Trial sample_trial(std::uint64_t index) {
  Trial trial;
  trial.number = 3;
  trial.index = index;
  trial.times_ms = {1.5, 1.25, 2};
  trial.median_ms = 1.5;
  trial.interval_ms = {1.25, 2};
  trial.score = 1.5;
  trial.metrics = {{"energy_j", 0.25}};
  trial.compile_s = 0.5;
  trial.code = "abcd";
  trial.resources = {40, 1024, 8};
  return trial;
}

}  // namespace

TEST_CASE("journal: every trial comes back from its row") {
  const Space space = mixed();
  for (std::uint64_t index = 0; index < space.size(); ++index) {
    const Row row = Row::parse(trial_row(space, sample_trial(index)).dump());
    CHECK(row.at("config").size() == 4);
    const auto back = parse_trial(space, row);
    REQUIRE(back);
    CHECK(trial_row(space, *back).at("config") == row.at("config"));
    CHECK(back->index == index);
    CHECK(back->times_ms == sample_trial(index).times_ms);
    CHECK(back->interval_ms == sample_trial(index).interval_ms);
    CHECK(back->resources.local_bytes == 8);
    CHECK(back->metrics.at("energy_j") == 0.25);
  }
  Row row = trial_row(space, sample_trial(0));
  row["config"]["block"] = 48;
  CHECK_FALSE(parse_trial(space, row));
  row["config"]["block"] = Row::array();
  CHECK_FALSE(parse_trial(space, row));
  row = trial_row(space, sample_trial(0));
  row["status"] = "fine";
  CHECK_FALSE(parse_trial(space, row));
  row = trial_row(space, sample_trial(0));
  row["times_ms"] = "1";
  CHECK_FALSE(parse_trial(space, row));
  row = trial_row(space, sample_trial(0));
  row["score"] = nullptr;
  CHECK_FALSE(parse_trial(space, row));
  row.erase("config");
  CHECK_FALSE(parse_trial(space, row));
}

TEST_CASE("journal: a session resumes what agrees with it, and nothing else") {
  const Space space = mixed();
  const test::TemporaryDirectory folder;
  const Row about{{"launch", "n / block"}, {"arguments", "float32[4096]"}};
  {
    SessionJournal journal(folder / "store.jsonl", key_of(space), about, space);
    CHECK(journal.earlier().empty());
    journal.begin();
    journal.record(sample_trial(2));
    Trial failed = sample_trial(5);
    failed.status = TrialStatus::compile;
    failed.score.reset();
    failed.error = "\xff no UTF-8";
    journal.record(failed);
    CHECK(journal.unsaved() == 0);
  }
  {
    SessionJournal journal(folder / "store.jsonl", key_of(space), about, space);
    const auto earlier = journal.earlier();
    CHECK(earlier.size() == 2);
    CHECK(earlier.at(2).median_ms == 1.5);
    CHECK(earlier.at(5).status == TrialStatus::compile);
    journal.begin();
    journal.record(sample_trial(7));
  }
  SessionJournal third(folder / "store.jsonl", key_of(space), about, space);
  CHECK(third.earlier().size() == 3);  // of both
  const auto other = [&](const std::function<void(StoreKey&, Row&)>& change) {
    StoreKey key = key_of(space);
    Row own = about;
    change(key, own);
    return SessionJournal(folder / "store.jsonl", key, own, space).earlier().size();
  };
  CHECK(other([](StoreKey&, Row&) {}) == 3);
  CHECK(other([](StoreKey& key, Row&) { key.source = "5678"; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.source = ""; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.nvrtc = "13.1"; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.driver = 13010; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.device.sm_count = 114; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.policy = "warm"; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.objective = "energy"; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.problem["n"] = std::int64_t{4097}; }) == 0);
  CHECK(other([](StoreKey& key, Row&) { key.kernel = "l"; }) == 0);
  CHECK(other([](StoreKey&, Row& own) { own["launch"] = "1"; }) == 0);
  CHECK(other([](StoreKey&, Row& own) { own["arguments"] = "float64[4096]"; }) == 0);
}

TEST_CASE("journal: trials tell by themselves what they are about") {
  const Space space = mixed();
  const test::TemporaryDirectory folder;
  const std::string path = folder / "store.jsonl";
  const Row about{{"launch", "n / block"}, {"arguments", "float32[4096]"}, {"limits", {60, 30}}};
  {
    SessionJournal journal(path, key_of(space), about, space);
    journal.begin();
    journal.record(sample_trial(2));
    Trial late = sample_trial(5);
    late.status = TrialStatus::timeout;
    late.score.reset();
    journal.record(late);
  }
  std::ifstream in(path);
  std::string session;
  std::getline(in, session);
  const std::string trials{std::istreambuf_iterator<char>(in), {}};
  std::ofstream(path, std::ios::trunc) << session.substr(0, session.size() / 2) << "\n" << trials;
  // Nothing tells by what limit the late one was ended.
  CHECK(SessionJournal(path, key_of(space), about, space).earlier().size() == 1);
  Row other = about;
  other["launch"] = "1";
  CHECK(SessionJournal(path, key_of(space), other, space).earlier().empty());
  const StoreContents whole = StoreFile(path).read();
  CHECK(whole.problems.size() == 1);
  CHECK(trial_problems(whole).empty());
}

TEST_CASE("journal: trials with which nobody can go on are told by their lines") {
  const Space space = mixed();
  const test::TemporaryDirectory folder;
  const std::string path = folder / "store.jsonl";
  SessionJournal journal(path, key_of(space), {}, space);
  journal.begin();
  journal.record(sample_trial(2));
  StoreFile file(path);
  Row row = trial_row(space, sample_trial(3));
  row["session"] = journal.id();
  const auto add = [&](const char* member, Row value) {
    Row changed = row;
    changed[member] = std::move(value);
    file.append(changed);
  };
  add("status", "fine");
  add("config", {{"block", 48}, {"fast", true}, {"scale", 0.5}, {"order", "row"}});
  add("config", {{"block", 32}});
  add("score", "1");
  add("session", "lost");
  add("error", "none");
  const auto problems = trial_problems(file.read());
  std::vector<std::size_t> lines;
  for (const LineProblem& problem : problems) lines.push_back(problem.line);
  CHECK(lines == std::vector<std::size_t>{3, 4, 5, 6, 7});
  CHECK(problem_texts(problems).size() == 4);
  CHECK(
      problem_texts(problems)[1].starts_with("line 4 (and 1 more) is a trial of a configuration"));
}

TEST_CASE("journal: the result names the best, its ties and why the session ended") {
  const Space space = mixed();
  const test::TemporaryDirectory folder;
  SessionJournal journal(folder / "store.jsonl", key_of(space),
                         {{"launch", ""}, {"block", "block"}}, space);
  journal.begin();
  SessionResult result;
  result.best = 1;
  result.median_ms = result.score = 2;
  result.ties = {1, 3};
  result.reason = SessionEnd::target;
  journal.conclude(result);
  const StoreContents contents = StoreFile(folder / "store.jsonl").read("result", journal.id());
  REQUIRE(contents.rows.size() == 1);
  CHECK(contents.rows[0].at("config") == config_row(space, 1));
  CHECK(contents.rows[0].at("ties").size() == 2);
  CHECK(contents.rows[0].at("reason") == "target");
  CHECK(contents.rows[0].at("block") == "block");
  CHECK(StoreKey::from_row(contents.rows[0]).problem == key_of(space).problem);
  const StoreContents sessions = StoreFile(folder / "store.jsonl").read("session");
  CHECK(sessions.rows.at(0).at("space").at("parameters").at("block").size() == 2);
}

TEST_CASE("journal: a disk that refuses rows loses none of them") {
  const Space space = mixed();
  const test::TemporaryDirectory folder;
  const std::string path = folder / "later/store.jsonl";
  SessionJournal journal(path, key_of(space), {}, space);
  journal.begin();
  journal.record(sample_trial(1));
  CHECK(journal.unsaved() == 2);
  CHECK(journal.failure().find("later") != std::string::npos);
  std::filesystem::create_directory(folder / "later");
  journal.record(sample_trial(2));
  CHECK(journal.unsaved() == 0);
  CHECK(journal.failure().empty());
  CHECK(StoreFile(path).read("trial", journal.id()).rows.size() == 2);
}
