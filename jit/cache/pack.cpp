// The file format of packs, their compilation, and the packs in use.
#include "jit/cache/pack.h"

#include <fcntl.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/atomic_file.h"
#include "base/byte_reader.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/regular_file.h"
#include "jit/cache/code_cache.h"
#include "jit/cache/pack_lookup.h"
#include "jit/compile/task_group.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;

/// File: magic, version, length of the body, SHA-256 of these and the body, body.
constexpr std::string_view kMagic{"KWPACK\r\n", 8};
/// The second one has a text behind the entries; a pack without one is of the first.
constexpr std::uint32_t kFormatVersion = 2;
constexpr std::uint32_t kVersionWithoutText = 1;
constexpr std::uint32_t kMaxText = std::uint32_t{16} << 20;
constexpr std::uint32_t kMaxCount = std::uint32_t{1} << 20;
constexpr std::uint64_t kMaxPack = std::uint64_t{2} << 30;

/// An entry with all its fields in the file.
struct Stored {
  PackEntry entry;
  std::string key_fields;
  std::vector<Sha256Digest> headers;  ///< of the user's header files, sorted
  std::string object_bytes;
};

/// The contents of a pack.
struct Contents {
  std::vector<Stored> entries;
  std::string rows;
};

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::vector<Sha256Digest> hashes_of(const IncludeClosure& included) {
  std::vector<Sha256Digest> hashes;
  for (const IncludedFile& file : included.files) hashes.push_back(file.hash);
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

std::vector<std::byte> encode(const std::vector<Stored>& entries, std::string_view rows) {
  ByteWriter body;
  body.u32(static_cast<std::uint32_t>(entries.size()));
  for (const Stored& stored : entries) {
    body.bytes(stored.entry.program.bytes);
    body.text(stored.entry.source);
    body.text(stored.key_fields);
    body.u32(static_cast<std::uint32_t>(stored.headers.size()));
    for (const Sha256Digest& hash : stored.headers) body.bytes(hash.bytes);
    body.blob(as_bytes(stored.object_bytes));
  }
  if (!rows.empty()) body.blob(as_bytes(rows));
  ByteWriter out;
  out.bytes(as_bytes(kMagic));
  out.u32(rows.empty() ? kVersionWithoutText : kFormatVersion);
  out.u64(body.data().size());
  const Sha256Digest sum = Sha256().update(out.data()).update(body.data()).digest();
  out.bytes(sum.bytes);
  out.bytes(body.data());
  return out.take();
}

void describe(PackEntry& entry, const ObjectCode& code) {
  entry.arch = code.arch;
  entry.nvrtc_version = code.nvrtc_version;
  for (const KernelSignature& kernel : code.kernels) entry.kernels.push_back(kernel.name);
}

Stored read_entry(ByteReader& in) {
  Stored stored;
  stored.entry.program = read_digest(in);
  stored.entry.source = in.text(kMaxText);
  stored.key_fields = in.text(kMaxText);
  stored.entry.key = sha256(stored.key_fields);
  const std::uint32_t count = in.u32();
  if (count > in.remaining() / 32) throw Error("a pack counts more headers than it has bytes");
  for (std::uint32_t i = 0; i < count; ++i) stored.headers.push_back(read_digest(in));
  const auto bytes = in.blob();
  stored.object_bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  stored.entry.bytes = bytes.size();
  describe(stored.entry, ObjectCode::deserialize(stored.object_bytes));
  return stored;
}

/// Throws Error for anything but a whole pack of this version.
Contents decode(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "pack");
  in.expect(kMagic);
  const std::uint32_t version = in.u32();
  if (version != kFormatVersion && version != kVersionWithoutText) {
    throw Error(format("it has format version {}; this library reads up to version {}", version,
                       kFormatVersion));
  }
  const std::uint64_t size = in.u64();
  const auto head = bytes.first(in.offset());
  const Sha256Digest sum = read_digest(in);
  if (size != in.remaining()) {
    throw Error(format("it has {} bytes instead of {}", in.remaining(), size));
  }
  const auto body = in.bytes(size);
  if (Sha256().update(head).update(body).digest() != sum) {
    throw Error("it is damaged: its SHA-256 differs");
  }
  ByteReader body_in(body, "pack");
  const std::uint32_t count = body_in.u32();
  if (count > kMaxCount) throw Error(format("it counts {} entries", count));
  Contents contents;
  for (std::uint32_t i = 0; i < count; ++i) contents.entries.push_back(read_entry(body_in));
  if (version != kVersionWithoutText) {
    const auto rows = body_in.blob();
    contents.rows.assign(reinterpret_cast<const char*>(rows.data()), rows.size());
  }
  body_in.expect_end();
  return contents;
}

