// A compile request as bytes, and back.
#include "worker/compile_task.h"

#include <map>

#include "base/format.h"
#include "driver/nvrtc_loader.h"
#include "worker/message_fields.h"

namespace kernwright {
namespace {

void write(ByteWriter& out, const std::map<std::string, std::string>& texts) {
  out.u32(static_cast<std::uint32_t>(texts.size()));
  for (const auto& [key, value] : texts) {
    out.text(key);
    out.text(value);
  }
}

std::map<std::string, std::string> read_map(ByteReader& in) {
  std::map<std::string, std::string> texts;
  for (std::uint32_t n = in.u32(); n > 0; --n) {
    std::string key = read_text(in);
    texts[std::move(key)] = read_text(in);
  }
  return texts;
}

void write(ByteWriter& out, const std::optional<int>& number) {
  out.u8(number ? 1 : 0);
  out.i32(number.value_or(0));
}

std::optional<int> read_number(ByteReader& in) {
  const bool is_there = in.u8() != 0;
  const int number = in.i32();
  return is_there ? std::optional(number) : std::nullopt;
}

/// All but the timeout, which is the caller's. Names every field, so that a new one does not
/// compile before it travels, too.
void write(ByteWriter& out, const ProgramOptions& options) {
  const auto& [arch, std_name, defines, headers, include_dirs, fast_math, max_registers, lineinfo,
               device_debug, strip_host, minimal, pch, opt_level, timeout, extra] = options;
  static_cast<void>(timeout);
  out.text(arch);
  out.text(std_name);
  write(out, defines);
  write(out, headers);
  kernwright::write(out, include_dirs);
  for (const bool flag : {fast_math, lineinfo, device_debug, strip_host}) out.u8(flag ? 1 : 0);
  write(out, max_registers);
  write(out, opt_level);
  for (const Tristate choice : {minimal, pch}) out.u8(static_cast<std::uint8_t>(choice));
  kernwright::write(out, extra);
}

ProgramOptions read_options(ByteReader& in) {
  ProgramOptions options;
  options.arch = read_text(in);
  options.std = read_text(in);
  options.defines = read_map(in);
  options.headers = read_map(in);
  options.include_dirs = read_texts(in);
  for (bool* flag :
       {&options.fast_math, &options.lineinfo, &options.device_debug, &options.strip_host}) {
    *flag = in.u8() != 0;
  }
  options.max_registers = read_number(in);
  options.opt_level = read_number(in);
  for (Tristate* choice : {&options.minimal, &options.pch}) {
    const std::uint8_t value = in.u8();
    if (value > static_cast<std::uint8_t>(Tristate::on)) throw Error("a tristate of 3 or more");
    *choice = static_cast<Tristate>(value);
  }
  options.extra = read_texts(in);
  return options;
}

std::vector<std::byte> to_bytes(const std::string& nvrtc_path, const CompileRequest& request) {
  ByteWriter out;
  out.text(nvrtc_path);
  out.text(request.source.text);
  out.text(request.source.name);
  out.i32(request.source.first_line);
  out.text(request.source.directory);
  write(out, request.options);
  out.u8(request.target.kind == CodeKind::ptx ? 1 : 0);
  out.text(request.target.nvrtc_arch);
  out.text(request.target.label);
  kernwright::write(out, request.names);
  out.u8(request.with_declared ? 1 : 0);
  kernwright::write(out, request.header_folders);
  return out.take();
}

CompileRequest read_request(ByteReader& in) {
  CompileRequest request;
  request.source.text = read_text(in);
  request.source.name = read_text(in);
  request.source.first_line = in.i32();
  request.source.directory = read_text(in);
  request.options = read_options(in);
  request.target.kind = in.u8() != 0 ? CodeKind::ptx : CodeKind::cubin;
  request.target.nvrtc_arch = read_text(in);
  request.target.label = read_text(in);
  request.names = read_texts(in);
  request.with_declared = in.u8() != 0;
  request.header_folders = read_texts(in);
  in.expect_end();
  request.declared = scan_source(request.source.text);
  return request;
}

/// The compilers that this worker was asked for so far, by path. Tasks come one after the other.
const LoadedNvrtc& nvrtc_of(const std::string& path) {
  static std::map<std::string, LoadedNvrtc>& opened = *new std::map<std::string, LoadedNvrtc>;
  const auto known = opened.find(path);
  if (known != opened.end()) return known->second;
  NvrtcSearch search;
  search.override_path = path;
  return opened.emplace(path, open_nvrtc(search)).first->second;
}

std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

ObjectCode compile_in(Worker& worker, const std::string& nvrtc_path, const CompileRequest& request,
                      const WaitLimits& limits) {
  const std::vector<std::byte> bytes = to_bytes(nvrtc_path, request);
  const WorkerTask task{"compile", format("compiling {}", request.source.name), bytes};
  ObjectCode code = ObjectCode::deserialize(
      to_text(worker.run(task, limits.within(request.options.timeout)).bytes));
  code.origin = CodeOrigin::compiled;
  return code;
}

std::vector<std::byte> run_compile_task(ByteReader& request, std::vector<FileHandle>&) {
  const std::string path = read_text(request);
  const CompileRequest compile = read_request(request);
  const std::string code = Compiler(nvrtc_of(path)).compile(compile).serialize();
  const auto bytes = std::as_bytes(std::span(code.data(), code.size()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace kernwright
