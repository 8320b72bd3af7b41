// Field by field, in the order of the structs.
#include "worker/message_fields.h"

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {
namespace {

void write(ByteWriter& out, const FaultPlace& place) {
  out.text(place.what);
  out.text(place.file);
  out.i32(place.line);
  out.i32(place.first_line);
  out.i32(place.ptx_line);
  out.text(place.opcode);
}

FaultPlace read_place(ByteReader& in) {
  FaultPlace place;
  place.what = read_text(in);
  place.file = read_text(in);
  place.line = in.i32();
  place.first_line = in.i32();
  place.ptx_line = in.i32();
  place.opcode = read_text(in);
  return place;
}

}  // namespace

std::string read_text(ByteReader& in) { return in.text(std::uint32_t{128} << 20); }

std::uint8_t read_up_to(ByteReader& in, std::uint8_t last, const char* what) {
  const std::uint8_t value = in.u8();
  if (value <= last) return value;
  throw Error(format("a message of a worker has the impossible {} {}", what, value));
}

void write(ByteWriter& out, const Fault& report) {
  out.u8(static_cast<std::uint8_t>(report.kind));
  for (const std::string* part : {&report.message, &report.kernel, &report.file}) out.text(*part);
  out.i32(report.line);
  out.i32(report.first_line);
  out.i32(report.ptx_line);
  out.text(report.opcode);
  for (const unsigned part : report.block) out.u32(part);
  for (const unsigned part : report.thread) out.u32(part);
  out.u64(report.address);
  out.u64(report.access_size);
  out.text(report.allocation);
  out.u32(static_cast<std::uint32_t>(report.places.size()));
  for (const FaultPlace& place : report.places) write(out, place);
  out.text(report.details);
}

Fault read_fault(ByteReader& in) {
  Fault report;
  report.kind = read_enum(in, FaultKind::invalid_ptx, "kind of finding");
  for (std::string* part : {&report.message, &report.kernel, &report.file}) *part = read_text(in);
  report.line = in.i32();
  report.first_line = in.i32();
  report.ptx_line = in.i32();
  report.opcode = read_text(in);
  for (unsigned& part : report.block) part = in.u32();
  for (unsigned& part : report.thread) part = in.u32();
  report.address = in.u64();
  report.access_size = in.u64();
  report.allocation = read_text(in);
  for (std::uint32_t n = in.u32(); n > 0; --n) report.places.push_back(read_place(in));
  report.details = read_text(in);
  return report;
}

void write(ByteWriter& out, const std::vector<std::string>& texts) {
  out.u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& one : texts) out.text(one);
}

std::vector<std::string> read_texts(ByteReader& in) {
  std::vector<std::string> texts;
  for (std::uint32_t n = in.u32(); n > 0; --n) texts.push_back(read_text(in));
  return texts;
}

}  // namespace kernwright
