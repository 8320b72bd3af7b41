// A bounded reader of the few ELF sections with a cubin's resource counts.
#include "sim/device/resources.h"

#include "base/byte_reader.h"
#include "base/errors.h"
#include "sim/code/program.h"
#include "sim/exec/warp/warp.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace kernwright::sim {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kNoBits = 8;  // section without bytes in the file

// Attributes of .nv.info sections, as CUDA's binary utilities name them.
constexpr std::uint8_t kAttributeMaxThreads = 0x05;
constexpr std::uint8_t kAttributeFrameSize = 0x11;
constexpr std::uint8_t kAttributeMinStackSize = 0x12;
constexpr std::uint8_t kFormatSized = 4;

struct Section {
  std::string_view name;
  std::uint32_t type = 0, info = 0;
  std::uint64_t size = 0;
  Bytes content;
};

Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    throw Error("cubin: a section lies outside the image");
  }
  return bytes.subspan(offset, size);
}

std::string_view text_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) throw Error("cubin: a name lies outside its table");
  const std::string_view rest(reinterpret_cast<const char*>(table.data()) + offset,
                              table.size() - offset);
  return rest.substr(0, rest.find('\0'));
}

struct RawSection {
  std::uint32_t name = 0;
  Section section;
};

RawSection read_section(Bytes image, ByteReader& header) {
  RawSection raw;
  raw.name = header.u32();
  raw.section.type = header.u32();
  header.bytes(16);  // flags, address
  const std::uint64_t offset = header.u64();
  raw.section.size = header.u64();
  header.u32();  // link
  raw.section.info = header.u32();
  header.bytes(16);  // alignment, entry size
  if (raw.section.type != kNoBits && raw.section.type != 0) {
    raw.section.content = part(image, offset, raw.section.size);
  }
  return raw;
}

std::vector<Section> read_sections(Bytes image) {
  ByteReader header(image, "cubin");
  header.expect(
      "\x7f"
      "ELF\x02\x01");  // 64 bits, little endian
  header.bytes(12);
  if (header.u16() != kMachineCuda) throw Error("cubin: the image is not for a GPU");
  header.bytes(20);  // version, entry, program headers
  const std::uint64_t table = header.u64();
  header.bytes(10);
  const std::uint16_t entry_size = header.u16();
  const std::uint16_t count = header.u16();
  const std::uint16_t names_index = header.u16();
  if (entry_size != 64 || names_index >= count) throw Error("cubin: bad section table");
  ByteReader rows(part(image, table, std::uint64_t{64} * count), "cubin sections");
  std::vector<RawSection> raw;
  for (int i = 0; i < count; ++i) raw.push_back(read_section(image, rows));
  const Bytes names = raw[names_index].section.content;
  std::vector<Section> sections;
  for (RawSection& row : raw) {
    row.section.name = row.section.type == 0 ? std::string_view{} : text_at(names, row.name);
    sections.push_back(row.section);
  }
  return sections;
}

/// Calls visit(attribute, payload) for each record with a payload in a .nv.info section.
template <typename Visitor>
void for_each_record(Bytes content, Visitor&& visit) {
  ByteReader reader(content, "cubin attributes");
  while (reader.remaining() >= 4) {
    const std::uint8_t format = reader.u8();
    const std::uint8_t attribute = reader.u8();
    const std::uint16_t size = reader.u16();
    if (format == kFormatSized) visit(attribute, reader.bytes(size));
  }
}

std::optional<std::string_view> after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return name.substr(prefix.size());
}

/// Largest frame in .nv.info for each symbol.
std::map<std::uint32_t, std::uint32_t> frame_sizes(const std::vector<Section>& sections) {
  std::map<std::uint32_t, std::uint32_t> frames;
  for (const Section& section : sections) {
    if (section.name != ".nv.info") continue;
    for_each_record(section.content, [&](std::uint8_t attribute, Bytes payload) {
      if (attribute != kAttributeFrameSize && attribute != kAttributeMinStackSize) return;
      ByteReader fields(payload, "cubin frame size");
      const std::uint32_t symbol = fields.u32();
      std::uint32_t& size = frames[symbol];
      size = std::max(size, fields.u32());
    });
  }
  return frames;
}

std::uint32_t max_threads(Bytes content) {
  std::uint32_t threads = 0;
  for_each_record(content, [&](std::uint8_t attribute, Bytes payload) {
    if (attribute != kAttributeMaxThreads) return;
    ByteReader fields(payload, "cubin launch bounds");
    threads = fields.u32();
    threads *= fields.u32();
    threads *= fields.u32();
  });
  return threads;
}

}  // namespace

std::map<std::string, KernelResources> read_cubin_resources(std::span<const std::byte> cubin) try {
  const std::vector<Section> sections = read_sections(cubin);
  const std::map<std::uint32_t, std::uint32_t> frames = frame_sizes(sections);
  std::map<std::string, KernelResources> kernels;
  std::uint32_t constant_bytes = 0;
  for (const Section& section : sections) {
    if (section.name == ".nv.constant3") constant_bytes = static_cast<std::uint32_t>(section.size);
    const auto kernel = after(section.name, ".text.");
    if (!kernel) continue;
    // The section's info word: registers in the top byte, the kernel's symbol below.
    KernelResources& resources = kernels[std::string(*kernel)];
    resources.registers = static_cast<int>(section.info >> 24);
    const auto frame = frames.find(section.info & 0xffffff);
    if (frame != frames.end()) resources.local_bytes = frame->second;
  }
  for (auto& [name, resources] : kernels) {
    resources.constant_bytes = constant_bytes;
    for (const Section& section : sections) {
      if (after(section.name, ".nv.shared.") == name)
        resources.shared_bytes = static_cast<std::uint32_t>(section.size);
      if (after(section.name, ".nv.info.") == name)
        resources.max_threads = max_threads(section.content);
    }
  }
  return kernels;
} catch (const Error&) {
  return {};
}

KernelResources estimate_resources(const FunctionInfo& function) {
  // At most the registers of blocks of 1024 threads: an estimate refuses no launch.
  constexpr int kLeast = 16, kMost = 64;
  KernelResources resources;
  const auto slots = static_cast<int>(function.frame_bytes / (sizeof(std::uint32_t) * kLanes));
  resources.registers = std::clamp(slots, kLeast, kMost);
  resources.local_bytes = function.stack_bytes;
  return resources;
}

}  // namespace kernwright::sim
