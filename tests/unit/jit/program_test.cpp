// Programs on devices: compiles and loads, and their number.
#include "jit/program.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

#include "base/errors.h"
#include "base/log.h"
#include "core/device.h"
#include "jit/cache/code_cache.h"
#include "unit/base/environment_guard.h"
#include "unit/base/temporary_directory.h"
#include "unit/core/fake_driver.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

const std::string kText =
    "__constant__ float coeffs[3];\n"
    "__global__ void first(float* x) { *x = coeffs[0]; }\n"
    "__global__ void second(int n) {}\n"
    "template <class T> __global__ void third(T* x) { *x = 1; }\n";

Source text(std::string source_text) {
  Source source;
  source.text = std::move(source_text);
  return source;
}

/// A GPU of the fake driver, of this compute capability; its modules hold the kernels of kText.
Device& gpu(int major = 9, int minor = 0) {
  use_test_nvrtc();
  Device& device = fresh_device();
  FakeDriver& fake = FakeDriver::get();
  fake.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = major;
  fake.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = minor;
  fake.tells_parameters = false;
  fake.kernels = {
      {"_Z5firstPf", {8}}, {"_Z6secondi", {4}}, {"_Z5thirdIfEvPT_", {8}}, {"_Z5thirdIdEvPT_", {8}}};
  fake.globals = {{"coeffs", 12}};
  return device;
}

}  // namespace

TEST_CASE("program: bad sources and options are refused at once") {
  CHECK_THROWS_AS(Program(text("")), InvalidArgument);
  CHECK_THROWS_AS(Program(text(std::string("a\0b", 3))), InvalidArgument);
  ProgramOptions options;
  options.arch = "sm90";
  CHECK_THROWS_AS(Program(text("x"), options), InvalidArgument);
  options = {};
  options.std = "c++99";
  CHECK_THROWS_AS(Program(text("x"), options), InvalidArgument);
}

TEST_CASE("program: declarations are there without a compiler") {
  const Program program(text(kText));
  REQUIRE(program.declarations().size() == 3);
  CHECK(program.declarations()[2].is_template);
  CHECK(program.source().text == kText);
}

TEST_CASE("program: compile without a device") {
  use_test_nvrtc();
  ProgramOptions options;
  options.arch = "sm_90";
  const Program program(text(kText), options);
  const ObjectCode cubin = program.compile(CodeKind::cubin);
  CHECK(cubin.arch == "sm_90");
  CHECK(cubin.kernels.size() == 2);
  const ObjectCode ptx = program.compile(CodeKind::ptx, {"third<double>"});
  CHECK(ptx.arch == "compute_90");
  REQUIRE(ptx.kernels.size() == 1);
  CHECK(ptx.kernels[0].to_string() == "third<double>(double* x)");
  CHECK(Program(text(kText)).compile(CodeKind::ptx).arch == "compute_80");
  CHECK_THROWS_AS(Program(text(kText)).compile(CodeKind::cubin), InvalidArgument);
  options.arch = "sm_999";
  CHECK(contains(thrown_by<InvalidArgument>([&] {
                   Program(text(kText), options).compile(CodeKind::cubin);
                 }).what(),
                 "sm_80"));
}

TEST_CASE("program: a GPU gets a cubin of its architecture, one newer than NVRTC gets PTX") {
  const Program program(text(kText));
  const auto code = program.compile_for(gpu(9, 0));
  CHECK(code->kind == CodeKind::cubin);
  CHECK(code->arch == "sm_90");
  const auto newer = program.compile_for(gpu(99, 0));
  CHECK(newer->kind == CodeKind::ptx);
  CHECK(newer->arch.starts_with("compute_"));
  CHECK(newer->resource_cubin.empty());
}

TEST_CASE("program: one compile and one module for all declared kernels") {
  Device& device = gpu();
  const Program program(text(kText + "// one module"));
  const auto before = CodeCache::process().stats();
  CHECK(program.kernel(device, "first").signature().to_string() == "first(float* x)");
  CHECK(program.kernel(device, "second").signature().to_string() == "second(int n)");
  CHECK(program.kernel(device, "first").handle() != program.kernel(device, "second").handle());
  CHECK(program.symbol(device, "coeffs").size == 12);
  CHECK(program.symbol_type(device, "coeffs").type == "float [3]");
  CHECK(program.module(device).handle() == program.kernel(device, "first").module().handle());
  CHECK(FakeDriver::get().live("module") == 1);
  CHECK(CodeCache::process().stats().misses == before.misses + 1);
}

