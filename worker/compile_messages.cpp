// Compile jobs and their results as bytes, and back.
#include "worker/compile_messages.h"

#include <map>
#include <memory>
#include <optional>

#include "base/errors.h"
#include "worker/message_fields.h"

namespace kernwright {
namespace {

constexpr std::uint32_t kMaxCodeText = std::uint32_t{1} << 30;

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

void write(ByteWriter& out, const CompileTrace& trace) {
  kernwright::write(out, trace.options);
  out.i32(trace.attempts);
  out.u8(trace.minimal ? 1 : 0);
  out.u8(trace.is_provisional ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(trace.pch));
  out.f64(trace.nvrtc_ms);
}

CompileTrace read_trace(ByteReader& in) {
  CompileTrace trace;
  trace.options = read_texts(in);
  trace.attempts = in.i32();
  trace.minimal = in.u8() != 0;
  trace.is_provisional = in.u8() != 0;
  trace.pch = read_enum(in, PchUse::use, "use of precompiled headers");
  trace.nvrtc_ms = in.f64();
  return trace;
}

}  // namespace

void write(ByteWriter& out, const NvrtcSearch& search) {
  out.text(search.override_path);
  out.text(search.package_directory);
  write(out, search.site_packages);
  write(out, search.toolkits);
  out.u8(search.system_loader ? 1 : 0);
}

NvrtcSearch read_search(ByteReader& in) {
  NvrtcSearch search;
  search.override_path = read_text(in);
  search.package_directory = read_text(in);
  search.site_packages = read_texts(in);
  search.toolkits = read_texts(in);
  search.system_loader = in.u8() != 0;
  return search;
}

void write(ByteWriter& out, const NvrtcFacts& nvrtc) {
  out.i32(nvrtc.major);
  out.i32(nvrtc.minor);
  for (const std::string* text : {&nvrtc.path, &nvrtc.builtins_path, &nvrtc.stamp}) {
    out.text(*text);
  }
  out.u32(static_cast<std::uint32_t>(nvrtc.archs.size()));
  for (const int arch : nvrtc.archs) out.i32(arch);
}

NvrtcFacts read_facts(ByteReader& in) {
  NvrtcFacts nvrtc;
  nvrtc.major = in.i32();
  nvrtc.minor = in.i32();
  for (std::string* text : {&nvrtc.path, &nvrtc.builtins_path, &nvrtc.stamp}) {
    *text = read_text(in);
  }
  for (std::uint32_t n = in.u32(); n > 0; --n) nvrtc.archs.push_back(in.i32());
  return nvrtc;
}

void write(ByteWriter& out, const Source& source) {
  for (const std::string* text : {&source.text, &source.name, &source.directory}) out.text(*text);
  out.i32(source.first_line);
}

Source read_source(ByteReader& in) {
  Source source;
  for (std::string* text : {&source.text, &source.name, &source.directory}) *text = read_text(in);
  source.first_line = in.i32();
  return source;
}

// It names every field, so that a new one does not compile before it travels, too.
void write(ByteWriter& out, const ProgramOptions& options) {
  const auto& [arch, std_name, defines, headers, include_dirs, fast_math, max_registers, lineinfo,
               device_debug, strip_host, minimal, pch, opt_level, timeout, extra] = options;
  static_cast<void>(timeout);
  out.text(arch);
  out.text(std_name);
  write(out, defines);
  write(out, headers);
  write(out, include_dirs);
  for (const bool flag : {fast_math, lineinfo, device_debug, strip_host}) out.u8(flag ? 1 : 0);
  write(out, max_registers);
  write(out, opt_level);
  for (const Tristate choice : {minimal, pch}) out.u8(static_cast<std::uint8_t>(choice));
  write(out, extra);
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
    *choice = read_enum(in, Tristate::on, "tristate");
  }
  options.extra = read_texts(in);
  return options;
}

void write(ByteWriter& out, const CompileJob& job) {
  const CompileRequest& request = job.request;
  write(out, request.source);
  write(out, request.options);
  out.u8(request.target.kind == CodeKind::ptx ? 1 : 0);
  out.text(request.target.nvrtc_arch);
  out.text(request.target.label);
  write(out, request.names);
  out.u8(request.with_declared ? 1 : 0);
  out.u8(request.with_members ? 1 : 0);
  write(out, request.header_folders);
  out.u8(job.with_cuda_headers ? 1 : 0);
  out.u8(job.is_measured ? 1 : 0);
}

CompileJob read_job(ByteReader& in) {
  CompileJob job;
  CompileRequest& request = job.request;
  request.source = read_source(in);
  request.options = read_options(in);
  request.target.kind = in.u8() != 0 ? CodeKind::ptx : CodeKind::cubin;
  request.target.nvrtc_arch = read_text(in);
  request.target.label = read_text(in);
  request.names = read_texts(in);
  request.with_declared = in.u8() != 0;
  request.with_members = in.u8() != 0;
  request.header_folders = read_texts(in);
  job.with_cuda_headers = in.u8() != 0;
  job.is_measured = in.u8() != 0;
  // Scanned anew: this takes a small part of any compile, and the message stays a request alone.
  request.declared = scan_source(request.source.text);
  return job;
}

void write(ByteWriter& out, const CompileResult& result) {
  out.text(result.code.serialize());
  write(out, result.code.trace == nullptr ? CompileTrace{} : *result.code.trace);
  write(out, result.folders);
  out.text(result.note);
  out.text(result.phase_times);
}

CompileResult read_result(ByteReader& in) {
  CompileResult result;
  result.code = ObjectCode::deserialize(in.text(kMaxCodeText));
  result.code.origin = CodeOrigin::compiled;
  result.code.trace = std::make_shared<const CompileTrace>(read_trace(in));
  result.folders = read_texts(in);
  result.note = read_text(in);
  result.phase_times = read_text(in);
  return result;
}

}  // namespace kernwright
