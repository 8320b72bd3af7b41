// Names and places in PTX's line table.
#include "jit/compile/ptx_source_lines.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

const std::string kLinedPtx =
    ".entry f(\n)\n{\n\t.loc\t1 4 3\n\tmov.u32 %r1, 1;\n\t.loc\t2 9 1, function_name $L, "
    "inlined_at 1 5 2\n\tret;\n}\n.entry g()\n{\n\tret;\n}\n"
    "\t.file\t1 \"/a/jos\\303\\251.py\"\n\t.file\t2 \"/q\\\"u\\\\b.h\"\n";

}  // namespace

TEST_CASE("PTX source lines: the place of a line is the one above it in its function") {
  CHECK(source_of_ptx_line(kLinedPtx, 5).file == "/a/jos\xc3\xa9.py");
  CHECK(source_of_ptx_line(kLinedPtx, 5).line == 4);
  CHECK(source_of_ptx_line(kLinedPtx, 7).file == "/q\"u\\b.h");
  CHECK(source_of_ptx_line(kLinedPtx, 7).line == 9);
  CHECK(source_of_ptx_line(kLinedPtx, 2).line == 0);
  CHECK(source_of_ptx_line(kLinedPtx, 11).line == 0);
  CHECK(source_of_ptx_line(kLinedPtx, 1000).line == 0);
  CHECK(source_of_ptx_line("", 1).line == 0);
}

TEST_CASE("PTX source lines: names are renamed, and written as the assembler takes them") {
  const std::string renamed = with_files_renamed(kLinedPtx, [](const std::string& file) {
    return file.starts_with("/a/") ? file.substr(3) : file;
  });
  CHECK(renamed.find("\t.file\t1 \"jos\\303\\251.py\"\n") != std::string::npos);
  CHECK(renamed.find("\t.file\t2 \"/q\\042u\\\\b.h\"\n") != std::string::npos);
  CHECK(source_of_ptx_line(renamed, 7).file == "/q\"u\\b.h");
  CHECK(with_files_renamed("", [](const std::string& file) { return file; }) == "");
}

TEST_CASE("PTX source lines: lines of a text") {
  CHECK(line_of_text("a\nb\n", 1) == "a");
  CHECK(line_of_text("a\nb\n", 2) == "b");
  CHECK(line_of_text("a\nb\n", 3) == "");
  CHECK(line_of_text("", 1) == "");
}
