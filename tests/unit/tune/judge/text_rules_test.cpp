// What is refused in a text and in its PTX, and what is not.
#include "tune/judge/text_rules.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

std::vector<Refusal> in_code(const std::string& line, std::set<std::string> allow = {}) {
  Task task;
  task.allow = std::move(allow);
  ObjectCode code;
  code.code = "\t.loc\t1 12 5\n\t" + line + "\n";
  bool waits_by_clock = false;
  return refused_in_code(code, task, waits_by_clock);
}

bool is_cheating(const std::string& line) {
  const auto found = in_code(line);
  return found.size() == 1 && found[0].is_cheating && found[0].line == 12;
}

bool is_refused(const std::string& line) {
  const auto found = in_code(line);
  return found.size() == 1 && !found[0].is_cheating;
}

std::vector<Refusal> in_text(std::string text, const Task& task = {}) {
  return refused_in_text({std::move(text), "k.cu", 1, {}}, task);
}

}  // namespace

TEST_CASE("text rules: registers that tell launches apart") {
  for (const char* name :
       {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
        "%gridid", "%pm0", "%pm3_64", "%envreg7", "%current_graph_exec"}) {
    CAPTURE(name);
    CHECK(is_cheating(std::string("mov.u64 %rd1, ") + name + ";"));
  }
  for (const char* name :
       {"%smid", "%nsmid", "%warpid", "%laneid", "%clocks", "%pmx", "%rd64", "%lanemask_lt",
        "%dynamic_smem_size", "%clock_r", "%envreg1", "%envreg2"}) {
    CAPTURE(name);
    CHECK(in_code(std::string("mov.u32 %r1, ") + name + ";").empty());
  }
  CHECK(in_code("mov.u64 %rd1, %globaltimer;", {"clock"}).empty());
  CHECK(in_code("mov.u64 %rd1, %gridid;", {"clock"}).size() == 1);
  CHECK_MESSAGE(in_code("// %clock64").empty(), "a comment");
  CHECK_MESSAGE(in_code("/* %clock64\n%gridid */").empty(), "a comment of two lines");
  for (const char* opens : {"/* \" */", "/* // */", "/* \n // */", "/* /* \" */"}) {
    CAPTURE(opens);
    CHECK(is_cheating(std::string(opens) + " mov.u64 %rd1, %clock64; /* \" */"));
  }
  CHECK_MESSAGE(in_code(".file 2 \"%clock64\"").empty(), "a string");
}

TEST_CASE("text rules: functions that are not in the text") {
  CHECK(is_refused(".extern .func (.param .b64 r) malloc (.param .b64 n);"));
  CHECK(is_refused(".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);"));
  CHECK(is_refused(".extern .func (.param .b64 r)\n\tcudaGetParameterBufferV2\n(.param .b64 n);"));
  CHECK(is_refused(".extern\n.func (.param .b64 r) malloc(.param .b64 n);"));
  CHECK(is_refused(".extern /* ; */ .func vprintf ();"));
  CHECK(is_refused(".visible .func free(.param .b64 p);"));
  CHECK_MESSAGE(in_code(".func malloc() { ret; }").empty(), "a function of the text");
  CHECK_MESSAGE(is_refused("mov.u32 %r1, `;"), "no PTX");
  CHECK(in_code(".extern .func __assertfail (.param .b64 a);").empty());
  CHECK(in_code(".extern .func (.param .b64 r) malloc (.param .b64 n);", {"malloc"}).empty());
  CHECK(in_code(".extern .func vprintf ();", {"printf"}).empty());
  CHECK_MESSAGE(in_code("call.uni malloc_of_my_own;").empty(), "a function of the text");
}

TEST_CASE("text rules: data of files and the time of the compile") {
  CHECK(in_text("const char c[] = {\n#embed \"/etc/passwd\"\n};").at(0).line == 2);
  Task task;
  task.options.headers["table.bin"] = "1, 2";
  CHECK(in_text("#embed \"table.bin\"\n", task).empty());
  CHECK(in_text("#embed \"other.bin\"\n", task).size() == 1);
  for (const char* word : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
    const auto found = in_text(std::string("int a;\nconst char* t = ") + word + ";");
    REQUIRE(found.size() == 1);
    CHECK(found[0].is_cheating);
    CHECK(found[0].line == 2);
  }
  for (const char* text : {"#define A(a, b) a##b\nA(__TI, ME__)", "__TI\\\nME__",
                           "#define NOW \\\n__TIME__", "A(_, _, T, I, M, E, __)"}) {
    CAPTURE(text);
    CHECK(in_text(text).size() == 1);
  }
  CHECK(in_text("A(__TI, ME__)").at(0).line == 1);
  CHECK(in_text("\n\nA(__DA, TE__)").at(0).line == 3);
  CHECK(
      in_text("template <int T, int I, int M, int E> struct TIME;\n#define A(a, b) a##b").empty());
  Task defines;
  defines.options.defines["NOW"] = "__TIME__";
  CHECK(in_text("NOW", defines).size() == 1);
  CHECK_MESSAGE(in_text("// __TIME__\nconst char* t = \"__TIME__\";").empty(), "no token");
}
