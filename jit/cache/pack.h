// Packs: one file with the object code of many kernels for many architectures, used without NVRTC.
#pragma once

#include "jit/cache/cache_key.h"
#include "jit/object_code.h"
#include "jit/source/include_closure.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// One program to compile into a pack.
struct PackItem {
  Source source;
  ProgramOptions options;  ///< `arch` is not used
  /// Instantiations of templates and other kernels without a plain declaration; each is compiled
  /// for itself. The source's declared kernels always come along.
  std::vector<std::string> names;
  /// One compile makes exactly `names`, as in a request with named kernels.
  bool only_names = false;
  bool with_members = true;  ///< as CompileRequest has it
};

/// One object code of a pack.
struct PackEntry {
  Sha256Digest key;      ///< of the compile, without the compiler
  Sha256Digest program;  ///< of the program alone: equal for all architectures
  std::string source;    ///< file name of the source, without its folder
  std::string arch;      ///< "sm_90", "compute_80"
  std::vector<std::string> kernels;
  std::string nvrtc_version;  ///< that compiled it
  std::uint64_t bytes = 0;    ///< of its object code
};

/// Called on the writer's thread for each code of a pack, in their order, with the total number of
/// codes; its exception ends the writing.
using PackProgress = std::function<void(std::size_t total)>;

/// Compiles every item for every architecture ("sm_90", "sm_90a", "compute_90", or "sim" for the
/// simulated device) and writes the pack. As many compiles run at a time as there are processors;
/// equal inputs and an equal NVRTC give equal bytes. Returns its entries, in the file's order.
/// `rows` of a tuning store are added unchanged. Throws the exceptions of Program::compile for the
/// first code that cannot be made, InvalidArgument for nothing to do, Error when the file cannot be
/// written.
std::vector<PackEntry> write_pack(const std::filesystem::path& path,
                                  std::span<const PackItem> items,
                                  std::span<const std::string> archs,
                                  const PackProgress& progress = {}, std::string_view rows = {});

/// The distinct items in a file of KERNWRIGHT_RECORD. Throws Error naming path and line.
std::vector<PackItem> read_record(const std::filesystem::path& path);

/// A pack, read and verified: a regular file of at most 2 GiB. Immutable, thread-safe.
class Pack {
 public:
  using Code = std::shared_ptr<const ObjectCode>;

  /// Throws Error with path and reason: missing, damaged, of another format.
  static std::shared_ptr<const Pack> load(const std::filesystem::path& path);
  ~Pack();
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  const std::string& path() const noexcept;
  const std::vector<PackEntry>& entries() const noexcept;
  /// The rows of a tuning store in the pack; empty for none.
  const std::string& rows() const noexcept;

  /// The code of the key, or null. Null also if the user's headers are present and differ from
  /// those of the compile. The same object at each call.
  Code find(const CacheKey& key, const IncludeClosure& included) const;
  /// The program's architectures in the pack, in order.
  std::vector<std::string> archs_of(const ProgramFields& program) const;

 private:
  struct State;
  explicit Pack(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Adds the pack to those of this process: they are asked before the disk cache, the newest first,
/// and need no NVRTC. Read-only. Throws as Pack::load. Thread-safe.
void use_pack(const std::filesystem::path& path);
/// The packs in use, the newest first.
std::vector<std::shared_ptr<const Pack>> packs_in_use();
/// Forgets the pack of this path, or all for an empty path; kernels made from it stay.
void drop_pack(const std::filesystem::path& path = {});

}  // namespace kernwright
