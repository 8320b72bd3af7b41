// Look-up by name, and the file format of object code.
#include "jit/object_code.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/byte_reader.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "base/whole_file.h"
#include "jit/signature/image_reader.h"

namespace kernwright {
namespace {

/// File: magic, format version, checksum of the body (high, low), length of the body, body.
constexpr std::string_view kMagic{"KWOBJ\r\n\x1a", 8};
constexpr std::uint32_t kFormatVersion = 2;
constexpr std::uint32_t kMaxText = std::uint32_t{1} << 20;
constexpr std::uint32_t kMaxLog = std::uint32_t{8} << 20;
constexpr std::uint32_t kMaxCount = std::uint32_t{1} << 20;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void malformed(const char* what) {
  throw Error(format("object code holds an impossible value of {}", what));
}

std::uint32_t read_count(ByteReader& in, const char* what) {
  const std::uint32_t count = in.u32();
  if (count > kMaxCount || count > in.remaining()) malformed(what);
  return count;
}

bool read_bool(ByteReader& in) {
  const std::uint8_t value = in.u8();
  if (value > 1) malformed("a yes-or-no field");
  return value == 1;
}

constexpr std::uint8_t kNoScalar = 255;

void write(ByteWriter& out, const std::optional<ScalarType>& scalar) {
  out.u8(scalar ? static_cast<std::uint8_t>(*scalar) : kNoScalar);
}

std::optional<ScalarType> read_scalar(ByteReader& in) {
  const std::uint8_t value = in.u8();
  if (value == kNoScalar) return std::nullopt;
  if (value >= kScalarTypeCount) malformed("an element type");
  return static_cast<ScalarType>(value);
}

void write(ByteWriter& out, const std::vector<std::size_t>& shape) {
  out.u32(static_cast<std::uint32_t>(shape.size()));
  for (const std::size_t extent : shape) out.u64(extent);
}

std::vector<std::size_t> read_shape(ByteReader& in) {
  std::vector<std::size_t> shape;
  for (auto n = read_count(in, "a shape"); n > 0; --n) shape.push_back(in.u64());
  return shape;
}

void write(ByteWriter& out, const std::vector<StructField>& fields) {
  out.u32(static_cast<std::uint32_t>(fields.size()));
  for (const StructField& field : fields) {
    out.text(field.name);
    out.text(field.type);
    write(out, field.scalar);
    out.i32(field.lanes);
    write(out, field.shape);
    out.u64(field.offset);
    out.u64(field.size);
  }
}

std::vector<StructField> read_fields(ByteReader& in) {
  std::vector<StructField> fields;
  for (auto n = read_count(in, "a struct's members"); n > 0; --n) {
    StructField& field = fields.emplace_back();
    field.name = in.text(kMaxText);
    field.type = in.text(kMaxText);
    field.scalar = read_scalar(in);
    field.lanes = in.i32();
    field.shape = read_shape(in);
    field.offset = in.u64();
    field.size = in.u64();
  }
  return fields;
}

void write(ByteWriter& out, const Parameter& parameter) {
  out.text(parameter.name);
  out.text(parameter.type);
  out.u8(static_cast<std::uint8_t>(parameter.kind));
  write(out, parameter.scalar);
  out.i32(parameter.lanes);
  out.u8(parameter.pointee_const ? 1 : 0);
  out.u8(parameter.any_byte_pointee ? 1 : 0);
  out.u64(parameter.pointee_size);
  out.u64(parameter.size);
  out.u64(parameter.alignment);
  out.u64(parameter.offset);
  out.u64(parameter.element_size);
  write(out, parameter.fields);
}

Parameter read_parameter(ByteReader& in) {
  Parameter parameter;
  parameter.name = in.text(kMaxText);
  parameter.type = in.text(kMaxText);
  const std::uint8_t kind = in.u8();
  if (kind > static_cast<std::uint8_t>(ParameterKind::untyped)) malformed("a parameter kind");
  parameter.kind = static_cast<ParameterKind>(kind);
  parameter.scalar = read_scalar(in);
  parameter.lanes = in.i32();
  parameter.pointee_const = read_bool(in);
  parameter.any_byte_pointee = read_bool(in);
  parameter.pointee_size = in.u64();
  parameter.size = in.u64();
  parameter.alignment = in.u64();
  parameter.offset = in.u64();
  parameter.element_size = in.u64();
  parameter.fields = read_fields(in);
  return parameter;
}

void write(ByteWriter& out, const KernelSignature& kernel) {
  out.text(kernel.name);
  out.text(kernel.lowered);
  out.u8(kernel.is_told ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(kernel.parameters.size()));
  for (const Parameter& parameter : kernel.parameters) write(out, parameter);
}

KernelSignature read_kernel(ByteReader& in) {
  KernelSignature kernel;
  kernel.name = in.text(kMaxText);
  kernel.lowered = in.text(kMaxText);
  kernel.is_told = read_bool(in);
  const std::uint32_t count = read_count(in, "the parameter count");
  for (std::uint32_t i = 0; i < count; ++i) kernel.parameters.push_back(read_parameter(in));
  return kernel;
}

void write(ByteWriter& out, const SymbolType& type) {
  out.text(type.type);
  write(out, type.scalar);
  out.i32(type.lanes);
  write(out, type.shape);
  write(out, type.fields);
}

SymbolType read_symbol_type(ByteReader& in) {
  SymbolType type;
  type.type = in.text(kMaxText);
  type.scalar = read_scalar(in);
  type.lanes = in.i32();
  type.shape = read_shape(in);
  type.fields = read_fields(in);
  return type;
}

std::vector<std::byte> write_body(const ObjectCode& code) {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(code.kind));
  out.text(code.arch);
  out.blob(as_bytes(code.code));
  out.blob(as_bytes(code.resource_cubin));
  out.text(code.log);
  out.u32(static_cast<std::uint32_t>(code.diagnostics.size()));
  for (const Diagnostic& diagnostic : code.diagnostics) write(out, diagnostic);
  out.u32(static_cast<std::uint32_t>(code.kernels.size()));
  for (const KernelSignature& kernel : code.kernels) write(out, kernel);
  out.u32(static_cast<std::uint32_t>(code.symbols.size()));
  for (const auto& [name, lowered] : code.symbols) {
    out.text(name);
    out.text(lowered);
  }
  out.u32(static_cast<std::uint32_t>(code.symbol_types.size()));
  for (const auto& [name, type] : code.symbol_types) {
    out.text(name);
    write(out, type);
  }
  out.text(code.nvrtc_version);
  out.f64(code.compile_ms);
  return out.take();
}

ObjectCode read_body(ByteReader& in) {
  ObjectCode code;
  const std::uint8_t kind = in.u8();
  if (kind > static_cast<std::uint8_t>(CodeKind::ptx)) malformed("the kind of code");
  code.kind = static_cast<CodeKind>(kind);
  code.arch = in.text(kMaxText);
  code.code = to_text(in.blob());
  code.resource_cubin = to_text(in.blob());
  code.log = in.text(kMaxLog);
  for (auto n = read_count(in, "the message count"); n > 0; --n) {
    code.diagnostics.push_back(read_diagnostic(in));
  }
  for (auto n = read_count(in, "the kernel count"); n > 0; --n) {
    code.kernels.push_back(read_kernel(in));
  }
  for (auto n = read_count(in, "the symbol count"); n > 0; --n) {
    std::string name = in.text(kMaxText);
    code.symbols[std::move(name)] = in.text(kMaxText);
  }
  for (auto n = read_count(in, "the symbol type count"); n > 0; --n) {
    std::string name = in.text(kMaxText);
    code.symbol_types[std::move(name)] = read_symbol_type(in);
  }
  code.nvrtc_version = in.text(kMaxText);
  code.compile_ms = in.f64();
  in.expect_end();
  return code;
}

}  // namespace

