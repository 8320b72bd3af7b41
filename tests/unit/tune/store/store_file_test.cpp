// Rows survive threads, processes, full disks and damaged neighbours; nothing is rewritten.
#include "tune/store/store_file.h"

#include "base/errors.h"
#include "unit/base/fault_fs.h"
#include "unit/base/temporary_directory.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;
using kernwright::test::FaultFs;
using kernwright::test::FsCall;
using kernwright::test::TemporaryDirectory;

namespace {

Row trial(int number, const std::string& session = "a") {
  return {{"kind", "trial"}, {"session", session}, {"number", number}};
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<int> numbers_of(const StoreContents& contents) {
  std::vector<int> numbers;
  for (const Row& row : contents.rows) numbers.push_back(row.at("number").get<int>());
  return numbers;
}

struct StorePlace {
  TemporaryDirectory folder;
  std::string path = (folder.path() / "store.jsonl").string();
};

}  // namespace

TEST_CASE("a store gives back the rows that were appended, in order and by filter") {
  const StorePlace place;
  StoreFile file(place.path);
  CHECK_FALSE(file.read().exists);
  CHECK(file.read().rows.empty());
  file.append(trial(1));
  file.append_all({trial(2, "b"), trial(3)});
  file.append({{"kind", "result"}, {"session", "a"}, {"text", "line\nend \xff \"quoted\""}});
  const StoreContents all = StoreFile(place.path).read();
  CHECK(all.exists);
  CHECK(all.rows.size() == 4);
  CHECK(all.problems.empty());
  CHECK(numbers_of(file.read("trial")) == std::vector{1, 2, 3});
  CHECK(numbers_of(file.read("trial", "a")) == std::vector{1, 3});
  CHECK(all.rows[3]["text"] == "line\nend \xef\xbf\xbd \"quoted\"");
  CHECK(all.rows[0]["v"] == kRowVersion);
}

TEST_CASE("stores merge with cat, whatever their last lines are") {
  const StorePlace one;
  const StorePlace two;
  StoreFile(one.path).append_all({trial(1), trial(2)});
  StoreFile(two.path).append(trial(3, "b"));
  write_bytes(one.path, bytes_of(one.path) + bytes_of(two.path));
  CHECK(numbers_of(StoreFile(one.path).read()) == std::vector{1, 2, 3});
}

TEST_CASE("a line that a killed process left open costs that line alone") {
  const StorePlace place;
  StoreFile file(place.path);
  file.append_all({trial(1), trial(2)});
  const std::string whole = bytes_of(place.path);
  // Cut anywhere: what is whole before the cut is read, and what is appended after it.
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    write_bytes(place.path, whole.substr(0, cut));
    file.append(trial(9));
    const StoreContents contents = file.read();
    const std::size_t line = whole.size() / 2;
    std::vector<int> expected;
    if (cut >= line - 1) expected.push_back(1);
    if (cut >= whole.size() - 1) expected.push_back(2);
    expected.push_back(9);
    CAPTURE(cut);
    CHECK(numbers_of(contents) == expected);
    CHECK(bytes_of(place.path).substr(0, cut) == whole.substr(0, cut));
    const bool is_clean = cut == 0 || cut == line - 1 || cut == line || cut >= whole.size() - 1;
    CHECK(contents.problems.empty() == is_clean);
  }
}

TEST_CASE("lines that are no rows are skipped and told, and the others are read") {
  const StorePlace place;
  const std::string good = trial(1).dump().insert(1, "\"v\":1,") + "\n";
  std::string deep(100000, '[');
  const std::pair<std::string, std::string> cases[] = {
      {std::string("\0\1\2\xff\xfe", 5), "is no JSON object"},
      {"[1, 2]", "is no JSON object"},
      {"3", "is no JSON object"},
      {"null", "is no JSON object"},
      {deep, "is no JSON object"},
      {"{\"v\":1,\"kind\":\"trial\",\"session\":\"\xff\"}", "is no JSON object"},
      {R"({"kind":"trial","session":"a"})", "has no version"},
      {R"({"v":"1","kind":"trial","session":"a"})", "has no version"},
      {R"({"v":true,"kind":"trial","session":"a"})", "has no version"},
      {R"({"v":2,"kind":"trial","session":"a"})", "is of version 2"},
      {R"({"v":99999999999999999999999,"kind":"trial","session":"a"})", "has no version"},
      {R"({"v":1,"session":"a"})", "has no \"kind\""},
      {R"({"v":1,"kind":7,"session":"a"})", "has no \"kind\""},
      {R"({"v":1,"kind":"trial","session":null})", "has no \"session\""},
      {R"({"v":1,"kind":"other","session":"a"})", "is of a kind"},
  };
  for (const auto& [bad, problem] : cases) {
    CAPTURE(problem);
    const std::string text = good + bad + "\n" + bad + "\n\n \r\n" + good;
    write_bytes(place.path, text);
    const StoreContents contents = StoreFile(place.path).read();
    CHECK(numbers_of(contents) == std::vector{1, 1});
    REQUIRE(contents.problems.size() == 1);
    CHECK(contents.problems[0].starts_with("line 2 (and 1 more) " + problem));
    CHECK(bytes_of(place.path) == text);
  }
}

