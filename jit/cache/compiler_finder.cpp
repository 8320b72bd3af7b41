// Records first, the library second; both are remembered.
#include "jit/cache/compiler_finder.h"

namespace kernwright {
namespace {

std::string text_of(const NvrtcSearch& search) {
  std::string text = search.override_path + '\n' + search.package_directory + '\n';
  for (const std::string& site : search.site_packages) text += site + '\n';
  text += '\n';
  for (const std::string& toolkit : search.toolkits) text += toolkit + '\n';
  return text;
}

}  // namespace

CompilerFinder::CompilerFinder(CompilerSource source, CompilerRecords records)
    : source_(std::move(source)), records_(std::move(records)) {}

CompilerIdentity CompilerFinder::identity(const NvrtcSearch& search) {
  if (const auto opened = service().nvrtc_if_known()) return identity_of(opened, search);
  const std::optional<CompilerIdentity> recorded = recorded_identity(search);
  return recorded ? *recorded : identity_of(service().nvrtc(), search);
}

std::optional<CompilerIdentity> CompilerFinder::recorded_identity(const NvrtcSearch& search) {
  const std::string text = text_of(search);
  {
    const std::lock_guard lock(mutex_);
    if (known_ && known_search_ == text) return known_;
  }
  std::optional<CompilerIdentity> recorded = records_.find(search);
  if (!recorded) return std::nullopt;
  const std::lock_guard lock(mutex_);
  known_search_ = text;
  known_ = recorded;
  return recorded;
}

void CompilerFinder::forget() {
  const std::lock_guard lock(mutex_);
  known_.reset();
}

bool CompilerFinder::must_open() {
  return service().nvrtc_if_known() == nullptr && !recorded_identity(search());
}

/// From the records where these speak of it, else by reading its files.
CompilerIdentity CompilerFinder::identity_of(const CompileService::Facts& opened,
                                             const NvrtcSearch& search) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = opened_.find(opened); found != opened_.end()) return found->second;
  }
  auto recorded = records_.find(search);
  const bool is_same = recorded && recorded->library_path == opened->path &&
                       recorded->builtins_path == opened->builtins_path &&
                       recorded->archs == opened->archs;
  CompilerIdentity identity = is_same ? std::move(*recorded) : identify(*opened);
  if (!is_same) records_.store(search, identity);
  const std::lock_guard lock(mutex_);
  opened_.emplace(opened, identity);
  return identity;
}

}  // namespace kernwright
