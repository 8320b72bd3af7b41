// Reading and checking of source texts.
#include "jit/source/source.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("source: a file brings its name, its text and its folder") {
  const TemporaryFolder folder;
  const auto path = folder.write("a/kernel.cu", "__global__ void k() {}\n");
  const Source source = Source::from_file(path);
  CHECK(source.text == "__global__ void k() {}\n");
  CHECK(source.name == path.string());
  CHECK(source.directory == path.parent_path().string());
  CHECK(source.first_line == 1);
}

TEST_CASE("source: what cannot be read says its path and why") {
  const TemporaryFolder folder;
  const auto missing = folder.path() / "missing.cu";
  const auto error = thrown_by<InvalidArgument>([&] { Source::from_file(missing); });
  CHECK(contains(error.what(), missing.string()));
  CHECK(contains(error.what(), "does not exist"));
  const auto folder_error = thrown_by<InvalidArgument>([&] { Source::from_file(folder.path()); });
  CHECK(contains(folder_error.what(), "it is a folder, no regular file"));
}

TEST_CASE("source: empty texts and NULs are refused with their place") {
  for (const char* empty : {"", "  \n\t\r\n"}) {
    Source source;
    source.text = empty;
    CHECK(contains(thrown_by<InvalidArgument>([&] { validate(source); }).what(), "empty"));
  }
  Source source;
  source.text = std::string("abc\0def", 7);
  CHECK(contains(thrown_by<InvalidArgument>([&] { validate(source); }).what(), "offset 3"));
  source.text = "x";
  source.name = "a\nb.cu";
  CHECK(contains(thrown_by<InvalidArgument>([&] { validate(source); }).what(), "offset 1"));
  source.name = "";
  CHECK_THROWS_AS(validate(source), InvalidArgument);
}

TEST_CASE("source: a text at the limit passes, one byte more does not") {
  Source source;
  source.text.assign(kMaxSourceBytes, 'x');
  CHECK_NOTHROW(validate(source));
  source.text += 'x';
  CHECK(contains(thrown_by<InvalidArgument>([&] { validate(source); }).what(), "67108865"));
}