/// The code wanted by a device of this architecture, or by the architecture itself.
TargetRequest target_request(const std::string& arch) {
  TargetRequest wanted;
  DeviceTarget device;
  if (arch == "sim") {
    device.is_simulated = true;
    device.compute_capability = env_choice(Env::sim_capability) == "9.0" ? 90 : 80;
    wanted.device = device;
    return wanted;
  }
  const Arch parsed = parse_arch(arch);
  if (parsed.is_virtual || parsed.suffix != '\0') {
    wanted.kind = parsed.is_virtual ? CodeKind::ptx : CodeKind::cubin;
    wanted.arch = arch;
    return wanted;
  }
  device.compute_capability = parsed.number;
  wanted.device = device;
  return wanted;
}

/// Nothing dependent on the moment or the machine, and nothing for developers only.
std::string packed(const ObjectCode& code) {
  ObjectCode copy = code;
  copy.compile_ms = 0;
  copy.log.clear();
  copy.diagnostics.clear();
  return copy.serialize();
}

/// One program of a pack: what the requests for its codes refer to.
struct PackProgram {
  explicit PackProgram(const PackItem& item) : source(item.source), options(item.options) {
    options.arch.clear();
    validate(source);
    validate(options);
    declared = scan_source(source.text);
    fields = program_fields(source, options);
  }

  const Source& source;
  ProgramOptions options;
  ScannedSource declared;
  ProgramFields fields;
};

/// The names of each compile of the item; none for all that its source declares.
std::vector<std::vector<std::string>> selections_of(const PackItem& item,
                                                    const ScannedSource& declared) {
  if (item.only_names) return {item.names};
  const bool declares = std::any_of(declared.kernels.begin(), declared.kernels.end(),
                                    [](const auto& kernel) { return !kernel.is_template; });
  std::vector<std::vector<std::string>> selections;
  if (declares || item.names.empty()) selections.emplace_back();
  for (const std::string& name : item.names) {
    const bool comes_along =
        std::any_of(declared.kernels.begin(), declared.kernels.end(),
                    [&](const auto& kernel) { return kernel.name == name && !kernel.is_template; });
    if (!comes_along) selections.push_back({name});
  }
  return selections;
}

Stored compile_entry(const CodeRequest& request) {
  const auto code = CodeCache::process().get(request).code;
  Stored stored;
  const bool is_ptx = code->kind == CodeKind::ptx;
  if (is_ptx && request.target.device && !request.target.device->is_simulated) {
    throw InvalidArgument(format("NVRTC {} does not compile for sm_{}", code->nvrtc_version,
                                 request.target.device->compute_capability));
  }
  const Arch arch = parse_arch(code->arch);
  const Target target{code->kind, arch.real(), is_ptx ? arch.virtual_name() : arch.real()};
  const CompileSelection selection = selection_of(request, target);
  CacheKey key = pack_key(request.fields, selection);
  stored.entry.key = key.digest;
  stored.key_fields = std::move(key.fields);
  stored.entry.program = sha256(request.fields.text);
  stored.entry.source = fs::path(request.source.name).filename().string();
  stored.headers = hashes_of(include_closure(request.source, request.options));
  stored.object_bytes = packed(*code);
  stored.entry.bytes = stored.object_bytes.size();
  describe(stored.entry, *code);
  return stored;
}

/// The codes of a pack. Their order in the file depends on what they are, not on when they were
/// added or compiled.
class PackWriter {
 public:
  /// Begins the compiles, of which many run at a time.
  void add(const PackItem& item, std::span<const std::string> archs) {
    const PackProgram& program = programs_.emplace_back(item);
    for (const std::string& arch : archs) {
      for (std::vector<std::string>& names : selections_of(item, program.declared)) {
        begin({program.source, program.options, program.declared, program.fields,
               target_request(arch), arch == "sim", std::move(names), !item.only_names, false,
               item.with_members});
      }
    }
  }

  /// Waits for all. Throws the error of the first that failed, in the order of add().
  std::vector<Stored> take(const PackProgress& progress) {
    std::map<std::tuple<std::string, Sha256Digest, std::string, Sha256Digest>, Stored> sorted;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      tasks_.wait(i);
      const PackEntry& entry = made_[i].entry;
      sorted.emplace(std::tuple(entry.source, entry.program, entry.arch, entry.key),
                     std::move(made_[i]));
      if (progress) progress(made_.size());
    }
    std::vector<Stored> entries;
    for (auto& [order, stored] : sorted) entries.push_back(std::move(stored));
    return entries;
  }

 private:
  void begin(CodeRequest request) {
    Stored& made = made_.emplace_back();
    tasks_.add([&made, wanted = std::move(request)] { made = compile_entry(wanted); });
  }

  std::deque<PackProgram> programs_;
  std::deque<Stored> made_;  ///< one for each task
  TaskGroup tasks_;          ///< ends before what its tasks use
};

}  // namespace

