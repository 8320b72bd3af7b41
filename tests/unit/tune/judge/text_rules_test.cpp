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

TEST_CASE("text rules: the timer in waits of libcu++") {
  const std::string files =
      "\t.file\t1 \"kernel.cu\"\n\t.file\t2 \"/c/cuda/std/__thread/threading_support.h\"\n"
      "\t.file\t3 \"/c/cuda/std/__chrono/system_clock.h\"\n\t.file\t4 \"/c/cuda/ptx/sreg.h\"\n";
  const auto waits = [&](const std::string& places) {
    ObjectCode code;
    code.code = files + places + "\n\tmov.u64 %rd1, %globaltimer;\n";
    bool waits_by_clock = false;
    const bool is_fine = refused_in_code(code, Task{}, waits_by_clock).empty();
    CHECK(is_fine == waits_by_clock);
    return is_fine;
  };
  const std::string wait = "\t.loc\t2 64 5, function_name $L1, inlined_at 1 9 3\n";
  const std::string now = "\t.loc\t3 49 5, function_name $L2+4, inlined_at 2 64 5\n";
  CHECK(waits(wait + now));
  CHECK(waits(wait + now + "\t.loc\t4 8 3, function_name $L3, inlined_at 3 49 5\n"));
  CHECK_FALSE_MESSAGE(waits(wait), "a function that the text gives to the wait");
  CHECK_FALSE(waits(wait + "\t.loc\t4 8 3, function_name $L3, inlined_at 2 64 5\n"));
  CHECK_FALSE(waits(wait + now + "\t.loc\t1 20 3\n"));
  CHECK_FALSE(waits(wait + now + "\t.loc\t4 8 3, function_name $L3, inlined_at 1 49 5\n"));
  CHECK_FALSE(waits("\t.loc\t3 49 5, function_name $L2, inlined_at 1 64 5\n"));
  CHECK_FALSE(waits("\t.loc\t1 3 3\n"));
  const auto has_none = [](const std::string& text) {
    ObjectCode code;
    code.code = text;
    return has_no_places(code);
  };
  CHECK(has_none("mov.u32 %r1, 5; // .loc 1 2 3\n"));
  CHECK_FALSE(has_none("mov.u32 %r1, 5;\n.loc 1 2 3\n"));
  CHECK_FALSE(has_none(files));
}

TEST_CASE("text rules: functions that are not in the text") {
  CHECK(is_refused(".extern .func (.param .b64 r) malloc (.param .b64 n);"));
  CHECK(is_refused(".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);"));
  CHECK(is_refused(".extern .func (.param .b64 r)\n\tcudaGetParameterBufferV2\n(.param .b64 n);"));
  CHECK(is_refused(".extern\n.func (.param .b64 r) malloc(.param .b64 n);"));
  CHECK(is_refused(".extern /* ; */ .func vprintf ();"));
  CHECK(is_refused(".visible .func free(.param .b64 p);"));
  CHECK_MESSAGE(in_code(".func malloc() { ret; }").empty(), "a function of the text");
  CHECK_MESSAGE(
      in_code(".func cuda_f(.param .b32 cuda_p); .func cuda_f(.param .b32 cuda_p) { ret; }")
          .empty(),
      "a function of the text, declared first");
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
                           "#define NOW \\\n__TIME__", "JOIN(_, _, T, I, M, E, __)"}) {
    CAPTURE(text);
    CHECK(in_text(text).size() == 1);
  }
  CHECK(in_text("CAT(__TI, ME__)").at(0).line == 1);
  CHECK(in_text("\n\nCAT(__DA, TE__)").at(0).line == 3);
  CHECK(
      in_text("template <int T, int I, int M, int E> struct TIME;\n#define A(a, b) a##b").empty());
  Task defines;
  defines.options.defines["NOW"] = "__TIME__";
  CHECK(in_text("NOW", defines).size() == 1);
  CHECK_MESSAGE(in_text("// __TIME__\nconst char* t = \"__TIME__\";").empty(), "no token");
}

TEST_CASE("text rules: names of one letter make no word without pasting") {
  CHECK(in_text("template <int T, int I, int M, int E> struct _ {};").empty());
  CHECK(in_text("enum { TIME, DATE }; int __(int v);").empty());
  CHECK(in_text("#define A(a, b) a##b\nint A(__TI, ME__);").size() == 1);
  CHECK(in_text("%:define A(a, b) a%:%:b\nint A(__TI, ME__);").size() == 1);
  for (const char* text : {"int _CCCL_PP_CAT(__TI, ME__);", "_CCCL_PP_SPLICE_WITH(ME, __TI, __)",
                           "_CCCL_CHECK_BUILTIN(TIME__)", "_CCCL_CHECK_BUILTIN(X) A(TIME, __)"}) {
    CAPTURE(text);
    CHECK_MESSAGE(in_text(text).size() == 1, "a macro of a header");
  }
  CHECK(in_text("int a = __TI\\\nME__[0];").size() == 1);
  CHECK(in_text("int a = __TI\\ \nME__[0];").size() == 1);
  CHECK(in_text(std::string(kMostJudgedBytes + 1, ' ')).size() == 1);
}

TEST_CASE("text rules: texts that may see the name of their file") {
  const auto sees = [](const std::string& text) {
    return may_see_its_name({text, "k.cu", 1, {}}, Task{});
  };
  CHECK(sees("const char* n = __FILE__;"));
  CHECK(sees("assert(x > 0);"));
  CHECK(sees("#define A(a, b) a##b\nauto n = A(__FI, LE__);"));
  CHECK(sees("auto n = __builtin_FILE();"));
  CHECK(sees("#define A(a, b) a##b\nauto n = A(_CCCL_BUILTIN_FI, LE)();"));
  for (const char* macro :
       {"_CCCL_BUILTIN_FILE()", "_CCCL_ASSERT(x, \"\")", "_CCCL_VERIFY(x, \"\")", "CubDebug(x)",
        "_CUDA_CUB_RET_IF_FAIL(x)", "_CG_ABORT()"}) {
    CAPTURE(macro);
    CHECK_MESSAGE(sees(macro), "a macro of a header that has __FILE__ inside");
  }
  CHECK_FALSE(sees("static_assert(sizeof(int) == 4); struct Tile;"));
  CHECK_FALSE(sees("// __FILE__\nconst char* n = \"__FILE__\"; int file = __LINE__;"));
}

TEST_CASE("text rules: #line directives become blanks") {
  CHECK(without_line_directives("#line 5 \"x\"\nint a;") == "           \nint a;");
  CHECK(without_line_directives("# 5 \"x\"\nint a;").find('x') == std::string::npos);
  CHECK(without_line_directives("%:line 5\n").find("line") == std::string::npos);
  CHECK(without_line_directives("#li\\\nne 5\nint a;").find("ne") == std::string::npos);
  const std::string stays = "#define line 3\n#include <line>\n// #line 3\nint a = 3;\n";
  CHECK(without_line_directives(stays) == stays);
}
