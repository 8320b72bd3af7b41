// A result is found for what it holds for, and never for anything else.
#include "tune/store/store.h"

#include "base/errors.h"
#include "jit/program.h"
#include "unit/base/temporary_directory.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using namespace kernwright;
using kernwright::test::TemporaryDirectory;

namespace {

StoreKey sample_key() {
  StoreKey key;
  key.kernel = "axpy";
  key.source = "aaaa";
  key.space = "bbbb";
  key.device = {"NVIDIA H100", 9, 0, 132};
  key.nvrtc = "13.0";
  key.driver = 13000;
  key.policy = "cold";
  key.objective = "time";
  key.problem = {{"n", std::int64_t{4096}}, {"m", std::int64_t{100}}};
  return key;
}

Row result_row(const StoreKey& key, int block, double median = 1) {
  Row row = key.to_row();
  row.update({{"kind", "result"},
              {"session", "s"},
              {"config", {{"block", block}}},
              {"median_ms", median}});
  return row;
}

struct StoreFolder {
  TemporaryDirectory folder;
  std::string path = (folder.path() / "store.jsonl").string();
  StoreFile file{path};
};

std::vector<int> blocks_of(const std::vector<StoreMatch>& matches) {
  std::vector<int> blocks;
  for (const StoreMatch& match : matches) blocks.push_back(match.row["config"]["block"].get<int>());
  return blocks;
}

}  // namespace

TEST_CASE("a key survives its row, and a session's row with the whole space in it") {
  StoreKey key = sample_key();
  key.problem = {{"b", true}, {"d", 0.5}, {"n", std::int64_t{-3}}, {"t", std::string("row")}};
  Row row = key.to_row();
  CHECK(StoreKey::from_row(row).to_row() == row);
  CHECK(row["bucket"]["n"] == "-1");
  CHECK(row["bucket"]["t"] == "'row'");
  row["space"] = {{"hash", "bbbb"}, {"parameters", Row::object()}};
  row["device"]["driver"] = 12080;
  row.erase("driver");
  CHECK(StoreKey::from_row(row).space == "bbbb");
  CHECK(StoreKey::from_row(row).driver == 12080);
  for (const char* name : {"kernel", "source", "nvrtc", "policy", "device", "problem", "driver"}) {
    Row wrong = key.to_row();
    wrong[name] = Row::array({1});
    CHECK_THROWS_WITH_AS(StoreKey::from_row(wrong), doctest::Contains(name), InvalidArgument);
  }
}

TEST_CASE("buckets are powers of two of each dimension") {
  const auto bucket = [](std::int64_t n) { return problem_bucket(n); };
  CHECK(bucket(1) == "0");
  CHECK(bucket(0) != bucket(1));
  CHECK(bucket(-1) != bucket(1));
  CHECK(bucket(4096) == bucket(8191));
  CHECK(bucket(4095) != bucket(4096));
  CHECK(bucket(INT64_MAX) == "62");
  CHECK(bucket(INT64_MIN) == "-63");
  CHECK(problem_bucket(true) != problem_bucket(std::int64_t{1}));
  CHECK(problem_bucket(0.5) != problem_bucket(0.25));
}

TEST_CASE("an exact hit is one for the same bucket of each dimension, not of their product") {
  StoreFolder place;
  StoreKey square = sample_key();
  square.problem = {{"n", std::int64_t{4096}}, {"m", std::int64_t{4096}}};
  place.file.append(result_row(square, 64));
  StoreKey wide = square;
  wide.problem = {{"n", std::int64_t{1}}, {"m", std::int64_t{4096 * 4096}}};
  Store store({place.path});
  CHECK_FALSE(store.find(wide)[0].differences.empty());
  place.file.append(result_row(wide, 128));
  CHECK(blocks_of(store.find(wide)) == std::vector{128, 64});
  CHECK(store.find(wide)[0].differences.empty());
  CHECK(store.find(wide)[0].distance == 0);
  CHECK(blocks_of(store.find(square)) == std::vector{64, 128});
  square.problem["n"] = std::int64_t{5000};  // the same bucket
  CHECK(store.find(square)[0].differences.empty());
}

