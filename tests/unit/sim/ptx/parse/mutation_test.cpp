// Damaged modules end in a PtxError or parse; nothing else happens, in bounded time.
#include "unit/sim/ptx/ptx_fixture.h"

#include <chrono>
#include <random>

using namespace kernwright::sim::ptx;
using namespace kernwright::sim::ptx::testing;

namespace {

enum class Reading { parsed, refused };

Reading attempt(std::string text) {
  try {
    parse(std::move(text));
    return Reading::parsed;
  } catch (const PtxError&) {
    return Reading::refused;
  }
}

std::string pick_text(std::mt19937_64& random) {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> small;
    for (const auto& path : corpus()) {
      std::string text = read_file(path);
      if (text.size() < 9000) small.push_back(std::move(text));
    }
    return small;
  }();
  return texts.at(random() % texts.size());
}

std::string damage(std::string text, std::mt19937_64& random) {
  static constexpr std::string_view kPieces[] = {"{",
                                                 "}",
                                                 "(",
                                                 ")",
                                                 "[",
                                                 "]",
                                                 ";",
                                                 ",",
                                                 "-",
                                                 "!",
                                                 "@",
                                                 "%",
                                                 ".",
                                                 "|",
                                                 "<",
                                                 ">",
                                                 "\"",
                                                 "/*",
                                                 "0x",
                                                 "99999999999999999999",
                                                 "4294967295",
                                                 ".reg",
                                                 ".b32",
                                                 "%r1",
                                                 "_",
                                                 "0f00000000",
                                                 "\xff",
                                                 "\n.loc 1 2 3\n",
                                                 ".global .b8 z[9999999999];",
                                                 "bra",
                                                 "{{{{{{{{",
                                                 "((((((((",
                                                 "1e999",
                                                 "~~~~"};
  const int edits = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = random() % text.size();
    const std::string_view piece = kPieces[random() % std::size(kPieces)];
    switch (random() % 6) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(random());
        break;
      case 2:
        text[at] = static_cast<char>(text[at] ^ (1 << random() % 7));
        break;
      case 3:
        text.insert(at, piece);
        break;
      case 4:
        text.erase(at, 1 + random() % 40);
        break;
      default: {
        const std::size_t from = random() % text.size();
        text.insert(at, text.substr(from, random() % 200));
      }
    }
  }
  return text;
}

}  // namespace

TEST_CASE("mutation: thousands of damaged modules") {
  std::mt19937_64 random(20240229);
  const auto start = std::chrono::steady_clock::now();
  int refused = 0, parsed = 0;
  const auto elapsed = [&] { return std::chrono::steady_clock::now() - start; };
  while (refused + parsed < 6000 && elapsed() < std::chrono::seconds(40)) {
    const Reading outcome = attempt(damage(pick_text(random), random));
    ++(outcome == Reading::parsed ? parsed : refused);
  }
  CHECK(refused > 500);
  CHECK(parsed > 20);  // damage inside comments and names goes unnoticed
}

TEST_CASE("mutation: every prefix of a module") {
  const std::string text = read_file(ptx_folder() / "saxpy.nvrtc13.5.80.ptx");
  REQUIRE(text.size() > 1000);
  int parsed = 0;
  for (std::size_t length = 0; length < text.size(); ++length) {
    parsed += attempt(text.substr(0, length)) == Reading::parsed ? 1 : 0;
  }
  CHECK(parsed < 400);
}

TEST_CASE("mutation: sizes that would exhaust the host are refused") {
  const std::string head(kHeader);
  CHECK(attempt(head + ".entry k(){.reg .b32 %r<4000000000>;}") == Reading::refused);
  CHECK(attempt(head + ".entry k(){.local .b8 a[99999999999999];}") == Reading::refused);
  CHECK(attempt(head + ".global .b8 a[4294967296][4294967296];") == Reading::refused);
  CHECK(attempt(head + ".global .b32 a[4][1073741824] = {{1},{2}};") == Reading::refused);
  std::string many = head;
  for (int i = 0; i < 20; ++i)
    many += ".func f" + std::to_string(i) + "(){.reg .b32 %r<1000000>;}\n";
  CHECK(attempt(many) == Reading::refused);
  std::string deep = head + ".entry k(){";
  deep.append(100000, '{');
  CHECK(attempt(deep) == Reading::refused);
  std::string nested = head + ".global .b32 a = ";
  nested.append(100000, '(');
  CHECK(attempt(nested) == Reading::refused);
  std::string signs = head + ".global .b32 a = ";
  signs.append(100000, '-');
  CHECK(attempt(signs) == Reading::refused);
  std::string rows = head + ".global .b32 a[2][2][2][2][2][2][2] = ";
  rows.append(100000, '{');
  CHECK(attempt(rows) == Reading::refused);
  std::string dots = head + ".entry k(){ add";
  for (int i = 0; i < 1000; ++i) dots += ".f32";
  CHECK(attempt(dots + " %a;}") == Reading::refused);
}