TEST_CASE("program: an instantiation asked for later brings a module of its own") {
  Device& device = gpu();
  const Program program(text(kText + "// instantiations"));
  program.kernel(device, "first");
  CHECK(program.kernel(device, "third<float>").signature().to_string() == "third<float>(float* x)");
  CHECK(FakeDriver::get().live("module") == 2);
  program.kernel(device, "third<float>");
  CHECK(FakeDriver::get().live("module") == 2);
  program.kernel(device, "third<double>");
  CHECK(FakeDriver::get().live("module") == 3);
}

TEST_CASE("program: kernels by name tell no members of structs") {
  Device& device = gpu();
  const std::string structs =
      "struct Two { float a, b; };\n__global__ void first(Two* x) { x->a = x->b; }\n";
  for (const ProgramScope scope : {ProgramScope::whole, ProgramScope::named}) {
    const Program program(text(structs), {}, scope);
    const auto& x = program.object_code(device, "first")->kernel("first").parameters.at(0);
    CHECK(x.type == "Two*");
    CHECK(x.pointee_size == 8);
    CHECK(x.fields.size() == (scope == ProgramScope::whole ? 2 : 0));
  }
}

TEST_CASE("program: unknown kernels and variables list what there is") {
  Device& device = gpu();
  const Program program(text(kText));
  CHECK(
      contains(thrown_by<NameNotFound>([&] { program.kernel(device, "firts"); }).what(), "second"));
  CHECK(contains(thrown_by<NameNotFound>([&] { program.kernel(device, "third"); }).what(),
                 "third<float>"));
  CHECK(contains(thrown_by<NameNotFound>([&] { program.symbol(device, "coefs"); }).what(),
                 "did you mean coeffs"));
  CHECK_THROWS_AS(program.symbol_type(device, "x"), NameNotFound);
}

TEST_CASE("program: a module that does not load leaves nothing behind, and is tried again") {
  Device& device = gpu();
  const Program program(text(kText + "// reload"));
  FakeDriver::get().fail("cuModuleLoadDataEx", static_cast<CUresult>(200));
  CHECK_THROWS_AS(program.kernel(device, "first"), DriverError);
  CHECK(FakeDriver::get().live("module") == 0);
  CHECK(program.kernel(device, "first").signature().name == "first");
}

TEST_CASE("program: a cubin from the disk that the driver refuses is compiled anew, once") {
  const test::TemporaryDirectory folder;
  const test::EnvironmentGuard mode("KERNWRIGHT_CACHE", "disk");
  const test::EnvironmentGuard place("KERNWRIGHT_CACHE_DIR", folder.path().c_str());
  const std::string source = kText + "// refused";
  Program(text(source)).kernel(gpu(), "first");
  const auto stats = [] { return CodeCache::process().stats(); };
  CHECK(stats().stored == 1);
  for (const int refused : {200, 209, 218, 222}) {
    CodeCache::process().clear_memory();
    Device& device = gpu();
    FakeDriver::get().fail("cuModuleLoadDataEx", static_cast<CUresult>(refused));
    const auto before = stats();
    set_log_sink([](LogLevel, std::string_view) {});
    const Program program(text(source));
    CHECK(program.kernel(device, "first").signature().name == "first");
    set_log_sink({});
    CHECK(stats().disk_hits == before.disk_hits + 1);
    CHECK(stats().compiles == before.compiles + 1);
    CHECK(stats().stored == before.stored + 1);
  }
  // A driver's refusal of code compiled here is an error, as any other failure of a load.
  CodeCache::process().clear_memory();
  Device& device = gpu();
  FakeDriver::get().fail("cuModuleLoadDataEx", static_cast<CUresult>(200), 2);
  set_log_sink([](LogLevel, std::string_view) {});
  CHECK_THROWS_AS(Program(text(source)).kernel(device, "first"), DriverError);
  set_log_sink({});
  CodeCache::process().clear_memory();
  FakeDriver::get().fail("cuModuleLoadDataEx", static_cast<CUresult>(2));
  const auto before = stats().compiles;
  CHECK_THROWS(Program(text(source)).kernel(device, "first"));
  CHECK(stats().compiles == before);
}

