// The macros of options and of texts.
#include "jit/source/macro_definitions.h"

#include <doctest/doctest.h>

using namespace kernwright;

TEST_CASE("macro definitions: of defines and of -D in each form, and the rest without them") {
  ProgramOptions options;
  options.defines = {{"N", "4"}, {"BARE", ""}, {"MAX(a,b)", "((a) > (b) ? (a) : (b))"}};
  options.extra = {"-DX=1", "--use_fast_math", "-D", "Y=2", "--define-macro=Z", "-G"};
  const std::vector<MacroDefinition> expected{{"BARE", ""}, {"MAX(a,b)", "((a) > (b) ? (a) : (b))"},
                                              {"N", "4"},   {"X", "1"},
                                              {"Y", "2"},   {"Z", ""}};
  CHECK(macro_definitions(options) == expected);
  const ProgramOptions plain = without_macros(options);
  CHECK(plain.defines.empty());
  CHECK(plain.extra == std::vector<std::string>{"--use_fast_math", "-G"});
  CHECK(define_lines(options) ==
        "#define BARE 1\n#define MAX(a,b) ((a) > (b) ? (a) : (b))\n#define N 4\n#define X 1\n"
        "#define Y 2\n#define Z 1\n");
  CHECK(define_lines({}).empty());
}

TEST_CASE("macro definitions: names, those of a text too") {
  ProgramOptions options;
  options.defines = {{"MAX(a,b)", "0"}};
  options.extra = {"-DX=1"};
  const std::set<std::string> expected{"F", "MAX", "T", "X"};
  CHECK(macro_names(options,
                    tokenize("#define T 16\n # define\tF(x) x\n#defined Q\n#undef R\nint d;")) ==
        expected);
}
