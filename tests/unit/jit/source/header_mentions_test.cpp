// Headers mentioned in directives, compared with the headers read by the compiler.
#include "jit/source/header_mentions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "jit/compile/lint.h"
#include "jit/source/include_closure.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

using MentionForm = HeaderMention::Form;

/// The mention of a text with one #include. A text with joined lines is read twice.
HeaderMention only_mention(const std::string& text) {
  const HeaderMentions found = header_mentions(text);
  const std::size_t readings = text.find("\\") == std::string::npos ? 1 : 2;
  REQUIRE_MESSAGE(found.mentions.size() == readings, text);
  CHECK_FALSE(found.mentions[0].is_probe);
  CHECK(found.mentions.back().name == found.mentions[0].name);
  return found.mentions[0];
}

bool mentions_probe(const std::string& text, const std::string& name) {
  const HeaderMentions found = header_mentions(text);
  return std::any_of(found.mentions.begin(), found.mentions.end(), [&](const HeaderMention& m) {
    return m.is_probe && m.name == name &&
           (m.form == MentionForm::quoted || m.form == MentionForm::angled);
  });
}

/// Whether the compiler reads v.h when it compiles `text`. The text of v.h is an error.
bool reads_header(const std::string& text, const std::string& folder, const std::string& std) {
  Source source;
  source.text = text;
  ProgramOptions options;
  options.include_dirs = {folder};
  options.std = std;
  const auto diagnostics = lint(newest_nvrtc(), source, options);
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& d) {
    return d.message.find("v.h was read") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("header mentions: every spelling of an include") {
  for (const char* text :
       {"#include \"v.h\"\n", "#include<v.h>", "# /* c */ include \"v.h\"\n", "%:include \"v.h\"\n",
        "%\\\n:include \"v.h\"\n", "#inc\\\nlude \"v.h\"\n", "#inc\\\r\nlude \"v.h\"\n",
        "#include \"v\\\n.h\"\n", "#include/**/\"v.h\"\n", "# /* \n */ include \"v.h\"\n",
        "/* x\n */ # include \"v.h\"\n", "\\\n#include \"v.h\"\n", "\f\v#\f\vinclude\f\"v.h\"\n",
        "#include_next <v.h>\n", "#include \"v.h\" // x\n"}) {
    CHECK_MESSAGE(only_mention(text).name == "v.h", text);
  }
  CHECK(only_mention("#include <a//b.h>\n").name == "a//b.h");
  CHECK(only_mention("\n\n#include <a>\n").line == 3);
  CHECK(only_mention("#include_next <v.h>\n").is_next);
  CHECK(only_mention("#embed \"v.bin\"\n").is_data);
  CHECK(only_mention("#include HEADER\n").form == MentionForm::macro);
  CHECK(only_mention("#include S(v.h)\n").form == MentionForm::expression);
  CHECK(only_mention("#include A B\n").form == MentionForm::expression);
  // Of older and of newer C++.
  for (const char* text :
       {"?\?=include \"v.h\"\n", "#inc?\?/\nlude \"v.h\"\n", "#inc\\  \nlude \"v.h\"\n"}) {
    const auto found = header_mentions(text).mentions;
    CHECK_MESSAGE(std::any_of(found.begin(), found.end(),
                              [](const HeaderMention& m) { return m.name == "v.h"; }),
                  text);
  }
}

TEST_CASE("header mentions: what is no directive mentions nothing") {
  for (const char* text :
       {"", "int include;", "// #include \"v.h\"\n", "/*\n#include \"v.h\"\n*/\n",
        "const char* s = R\"(\n#include \"v.h\"\n)\";\n", "#define A R\"(\n#include \"v.h\"\n)\"\n",
        "// x \\\n#include \"v.h\"\n", "#line 3 \"v.h\"\n", "#error \"v.h\"\n",
        "#if 1 < 2 && 3 > 2\n", "#ifdef __has_include\n#endif\n",
        "#if defined(__has_include)\n#endif\n"}) {
    CHECK_MESSAGE(header_mentions(text).mentions.empty(), text);
  }
}

TEST_CASE("header mentions: __has_include, wherever it stands and whatever stands for it") {
  for (const char* text :
       {"#if __has_include(\"v.h\")\n", "#if __has_include /**/ ( <v.h> )\n",
        "#if 0\n#elif __has_include(\"v.h\")\n", "int q = __has_include(\"v.h\");\n",
        "#define HI __has_include\n#if HI(\"v.h\")\n",
        "#define HI(x) __has_include(x)\n#if HI(<v.h>)\n",
        "#define C(a, b) a##b\n#if C(__has_, include)(\"v.h\")\n",
        "#define C(a, b) a##b\nint q = C(__has_, include)(\"v.h\");\n",
        "#define HI __has_include\nint q = HI(<v.h>);\n", "#if LIB_HAS_INCLUDE(<v.h>)\n",
        "int q = LIB_HAS_INCLUDE(\"v.h\");\n", "#define HAS __has_include(<v.h>)\n#if HAS\n",
        "#define HAS(x) (x && __has_include(\"v.h\"))\n#if HAS(1)\n"}) {
    CHECK_MESSAGE(mentions_probe(text, "v.h"), text);
  }
  CHECK(header_mentions("#if __has_include(S(v.h))\n").mentions.at(0).form ==
        MentionForm::expression);
  CHECK(header_mentions("#if __has_include(NAME)\n").mentions.at(0).form == MentionForm::macro);
  CHECK(header_mentions("#define HI __has_include\n").wraps_probe);
  CHECK_FALSE(header_mentions("#define __has_include(x) 0\n").wraps_probe);
  CHECK(header_mentions("#define S(x) #x\n").makes_strings);
  CHECK_FALSE(header_mentions("#define C(a, b) a##b\n").makes_strings);
}

TEST_CASE("header mentions: macros keep the bodies that can name a header") {
  const MacroBodies macros =
      header_mentions(
          "#define A \"a.h\"\n#define B <b.h>\n#define C A\n#define D 1 + 2\n"
          "#define E(x) \"e.h\"\n#define A <other.h>\n")
          .macros;
  const auto body = [&](const char* name) { return macros.find(name)->second; };
  CHECK(macros.count("A") == 2);
  CHECK(body("B") == "<b.h>");
  CHECK(body("C") == "A");
  CHECK(body("D").empty());
  CHECK(body("E").empty());
}

TEST_CASE("header mentions: nothing that the compiler reads is missed in random texts") {
  const TemporaryFolder folder;
  folder.write("v.h", "#pragma once\n#warning v.h was read\n");
  // Pieces of directives, comments, strings and joined lines.
  const std::vector<std::string> pieces{"#",
                                        "%:",
                                        "include",
                                        "include_next",
                                        "\"v.h\"",
                                        "<v.h>",
                                        " ",
                                        "\n",
                                        "\\\n",
                                        "\\ \n",
                                        "/*",
                                        "*/",
                                        "//",
                                        "\"",
                                        "'",
                                        "R\"(",
                                        ")\"",
                                        "#if 0\n",
                                        "#else",
                                        "\n#endif\n",
                                        "?\?=",
                                        "?\?/\n",
                                        "inc",
                                        "lude",
                                        "#define H \"v.h\"\n",
                                        "H",
                                        "\n#include \"v.h\"\n",
                                        "it's",
                                        "1'0",
                                        "x"};
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text;
    for (int n = 2 + static_cast<int>(random() % 9); n > 0; --n) {
      text += pieces[random() % pieces.size()];
    }
    text += "\n";
    const char* const std = i % 3 == 0 ? "c++14" : i % 3 == 1 ? "c++17" : "c++23";
    bool is_read = false;
    try {
      is_read = reads_header(text, folder.path().string(), std);
    } catch (const InvalidArgument&) {
      continue;  // refused, not read
    }
    if (!is_read) continue;
    ++read;
    Source source;
    source.text = text;
    ProgramOptions options;
    options.include_dirs = {folder.path().string()};
    const IncludeClosure closure = include_closure(source, options);
    CHECK_MESSAGE((closure.files.size() == 1 || !closure.is_complete), std << ": " << text);
  }
  CHECK(read > 20);
}