TEST_CASE("program: the same text twice is compiled once, an edited header again") {
  use_test_nvrtc();
  const TemporaryFolder folder;
  folder.write("t.h", "typedef int T;\n");
  ProgramOptions options;
  options.include_dirs = {folder.path().string()};
  const std::string source = "#include <t.h>\n__global__ void k(T x) {}\n";
  const auto misses = [] { return CodeCache::process().stats().misses; };
  const auto before = misses();
  const auto type = [&] {
    return Program(text(source), options).compile(CodeKind::ptx).kernel("k").parameters.at(0).type;
  };
  CHECK(type() == "int");
  CHECK(type() == "int");
  CHECK(misses() == before + 1);
  folder.write("t.h", "typedef double T;\n");
  CHECK(type() == "double");
  CHECK(misses() == before + 2);
}

TEST_CASE("program: many threads, one compile, one module") {
  Device& device = gpu();
  const Program program(text(kText + "// threads"));
  const auto before = CodeCache::process().stats().misses;
  std::vector<CUfunction> handles(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    threads.emplace_back([&, i] { handles[i] = program.kernel(device, "first").handle(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CUfunction handle : handles) CHECK(handle == handles[0]);
  CHECK(FakeDriver::get().live("module") == 1);
  CHECK(CodeCache::process().stats().misses == before + 1);
}

TEST_CASE("program: relative folders are those of the moment at which it is made") {
  const TemporaryFolder folder;
  folder.write("a/inc/v.h", "typedef float T;\n");
  folder.write("b/inc/v.h", "typedef double T;\n");
  const auto previous = std::filesystem::current_path();
  std::filesystem::current_path(folder.path() / "a");
  use_test_nvrtc();
  ProgramOptions options;
  options.arch = "compute_80";
  options.include_dirs = {"inc"};
  const Program by_option(text("#include <v.h>\n__global__ void k(T x) {}\n"), options);
  options.include_dirs.clear();
  Source beside = text("#include \"v.h\"\n__global__ void k(T x) {}\n");
  beside.directory = "inc";
  const Program by_source(beside, options);
  std::filesystem::current_path(folder.path() / "b");
  for (const Program& program : {by_option, by_source}) {
    CHECK(program.compile(CodeKind::ptx).kernels.at(0).parameters.at(0).type == "float");
  }
  std::filesystem::current_path(previous);
}

TEST_CASE("program: of code that tells no parameters the driver's are taken") {
  Device& device = gpu();
  FakeDriver::get().kernels = {{"k", {8, 4, 24}}};
  FakeDriver::get().tells_parameters = true;
  ObjectCode code;
  code.code = "anything";
  code.kernels = {{"k", "k", {}, false}};
  const Program program(code, "k.cubin");
  CHECK(program.kernel_names() == std::vector<std::string>{"k"});
  const auto p = program.kernel(device, "k").signature().parameters;
  REQUIRE(p.size() == 3);
  CHECK(p[0].kind == ParameterKind::untyped);
  CHECK(p[1].size == 4);
  CHECK(p[2].kind == ParameterKind::aggregate);
  CHECK(p[2].offset == 16);
  FakeDriver::get().tells_parameters = false;
  const auto error = thrown_by<Error>([&] { Program(code, "k.cubin").kernel(device, "k"); });
  CHECK(contains(error.what(), "CUDA 12.4"));
  CHECK_THROWS_AS(program.kernel(device, "other"), NameNotFound);
}

TEST_CASE("program: names come from the compiler where the text does not show them") {
  use_test_nvrtc();
  using Names = std::vector<std::string>;
  const auto names = [](const std::string& source, ProgramOptions options = {}) {
    const Program program(text(source), std::move(options));
    CHECK_FALSE(program.declares_all());
    return program.kernel_names();
  };
  CHECK(names("#define K(n) extern \"C\" __global__ void n\nK(mk)(float* o) {}") == Names{"mk"});
  CHECK(names("#if 0\n__global__ void old();\n#endif\n__global__ void now() {}") == Names{"now"});
  CHECK(names("__global__ void (k)(int* x) {}") == Names{"k"});
  CHECK(names("namespace n { namespace { __attribute__((global)) void a() {} } }") ==
        Names{"n::a"});
  ProgramOptions options;
  options.headers["k.cuh"] = "__global__ void in_header(float*) {}";
  CHECK(names("#include \"k.cuh\"\n__global__ void own(int) {}", options) ==
        Names{"own", "in_header"});
  options.headers.clear();
  options.defines["KERNEL"] = "__global__ void";
  CHECK(names("KERNEL k(int n) {}", options) == Names{"k"});
  CHECK(
      names("template <class T> __global__ void t(T) {}\ntemplate __global__ void t<int>(int);") ==
      Names{"t", "t<int>"});
  CHECK(Program(text(kText)).declares_all());
  CHECK(Program(text(kText)).kernel_names() == Names{"first", "second", "third"});
}
