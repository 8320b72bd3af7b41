// Walks over ELF sections, symbols and the records of .nv.info.
#include "jit/signature/cubin_reader.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/byte_reader.h"
#include "base/errors.h"

namespace kernwright {
namespace {

constexpr std::size_t kTablesOffset = 32;  // e_phoff and what follows it, to the header's end
constexpr std::size_t kTablesBytes = 32;
constexpr std::uint32_t kSymbolTable = 2;  // SHT_SYMTAB
constexpr std::uint32_t kNoBytes = 8;      // SHT_NOBITS
constexpr unsigned kObject = 1;            // STT_OBJECT
constexpr unsigned kFunction = 2;          // STT_FUNC
constexpr unsigned kEntry = 0x10;          // STO_CUDA_ENTRY
constexpr std::size_t kSymbolBytes = 24;
constexpr std::string_view kInfo = ".nv.info.";
constexpr unsigned kSizedRecord = 4;       // EIFMT_SVAL
constexpr unsigned kParameterRecord = 23;  // EIATTR_KPARAM_INFO
constexpr std::size_t kParameterBytes = 12;

struct Section {
  std::uint32_t name = 0, type = 0, link = 0;
  std::string_view bytes;
};

class Cubin {
 public:
  explicit Cubin(std::string_view image) : image_(image) {
    ByteReader head = reader(part(kTablesOffset, kTablesBytes));
    const std::uint64_t segments = head.u64();
    const std::uint64_t begin = head.u64();
    head.bytes(6);  // flags, bytes of the header
    const std::uint64_t segment_bytes = head.u16();
    part(segments, segment_bytes * head.u16());  // at the end of the file, mostly
    const std::uint64_t each = head.u16();
    const std::uint64_t count = head.u16();
    names_ = head.u16();
    for (std::uint64_t i = 0; i < count; ++i) {
      ByteReader in = reader(part(begin + i * each, each));
      Section section;
      section.name = in.u32();
      section.type = in.u32();
      in.bytes(16);  // flags and address
      const std::uint64_t offset = in.u64();
      const std::uint64_t size = in.u64();
      section.link = in.u32();
      if (section.type != kNoBytes) section.bytes = part(offset, size);
      sections_.push_back(section);
    }
  }

  CubinContents read() const {
    CubinContents contents;
    for (const Section& section : sections_) {
      if (section.type == kSymbolTable) read_symbols(section, contents);
    }
    std::map<std::string_view, std::string_view> infos;
    for (const Section& section : sections_) {
      const std::string_view name = text(names_, section.name);
      if (name.starts_with(kInfo)) infos[name.substr(kInfo.size())] = section.bytes;
    }
    for (CubinKernel& kernel : contents.kernels) {
      const auto info = infos.find(kernel.lowered);
      if (info != infos.end()) kernel.parameters = read_parameters(info->second);
    }
    return contents;
  }

 private:
  [[noreturn]] static void damaged() { throw Error("the cubin is cut short or damaged"); }

  std::string_view part(std::uint64_t offset, std::uint64_t size) const {
    if (offset > image_.size() || size > image_.size() - offset) damaged();
    return image_.substr(offset, size);
  }

  static ByteReader reader(std::string_view bytes) {
    return {std::as_bytes(std::span(bytes.data(), bytes.size())), "the cubin"};
  }

  /// The text at `offset` of a section of texts.
  std::string_view text(std::uint32_t section, std::uint32_t offset) const {
    if (section >= sections_.size()) damaged();
    const std::string_view bytes = sections_[section].bytes;
    if (offset >= bytes.size()) damaged();
    return bytes.substr(offset, bytes.find('\0', offset) - offset);
  }

  void read_symbols(const Section& table, CubinContents& contents) const {
    ByteReader in = reader(table.bytes);
    while (in.remaining() >= kSymbolBytes) {
      const std::string_view name = text(table.link, in.u32());
      const unsigned kind = in.u8() & 15u;
      const unsigned other = in.u8();
      in.bytes(18);  // section, address, size
      if (kind == kFunction && (other & kEntry) != 0) {
        contents.kernels.push_back({std::string(name), std::nullopt});
      } else if (kind == kObject && !name.starts_with(".")) {
        contents.variables.emplace_back(name);
      }
    }
  }

  /// Nothing where there is no record of a parameter: a newer form may tell them.
  static std::optional<std::vector<PtxParameter>> read_parameters(std::string_view info) {
    std::map<unsigned, PtxParameter> parameters;
    ByteReader in = reader(info);
    while (in.remaining() >= 4) {
      const unsigned form = in.u8();
      const unsigned attribute = in.u8();
      const std::uint16_t value = in.u16();
      if (form != kSizedRecord) continue;
      ByteReader record({in.bytes(value)}, "the cubin");
      if (attribute != kParameterRecord || value != kParameterBytes) continue;
      record.u32();
      const unsigned index = record.u16();
      record.u16();  // offset
      const std::size_t size = record.u32() >> 18;
      const bool is_number = size == 1 || size == 2 || size == 4 || size == 8;
      parameters[index] = {.size = size, .alignment = 0, .is_bytes = !is_number};
    }
    std::vector<PtxParameter> result;
    for (const auto& [index, parameter] : parameters) {
      if (index != result.size()) return std::nullopt;
      result.push_back(parameter);
    }
    return result.empty() ? std::nullopt : std::optional(std::move(result));
  }

  std::string_view image_;
  std::uint32_t names_ = 0;
  std::vector<Section> sections_;
};

}  // namespace

CubinContents read_cubin(std::string_view cubin) { return Cubin(cubin).read(); }

}  // namespace kernwright