struct Pack::State {
  std::string path;
  std::vector<PackEntry> entries;
  std::string rows;
  std::map<Sha256Digest, Stored> by_key;
  mutable std::mutex mutex;
  mutable std::map<Sha256Digest, Code> codes;  ///< that were asked for
};

Pack::Pack(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pack::~Pack() = default;

std::vector<PackEntry> write_pack(const fs::path& path, std::span<const PackItem> items,
                                  std::span<const std::string> archs, const PackProgress& progress,
                                  std::string_view rows) {
  if (items.empty()) throw InvalidArgument("no sources are given for the pack");
  if (archs.empty()) throw InvalidArgument("no architectures are given for the pack");
  PackWriter writer;
  for (const PackItem& item : items) writer.add(item, archs);
  const std::vector<Stored> stored = writer.take(progress);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  FileSystem& system = FileSystem::real();
  const FileHandle directory(system,
                             system.open(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY, 0));
  const int result = directory ? write_atomically(system, directory.get(), path.filename().string(),
                                                  encode(stored, rows), 0644)
                               : directory.get();
  if (result < 0) {
    throw Error(
        format("the pack {} cannot be written: {}", path.string(), describe_failure(result)));
  }
  std::vector<PackEntry> entries;
  for (const Stored& one : stored) entries.push_back(one.entry);
  return entries;
}

std::shared_ptr<const Pack> Pack::load(const fs::path& path) {
  auto state = std::make_unique<State>();
  state->path = path.string();
  try {
    const RegularFile file = read_regular_file(path.string(), kMaxPack);
    if (!file.reason.empty()) throw Error(file.reason);
    Contents contents = decode(as_bytes(file.bytes));
    state->rows = std::move(contents.rows);
    for (Stored& stored : contents.entries) {
      state->entries.push_back(stored.entry);
      const Sha256Digest key = stored.entry.key;
      state->by_key.emplace(key, std::move(stored));
    }
  } catch (const Error& error) {
    throw Error(format("the pack {} cannot be used: {}", path.string(), error.what()));
  }
  return std::shared_ptr<const Pack>(new Pack(std::move(state)));
}

const std::string& Pack::path() const noexcept { return state_->path; }
const std::vector<PackEntry>& Pack::entries() const noexcept { return state_->entries; }
const std::string& Pack::rows() const noexcept { return state_->rows; }

Pack::Code Pack::find(const CacheKey& key, const IncludeClosure& included) const {
  const auto found = state_->by_key.find(key.digest);
  if (found == state_->by_key.end() || found->second.key_fields != key.fields) return nullptr;
  if (!included.is_complete) return nullptr;
  // A package may come without the headers of its kernels; where they are, they must be the same.
  if (!included.files.empty() && hashes_of(included) != found->second.headers) return nullptr;
  const std::lock_guard lock(state_->mutex);
  Code& code = state_->codes[key.digest];
  if (!code) {
    auto made = std::make_shared<ObjectCode>(ObjectCode::deserialize(found->second.object_bytes));
    made->origin = CodeOrigin::pack;
    code = std::move(made);
  }
  return code;
}

std::vector<std::string> Pack::archs_of(const ProgramFields& program) const {
  const Sha256Digest digest = sha256(program.text);
  std::vector<std::string> archs;
  for (const PackEntry& entry : state_->entries) {
    if (entry.program != digest) continue;
    if (std::find(archs.begin(), archs.end(), entry.arch) == archs.end()) {
      archs.push_back(entry.arch);
    }
  }
  return archs;
}

namespace {

struct PacksInUse {
  std::mutex mutex;
  std::vector<std::shared_ptr<const Pack>> packs;  ///< the newest first
};

/// Leaked on purpose: kernels may be asked for during process exit.
PacksInUse& in_use() {
  static auto* const instance = new PacksInUse;
  return *instance;
}

}  // namespace

void use_pack(const fs::path& path) {
  std::shared_ptr<const Pack> pack = Pack::load(path);
  const std::lock_guard lock(in_use().mutex);
  auto& packs = in_use().packs;
  std::erase_if(packs, [&](const auto& other) { return other->path() == pack->path(); });
  packs.insert(packs.begin(), std::move(pack));
}

std::vector<std::shared_ptr<const Pack>> packs_in_use() {
  const std::lock_guard lock(in_use().mutex);
  return in_use().packs;
}

void drop_pack(const fs::path& path) {
  const std::lock_guard lock(in_use().mutex);
  std::erase_if(in_use().packs,
                [&](const auto& pack) { return path.empty() || pack->path() == path.string(); });
}

}  // namespace kernwright