const char* code_kind_name(CodeKind kind) noexcept {
  return kind == CodeKind::cubin ? "cubin" : "ptx";
}

const KernelSignature& ObjectCode::kernel(const std::string& name) const {
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const KernelSignature& k) {
    return k.name == name || k.lowered == name;
  });
  if (found != kernels.end()) return *found;
  std::vector<std::string> names;
  for (const KernelSignature& kernel : kernels) names.push_back(kernel.name);
  throw NameNotFound(
      format("no kernel {} in this object code{}", printable(name), describe_names(name, names)));
}

bool ObjectCode::is_saved(std::string_view bytes) noexcept { return bytes.starts_with(kMagic); }

std::string ObjectCode::serialize() const {
  const std::vector<std::byte> body = write_body(*this);
  const Hash128 checksum = hash_bytes(body);
  ByteWriter out;
  out.bytes(as_bytes(kMagic));
  out.u32(kFormatVersion);
  out.u64(checksum.high);
  out.u64(checksum.low);
  out.u64(body.size());
  out.bytes(body);
  return to_text(out.data());
}

ObjectCode ObjectCode::deserialize(std::string_view bytes) {
  ByteReader in(as_bytes(bytes), "object code");
  if (!is_saved(bytes)) {
    throw Error("these bytes are no object code: neither saved by save(), nor a cubin, nor PTX");
  }
  in.expect(kMagic);
  const std::uint32_t version = in.u32();
  if (version != kFormatVersion) {
    throw Error(format("object code has format version {}; this library reads version {}", version,
                       kFormatVersion));
  }
  const Hash128 checksum{in.u64(), in.u64()};
  const std::uint64_t size = in.u64();
  if (size != in.remaining()) {
    throw Error(format("object code is {}: {} bytes of {} are there",
                       size > in.remaining() ? "cut short" : "too long", in.remaining(), size));
  }
  const auto body = in.bytes(size);
  if (hash_bytes(body) != checksum) {
    throw Error("object code is damaged: its checksum does not match");
  }
  ByteReader body_in(body, "object code");
  return read_body(body_in);
}

void ObjectCode::save(const std::filesystem::path& path) const {
  const std::string bytes = serialize();
  if (!write_whole_file(path.string(), bytes)) {
    throw Error(format("object code cannot be saved: {} cannot be written", path.string()));
  }
}

ObjectCode ObjectCode::load(const std::filesystem::path& path) {
  const RegularFile file = read_regular_file(path.string(), kMaxFileBytes);
  if (!file.reason.empty()) {
    throw Error(format("{} cannot be loaded: {}", path.string(), file.reason));
  }
  const std::string& bytes = file.bytes;
  try {
    return is_saved(bytes) ? deserialize(bytes) : object_code_of_image(bytes);
  } catch (const Error& reason) {
    throw Error(format("{} cannot be loaded: {}", path.string(), reason.what()));
  }
}

}  // namespace kernwright