TEST_CASE("each member of the key that differs makes a hit a near one, and says so") {
  const StoreKey key = sample_key();
  struct Change {
    const char* part;
    std::function<void(StoreKey&)> apply;
  };
  const Change changes[] = {
      {"source", [](StoreKey& k) { k.source = "cccc"; }},
      {"space", [](StoreKey& k) { k.space = "cccc"; }},
      {"device", [](StoreKey& k) { k.device.name = "NVIDIA H200"; }},
      {"device", [](StoreKey& k) { k.device.sm_count = 114; }},
      {"device", [](StoreKey& k) { k.device.major = 10; }},
      {"device", [](StoreKey& k) { k.device.minor = 3; }},
      {"nvrtc", [](StoreKey& k) { k.nvrtc = "12.9"; }},
      {"driver", [](StoreKey& k) { k.driver = 12090; }},
      {"policy", [](StoreKey& k) { k.policy = "warm"; }},
      {"objective", [](StoreKey& k) { k.objective = "energy"; }},
      {"problem", [](StoreKey& k) { k.problem["n"] = std::int64_t{8192}; }},
      {"problem", [](StoreKey& k) { k.problem["n"] = std::int64_t{0}; }},
      {"problem", [](StoreKey& k) { k.problem["n"] = std::string("4096"); }},
      {"problem", [](StoreKey& k) { k.problem.erase("m"); }},
      {"problem", [](StoreKey& k) { k.problem["k"] = true; }},
  };
  StoreFolder place;
  place.file.append(result_row(key, 64));
  Store store({place.path});
  REQUIRE(store.find(key).size() == 1);
  CHECK(store.find(key)[0].differences.empty());
  for (const Change& change : changes) {
    CAPTURE(change.part);
    StoreKey other = key;
    change.apply(other);
    const std::vector<StoreMatch> matches = store.find(other);
    REQUIRE(matches.size() == 1);
    REQUIRE(matches[0].differences.size() == 1);
    CHECK(std::string(key_part_name(matches[0].differences[0].part)) == change.part);
    CHECK(matches[0].differences[0].text.starts_with(change.part));
    CHECK(matches[0].distance > 0);
    // The other way round as well, beside a result that fits.
    StoreFolder both;
    both.file.append_all({result_row(other, 1), result_row(key, 2)});
    CHECK(blocks_of(Store({both.path}).find(key)) == std::vector{2, 1});
  }
  StoreKey other = key;
  other.kernel = "axpy2";
  CHECK(store.find(other).empty());
  StoreKey any;
  any.kernel = "axpy";
  any.problem = key.problem;
  CHECK(store.find(any)[0].differences.empty());
}

TEST_CASE("a result without a member is no exact hit for a query that names it") {
  StoreFolder place;
  Row row = result_row(sample_key(), 64);
  for (const char* name : {"source", "space", "device", "nvrtc", "driver", "policy"}) {
    Row lacking = row;
    lacking.erase(name);
    place.file.append(lacking);
  }
  for (const StoreMatch& match : Store({place.path}).find(sample_key()))
    CHECK(match.differences.size() == 1);
}

TEST_CASE("nearer sizes rank first, and of one problem the fastest and then the newest") {
  StoreFolder place;
  for (const int n : {64, 1024, 2048, 65536}) {
    StoreKey key = sample_key();
    key.problem["n"] = std::int64_t{n};
    place.file.append(result_row(key, n));
  }
  Store store({place.path});
  CHECK(blocks_of(store.find(sample_key())) == std::vector{2048, 1024, 65536, 64});
  place.file.append(result_row(sample_key(), 1, 3));
  place.file.append(result_row(sample_key(), 2, 2));
  place.file.append(result_row(sample_key(), 3, 2));
  const std::vector<int> blocks = blocks_of(store.find(sample_key()));
  CHECK(std::vector(blocks.begin(), blocks.begin() + 3) == std::vector{3, 2, 1});
}

TEST_CASE("a store reads changed files, several of them, and rows that are in none") {
  StoreFolder one;
  StoreFolder two;
  Store store({one.path, two.path});
  CHECK(store.find(sample_key()).empty());
  CHECK(store.problems().size() == 2);
  two.file.append(result_row(sample_key(), 7));
  CHECK(blocks_of(store.find(sample_key())) == std::vector{7});
  CHECK(store.problems().size() == 1);
  store.add("wheel", result_row(sample_key(), 8, 0.5).dump().insert(1, "\"v\":1,"));
  CHECK(blocks_of(store.find(sample_key())) == std::vector{8, 7});
  std::ofstream(two.path, std::ios::trunc) << "";
  CHECK(blocks_of(store.find(sample_key())) == std::vector{8});
  CHECK_THROWS_AS(Store({one.folder.path().string()}), StoreError);
}

