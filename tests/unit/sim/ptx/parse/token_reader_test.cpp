// What is accepted, expected and counted, and the places that errors tell.
#include "sim/ptx/parse/token_reader.h"

#include "unit/sim/ptx/ptx_fixture.h"

namespace kernwright::sim::ptx::testing {
namespace {

/// A reader of a text of its own.
struct Read {
  explicit Read(std::string text) : reader((module.text = std::move(text), module)) {}

  Module module;
  TokenReader reader;
};

TEST_CASE("token reader: accepts what is there and takes nothing else") {
  Read read(", .align 16 name");
  CHECK_FALSE(read.reader.accept(';'));
  CHECK(read.reader.accept(','));
  CHECK_FALSE(read.reader.accept_dotted("ptr"));
  CHECK(read.reader.accept_dotted("align"));
  CHECK(read.reader.take_count("the alignment", 128) == 16);
  CHECK(read.reader.take_word("a name") == "name");
  CHECK(describe(read.reader.peek()) == "the end of the text");
}

TEST_CASE("token reader: errors tell the line, and what was expected of what") {
  Read read("\n\n.global 200 1.5");
  CHECK(error_of([&] { read.reader.expect(';', "after it"); }, 3) ==
        "PTX line 3: expected ';' after it but found '.global'");
  CHECK(contains(error_of([&] { read.reader.take_word("a name"); }), "expected a name but found"));
  read.reader.take();
  CHECK(contains(error_of([&] { read.reader.take_count("the size", 99); }), "the size is 200"));
  read.reader.take();
  CHECK(contains(error_of([&] { read.reader.take_count("the size", 99); }), "not a number up to"));
}

TEST_CASE("token reader: an attribute is skipped to its end, and must have one") {
  Read read("(managed, x) ; (open");
  read.reader.skip_attribute();
  CHECK(read.reader.accept(';'));
  CHECK(contains(error_of([&] { read.reader.skip_attribute(); }), "the attribute is not closed"));
}

TEST_CASE("token reader: within a function errors tell the line of the source, too") {
  Read read(";");
  read.module.files = {"", "k.cu"};
  const auto message = [&] { return error_of([&] { read.reader.fail("no"); }); };
  const auto at = [&] { read.reader.lines().move_to({1, 7, 1}); };
  at();
  CHECK(message() == "PTX line 1: no");
  read.reader.enter_function();
  CHECK(message() == "PTX line 1: no");
  at();
  CHECK(message() == "PTX line 1 (k.cu:7): no");
  read.reader.leave_function();
  CHECK(message() == "PTX line 1: no");
}

}  // namespace
}  // namespace kernwright::sim::ptx::testing