TEST_CASE("a byte order mark, line ends of Windows and no line end at all are fine") {
  const StorePlace place;
  const std::string good = R"({"v":1,"kind":"trial","session":"a","number":4})";
  write_bytes(place.path, "\xef\xbb\xbf" + good + "\r\n" + good);
  const StoreContents contents = StoreFile(place.path).read();
  CHECK(numbers_of(contents) == std::vector{4, 4});
  CHECK(contents.problems.empty());
  write_bytes(place.path, "");
  CHECK(StoreFile(place.path).read().rows.empty());
  CHECK(StoreFile(place.path).read().problems.empty());
}

TEST_CASE("rows that are none, and paths that name no file, are refused and change nothing") {
  const StorePlace place;
  StoreFile file(place.path);
  CHECK_THROWS_AS(file.append(Row::array()), InvalidArgument);
  CHECK_THROWS_AS(file.append({{"kind", "trial"}}), InvalidArgument);
  CHECK_THROWS_AS(file.append({{"kind", "trial"}, {"session", ""}}), InvalidArgument);
  CHECK_THROWS_AS(file.append({{"kind", "other"}, {"session", "a"}}), InvalidArgument);
  CHECK_THROWS_AS(file.append_all({trial(1), Row(3)}), InvalidArgument);
  CHECK_FALSE(file.read().exists);
  CHECK_THROWS_AS(StoreFile(""), InvalidArgument);
  CHECK_THROWS_AS(StoreFile(std::string("a\0b", 3)), InvalidArgument);
  const std::string folder = place.folder.path().string();
  CHECK_THROWS_WITH_AS(StoreFile(folder).read(), doctest::Contains("is a folder"), StoreError);
  CHECK_THROWS_AS(StoreFile(folder).append(trial(1)), StoreError);
  CHECK_THROWS_WITH_AS(StoreFile(folder + "/none/file").append(trial(1)),
                       doctest::Contains("No such file"), StoreError);
  REQUIRE(::mkfifo((folder + "/pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(StoreFile(folder + "/pipe").read(), doctest::Contains("no regular file"),
                       StoreError);
  CHECK_THROWS_AS(StoreFile(folder + "/pipe").append(trial(1)), StoreError);
}

TEST_CASE("a full disk is an error, and the same row may be appended later") {
  for (const FsCall call : {FsCall::open, FsCall::status, FsCall::write, FsCall::sync}) {
    for (const int error : {ENOSPC, EDQUOT, EIO, EROFS}) {
      const StorePlace place;
      FaultFs system;
      StoreFile file(place.path, system);
      file.append(trial(1));
      const std::string before = bytes_of(place.path);
      system.most_bytes = 10;  // a part of the line is on the disk before it is full
      system.fail(call, error, call == FsCall::write ? 3 : 1);
      CAPTURE(call);
      try {
        file.append(trial(2));
        FAIL("nothing was thrown");
      } catch (const StoreError& thrown) {
        CHECK(thrown.code == error);
        CHECK(std::string(thrown.what()).find(place.path) != std::string::npos);
      }
      CHECK(system.open_files() == 0);
      CHECK(bytes_of(place.path).starts_with(before));
      system.heal();
      system.most_bytes = SIZE_MAX;
      file.append(trial(2));
      const std::vector<int> numbers = numbers_of(file.read());
      CHECK(std::set<int>(numbers.begin(), numbers.end()) == std::set{1, 2});
    }
  }
}

TEST_CASE("a call that a signal interrupts is repeated, and a disk without locks is used") {
  const StorePlace place;
  FaultFs system;
  StoreFile file(place.path, system);
  file.append(trial(0));
  int number = 1;
  for (const FsCall call :
       {FsCall::open, FsCall::read_at, FsCall::write, FsCall::sync, FsCall::close}) {
    system.heal();
    system.fail(call, EINTR);
    file.append(trial(number++));
    CHECK(system.fired() > 0);
  }
  system.heal();
  system.fail(FsCall::try_lock, ENOLCK, 1, true);
  file.append(trial(number++));
  CHECK(file.read().rows.size() == static_cast<std::size_t>(number));
}

TEST_CASE("threads and processes append to one file without a torn line") {
  const StorePlace place;
  constexpr int kEach = 40;
  const auto append_all = [&](int first) {
    StoreFile file(place.path);
    for (int i = 0; i < kEach; ++i) {
      Row row = trial(first + i);
      row["filler"] = std::string(static_cast<std::size_t>(i * 97 % 5000), 'x');
      file.append(row);
    }
  };
  std::vector<pid_t> children;
  for (int child = 0; child < 3; ++child) {
    const pid_t id = ::fork();
    REQUIRE(id >= 0);
    if (id == 0) {
      append_all(1000 * (child + 1));
      ::_exit(0);
    }
    children.push_back(id);
  }
  std::thread other([&] { append_all(0); });
  append_all(500);
  other.join();
  for (const pid_t id : children) {
    int status = 0;
    REQUIRE(::waitpid(id, &status, 0) == id);
    CHECK(status == 0);
  }
  const StoreContents contents = StoreFile(place.path).read();
  CHECK(contents.problems.empty());
  const std::vector<int> numbers = numbers_of(contents);
  CHECK(numbers.size() == 5 * kEach);
  CHECK(std::set<int>(numbers.begin(), numbers.end()).size() == 5 * kEach);
}
