// Look-up and file format of object code.
#include "jit/object_code.h"

#include <doctest/doctest.h>

#include <fstream>
#include <random>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// Every field with another value than its default.
ObjectCode sample() {
  ObjectCode code;
  code.kind = CodeKind::ptx;
  code.arch = "compute_80";
  code.code = std::string("binary\0bytes\xff", 13);
  code.resource_cubin =
      "\x7f"
      "ELF";
  code.log = "k.cu(1): warning: x\n";
  code.diagnostics = {{Severity::warning, "x", "k.cu", 1, 2, "caret", "hint"}};
  Parameter parameter;
  parameter.name = "x";
  parameter.type = "const float4*";
  parameter.kind = ParameterKind::pointer;
  parameter.scalar = ScalarType::float32;
  parameter.lanes = 4;
  parameter.pointee_const = true;
  parameter.pointee_size = 16;
  parameter.size = 8;
  parameter.alignment = 8;
  parameter.offset = 24;
  Parameter other;
  other.kind = ParameterKind::aggregate;
  other.any_byte_pointee = true;
  code.kernels = {{"scale<float, 4>", "_Z5scale", {parameter, other}}, {"k", "k", {}}};
  code.symbols = {{"c", "c"}, {"n::d", "_ZN1n1dE"}};
  code.symbol_types = {{"c", {"float [3][4]", ScalarType::float32, 1, {3, 4}}}};
  code.kernels[0].parameters[1].fields = {{"x", "float [2]", ScalarType::float32, 1, {2}, 0, 8},
                                          {"inner", "S", {}, 1, {}, 8, 4}};
  code.kernels[1].is_told = false;
  code.symbol_types["n::d"].fields = {{"p", "float4", ScalarType::float32, 4, {}, 16, 16}};
  code.nvrtc_version = "13.5";
  code.compile_ms = 12.5;
  return code;
}

}  // namespace

TEST_CASE("object code: kernels by the user's name") {
  const ObjectCode code = sample();
  CHECK(code.kernel("scale<float, 4>").lowered == "_Z5scale");
  const auto error = thrown_by<NameNotFound>([&] { code.kernel("scale<float,4>"); });
  CHECK(contains(error.what(), "did you mean scale<float, 4>"));
  CHECK(contains(thrown_by<NameNotFound>([] { ObjectCode().kernel("x"); }).what(), "none"));
}

TEST_CASE("object code: what is written is read back, field by field") {
  const ObjectCode code = sample();
  const ObjectCode read = ObjectCode::deserialize(code.serialize());
  CHECK(read.kind == code.kind);
  CHECK(read.arch == code.arch);
  CHECK(read.code == code.code);
  CHECK(read.resource_cubin == code.resource_cubin);
  CHECK(read.log == code.log);
  REQUIRE(read.diagnostics.size() == 1);
  CHECK(read.diagnostics[0].to_string() == code.diagnostics[0].to_string());
  REQUIRE(read.kernels.size() == 2);
  REQUIRE(read.kernels[0].parameters.size() == 2);
  const Parameter& p = read.kernels[0].parameters[0];
  CHECK(p.name == "x");
  CHECK(p.type == "const float4*");
  CHECK(p.kind == ParameterKind::pointer);
  CHECK(p.scalar == ScalarType::float32);
  CHECK(p.lanes == 4);
  CHECK(p.pointee_const);
  CHECK(p.pointee_size == 16);
  CHECK(p.size == 8);
  CHECK(p.alignment == 8);
  CHECK(p.offset == 24);
  CHECK(read.kernels[0].parameters[1].any_byte_pointee);
  CHECK_FALSE(read.kernels[0].parameters[1].scalar);
  CHECK(read.symbols == code.symbols);
  CHECK(read.symbol_types.at("c").shape == std::vector<std::size_t>{3, 4});
  CHECK(read.symbol_types.at("c").scalar == ScalarType::float32);
  CHECK(read.nvrtc_version == "13.5");
  CHECK(read.compile_ms == 12.5);
  CHECK(read.serialize() == code.serialize());
}

TEST_CASE("object code: an empty one survives too") {
  CHECK(ObjectCode::deserialize(ObjectCode().serialize()).serialize() == ObjectCode().serialize());
}

TEST_CASE("object code: every truncation is an error") {
  const std::string bytes = sample().serialize();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CHECK_THROWS_AS(ObjectCode::deserialize(bytes.substr(0, i)), Error);
  }
  CHECK_THROWS_AS(ObjectCode::deserialize(bytes + "x"), Error);
}

TEST_CASE("object code: every flipped bit is an error") {
  const std::string bytes = sample().serialize();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      CHECK_THROWS_AS(ObjectCode::deserialize(changed), Error);
    }
  }
}

TEST_CASE("object code: files keep it, and bad files say their path and reason") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "k.kwobj";
  sample().save(path);
  CHECK(ObjectCode::load(path).serialize() == sample().serialize());
  const auto reason = [](const std::filesystem::path& file) {
    const std::string text = thrown_by<Error>([&] { ObjectCode::load(file); }).what();
    CHECK(contains(text, file.string()));
    return text;
  };
  CHECK(contains(reason(folder.path() / "missing"), "does not exist"));
  CHECK(contains(reason(folder.path()), "a folder, no regular file"));
  CHECK(reason(folder.write("empty", "")) != "");
  CHECK(reason(folder.write("foreign",
                            "\x7f"
                            "ELF, which is a cubin and no object code")) != "");
  CHECK(contains(reason(folder.write("cut", sample().serialize().substr(0, 100))), "cut short"));
  std::string newer = sample().serialize();
  newer[8] = 3;
  CHECK(contains(reason(folder.write("newer", newer)), "version 3"));
  const auto unwritable = thrown_by<Error>([&] { sample().save(folder.path() / "no" / "folder"); });
  CHECK(contains(unwritable.what(), "no/folder"));
}

TEST_CASE("object code: what the compiler makes goes through the file format") {
  const ObjectCode code =
      Compiler(newest_nvrtc())
          .compile(request_for("__constant__ float c[3]; __global__ void k(const float* x) {}"));
  CHECK(ObjectCode::deserialize(code.serialize()).serialize() == code.serialize());
}
