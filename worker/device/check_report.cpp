// Findings and counts, field by field in the order of the structs.
#include "worker/device/check_report.h"

#include "worker/message_fields.h"

namespace kernwright {
namespace {

void write(ByteWriter& out, const sim::OtherAccess& access) {
  out.text(access.what);
  out.i32(access.line);
  out.i32(access.first_line);
  out.i32(access.ptx_line);
  out.text(access.file);
  out.text(access.opcode);
  for (const unsigned part : access.block) out.u32(part);
  for (const unsigned part : access.thread) out.u32(part);
  out.u8(access.thread_known ? 1 : 0);
  out.text(access.value);
}

sim::OtherAccess read_access(ByteReader& in) {
  sim::OtherAccess access;
  access.what = read_text(in);
  access.line = in.i32();
  access.first_line = in.i32();
  access.ptx_line = in.i32();
  access.file = read_text(in);
  access.opcode = read_text(in);
  for (unsigned& part : access.block) part = in.u32();
  for (unsigned& part : access.thread) part = in.u32();
  access.thread_known = in.u8() != 0;
  access.value = read_text(in);
  return access;
}

void write(ByteWriter& out, const sim::Finding& finding) {
  kernwright::write(out, finding.fault);
  for (const std::string* text : {&finding.what, &finding.space, &finding.value, &finding.hint}) {
    out.text(*text);
  }
  out.u8(finding.other ? 1 : 0);
  if (finding.other) write(out, *finding.other);
  out.u64(finding.count);
  out.u8(static_cast<std::uint8_t>(finding.breadth));
  out.u64(finding.code);
}

sim::Finding read_finding(ByteReader& in) {
  sim::Finding finding;
  finding.fault = read_fault(in);
  for (std::string* text : {&finding.what, &finding.space, &finding.value, &finding.hint}) {
    *text = read_text(in);
  }
  if (in.u8() != 0) finding.other = read_access(in);
  finding.count = in.u64();
  finding.breadth = read_enum(in, sim::Breadth::copy, "breadth of a race");
  finding.code = in.u64();
  return finding;
}

void write(ByteWriter& out, const sim::LineProfile& profile) {
  out.u32(static_cast<std::uint32_t>(profile.lines.size()));
  for (const sim::LineRecord& record : profile.lines) {
    out.text(record.kernel);
    out.text(record.file);
    out.i32(record.line);
    out.i32(record.first_line);
    for (const sim::LineCountField& field : sim::line_count_fields()) {
      out.u64(record.counts.*field.value);
    }
  }
  out.u32(static_cast<std::uint32_t>(profile.launches.size()));
  for (const auto& [kernel, count] : profile.launches) {
    out.text(kernel);
    out.u64(count);
  }
}

sim::LineProfile read_profile(ByteReader& in) {
  sim::LineProfile profile;
  for (std::uint32_t n = in.u32(); n > 0; --n) {
    sim::LineRecord& record = profile.lines.emplace_back();
    record.kernel = read_text(in);
    record.file = read_text(in);
    record.line = in.i32();
    record.first_line = in.i32();
    for (const sim::LineCountField& field : sim::line_count_fields()) {
      record.counts.*field.value = in.u64();
    }
  }
  for (std::uint32_t n = in.u32(); n > 0; --n) {
    std::string kernel = read_text(in);
    profile.launches[std::move(kernel)] = in.u64();
  }
  return profile;
}

}  // namespace

void write(ByteWriter& out, const CheckOptions& options) {
  write(out, options.checks);
  out.u8(options.schedule_seed ? 1 : 0);
  out.u64(options.schedule_seed.value_or(0));
  out.u8(options.replays ? 1 : 0);
  out.u64(options.limit);
}

CheckOptions read_check_options(ByteReader& in) {
  CheckOptions options;
  options.checks = read_texts(in);
  const bool has_seed = in.u8() != 0;
  const std::uint64_t seed = in.u64();
  if (has_seed) options.schedule_seed = seed;
  options.replays = in.u8() != 0;
  options.limit = in.u64();
  return options;
}

void write(ByteWriter& out, const CheckReport& report) {
  out.u32(static_cast<std::uint32_t>(report.findings.size()));
  for (const sim::Finding& finding : report.findings) write(out, finding);
  out.u64(report.total);
  write(out, report.profile);
}

CheckReport read_check_report(ByteReader& in) {
  CheckReport report;
  for (std::uint32_t n = in.u32(); n > 0; --n) report.findings.push_back(read_finding(in));
  report.total = in.u64();
  report.profile = read_profile(in);
  return report;
}

}  // namespace kernwright
