// The lines of a text in a file.
#include "jit/source/text_lines.h"

#include <doctest/doctest.h>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

using Lines = std::vector<int>;

TEST_CASE("text lines: each place, from the first line to the last") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.py", "one\ntwo one\n\none").string();
  CHECK(lines_of_text(path, "one") == Lines{1, 2, 4});
  CHECK(lines_of_text(path, "one\ntwo") == Lines{1});
  CHECK(lines_of_text(path, "\n") == Lines{1, 2, 3});
  CHECK(lines_of_text(path, "three").empty());
  CHECK(lines_of_text(path, "").empty());
}

TEST_CASE("text lines: places may overlap") {
  const TemporaryFolder folder;
  CHECK(lines_of_text(folder.write("a.py", "a\na\na\n").string(), "a\na\n") == Lines{1, 2});
}

TEST_CASE("text lines: none in what is no file, or has carriage returns, or is empty") {
  const TemporaryFolder folder;
  CHECK(lines_of_text((folder.path() / "missing.py").string(), "one").empty());
  CHECK(lines_of_text(folder.path().string(), "one").empty());
  CHECK(lines_of_text("/dev/zero", "one").empty());
  CHECK(lines_of_text(folder.write("b.py", "one\r\n").string(), "one").empty());
  CHECK(lines_of_text(folder.write("c.py", "").string(), "one").empty());
}

TEST_CASE("text lines: a file that changed is read again, and so is another one") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.py", "one\n").string();
  CHECK(lines_of_text(path, "one") == Lines{1});
  CHECK(lines_of_text(path, "one") == Lines{1});
  folder.write("a.py", "nothing here\none\n");
  CHECK(lines_of_text(path, "one") == Lines{2});
  CHECK(lines_of_text(folder.write("b.py", "\n\none").string(), "one") == Lines{3});
  CHECK(lines_of_text(path, "one") == Lines{2});
}