TEST_CASE("a result that cannot be used is told and skipped") {
  StoreFolder place;
  Row no_config = result_row(sample_key(), 1);
  no_config.erase("config");
  Row odd_value = result_row(sample_key(), 1);
  odd_value["config"]["block"] = Row::array({1, 2});
  Row odd_problem = result_row(sample_key(), 1);
  odd_problem["problem"] = {{"n", nullptr}};
  Row odd_driver = result_row(sample_key(), 1);
  odd_driver["driver"] = "13000";
  place.file.append_all(
      {no_config, odd_value, odd_problem, odd_driver, result_row(sample_key(), 2)});
  Store store({place.path});
  CHECK(blocks_of(store.find(sample_key())) == std::vector{2});
  CHECK(store.problems().size() == 4);
}

TEST_CASE("a source's hash changes with all that decides its code, and with nothing else") {
  const TemporaryDirectory folder;
  const std::string text = "#include \"own.h\"\n__global__ void k(int* x) { *x = N * TWO; }";
  const auto write = [&](const char* name, const std::string& content) {
    std::ofstream(folder.path() / name, std::ios::trunc) << content;
  };
  write("own.h", "#define TWO 2\n");
  const std::vector<std::string> parameters = {"N"};
  const auto hash = [&](const std::function<void(Source&, ProgramOptions&)>& change = {}) {
    Source source{text, "k.cu", 1, folder.path().string()};
    ProgramOptions options;
    options.defines = {{"N", "3"}, {"OTHER", "1"}};
    if (change) change(source, options);
    return source_hash(Program(source, options), parameters);
  };
  const std::string before = hash();
  CHECK(before.size() == 32);
  CHECK(hash() == before);
  CHECK(hash([](Source& s, ProgramOptions& o) {
          s.name = "other.cu";
          s.first_line = 30;
          o.timeout = std::chrono::seconds(3);
          o.defines["N"] = "4";  // a parameter
        }) == before);
  CHECK(hash([](Source&, ProgramOptions& o) { o.defines.erase("N"); }) == before);
  using Change = std::function<void(Source&, ProgramOptions&)>;
  const Change changes[] = {
      [](Source& s, ProgramOptions&) { s.text += " "; },
      [](Source&, ProgramOptions& o) { o.defines["OTHER"] = "2"; },
      [](Source&, ProgramOptions& o) { o.defines["MORE"] = "2"; },
      [](Source&, ProgramOptions& o) { o.headers["own.h"] = "#define TWO 2\n// edited"; },
      [](Source&, ProgramOptions& o) { o.fast_math = true; },
      [](Source&, ProgramOptions& o) { o.std = "c++20"; },
      [](Source&, ProgramOptions& o) { o.max_registers = 32; },
      [](Source&, ProgramOptions& o) { o.opt_level = 0; },
      [](Source&, ProgramOptions& o) { o.arch = "sm_80"; },
      [](Source&, ProgramOptions& o) { o.extra = {"--ftz=true"}; },
  };
  for (const Change& change : changes) CHECK(hash(change) != before);
  write("own.h", "#define TWO 3\n");
  CHECK(hash() != before);
  write("own.h", "#define TWO 2\n");
  CHECK(hash() == before);
  // Nobody can tell which file this is.
  write("own.h", "#define TEXT(x) #x\n#include TEXT(more.h)\n");
  CHECK(hash().empty());
}

TEST_CASE("a space's hash changes with parameters, values, order, restrictions and lists") {
  const auto make = [](const std::vector<Value>& values, const std::string& restriction) {
    Space space;
    space.add("block", values).add("tile", {std::int64_t{1}});
    if (!restriction.empty()) space.require(restriction);
    return space_hash(space);
  };
  const std::vector<Value> values = {std::int64_t{32}, std::int64_t{64}};
  const std::string before = make(values, "block > 32");
  CHECK(make(values, "block > 32") == before);
  CHECK(make({std::int64_t{64}, std::int64_t{32}}, "block > 32") != before);
  CHECK(make({std::int64_t{32}, 64.0}, "block > 32") != before);
  CHECK(make({std::int64_t{32}, std::string("64")}, "block > 32") != before);
  CHECK(make(values, "block >= 32") != before);
  CHECK(make(values, "") != before);
  Space all;
  all.add("block", values);
  Space listed = all;
  const std::vector<Choices> one = {{0}};
  listed.set_configurations(one);
  CHECK(space_hash(listed) != space_hash(all));
}
