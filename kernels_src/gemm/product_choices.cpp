// The tables of products in use, and what was decided by them where a launch can look it up.
#include "kernels_src/gemm/product_choices.h"

#include "base/env.h"
#include "base/errors.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/whole_file.h"
#include "kernels_src/gemm/product_table.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/launch_choices.json.h"

#include <array>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::array<const char*, 5> kProductKernels = {"rule", "skinny", "gemm", "mma", "fma"};
constexpr std::size_t kMostProducts = 8192;

struct PlaceKey {
  int device;
  ProductKey key;
  bool operator==(const PlaceKey&) const = default;
};
struct PlaceKeyHash {
  std::size_t operator()(const PlaceKey& of) const noexcept {
    const ProductKey& key = of.key;
    std::uint64_t sum = static_cast<std::uint64_t>(of.device);
    for (const ScalarType type : {key.a, key.b, key.out}) {
      sum = sum * 32 + static_cast<std::uint64_t>(type);
    }
    sum = sum * 32 + static_cast<std::uint64_t>(key.sums) * 8u + key.a_turned * 4u +
          key.b_turned * 2u + key.gated;
    for (const std::int64_t extent : {key.rows, key.columns, key.inner, key.batches}) {
      sum = mix(sum, static_cast<std::uint64_t>(extent));
    }
    return mixed(sum);
  }
};

thread_local std::optional<ProductPlan> forced_product;

/// Real and simulated devices count from 0 each.
int product_place(const Device& device) {
  return device.ordinal() * 2 + (device.is_simulated() ? 1 : 0);
}

enum class Filled : std::uint8_t { unknown, empty, some };

/// Tables behind a lock, and what was decided by them.
class ProductState {
 public:
  ProductState() = default;
  /// The tables of another one, as they are now.
  explicit ProductState(ProductState& from) {
    const std::unique_lock lock(from.mutex_);
    from.read_once();
    users_ = from.users_;
    has_read_ = true;
    update_filled();
  }

  std::optional<ProductPlan> decided(const Device& device, const ProductKey& key) noexcept {
    if (filled_.load(std::memory_order_acquire) == Filled::empty) [[likely]]
      return std::nullopt;
    try {
      const PlaceKey place{product_place(device), key};
      {
        const std::shared_lock lock(mutex_);
        if (const auto found = plans_.find(place); found != plans_.end()) return found->second;
      }
      const std::unique_lock lock(mutex_);
      read_once();
      std::optional<ProductPlan> plan = look_up(device, key);
      if (plan && (plan->kernel == ProductKernel::rule || !is_product_plan(*plan, key))) {
        plan.reset();
      }
      if (plans_.size() >= kMostProducts) plans_.clear();
      plans_.try_emplace(place, plan);
      return plan;
    } catch (const std::exception& error) {
      log(LogLevel::warning, "the table of kernels' choices is not used: {}", error.what());
      return std::nullopt;
    }
  }

  bool has_shape(const Device& device, const ProductKey& key) {
    const std::unique_lock lock(mutex_);
    read_once();
    return users_ && find_product(*users_, device, key, product_shape(key)) != nullptr;
  }

  void use(std::optional<ProductTable> table) {
    const std::unique_lock lock(mutex_);
    users_ = std::move(table);
    has_read_ = users_.has_value();
    plans_.clear();
    update_filled();
  }

 private:
  std::optional<ProductPlan> look_up(const Device& device, const ProductKey& key) const {
    const std::array<std::string, 2> shapes = {product_shape(key), product_bucket(key)};
    for (const ProductTable* table : {users_ ? &*users_ : nullptr, &shipped_}) {
      if (table == nullptr || (table == &shipped_ && is_off())) continue;
      for (const std::string& shape : shapes) {
        const ProductPlan* plan = find_product(*table, device, key, shape);
        if (plan == nullptr) continue;
        if (&shape == &shapes.front() || suits_product(device, key, *plan)) return *plan;
      }
    }
    return std::nullopt;
  }

  static bool is_off() {
    return env_is_set(Env::kernel_choices) && env_text(Env::kernel_choices) == "off";
  }

  /// The user's file, when it is first needed. The caller holds the lock.
  void read_once() {
    if (has_read_) return;
    has_read_ = true;  // a file that cannot be read is told of once
    const std::string path = launch_table_path().string();
    try {
      const auto text = path.empty() ? std::nullopt : read_whole_file(path);
      if (text) users_ = parse_products(*text, path);
    } catch (const InvalidArgument& error) {
      log(LogLevel::warning, "the table of kernels' choices is not used: {}", error.what());
    }
    update_filled();
  }
  void update_filled() {
    const bool some = (users_ && !users_->empty()) || (!shipped_.empty() && !is_off());
    filled_.store(!has_read_ ? Filled::unknown
                  : some     ? Filled::some
                             : Filled::empty,
                  std::memory_order_release);
  }

  std::atomic<Filled> filled_{Filled::unknown};
  std::shared_mutex mutex_;
  bool has_read_ = false;
  std::optional<ProductTable> users_;
  const ProductTable shipped_ = parse_products(text::launch_choices_json, "launch_choices.json");
  std::unordered_map<PlaceKey, std::optional<ProductPlan>, PlaceKeyHash> plans_;
};

ProductState& product_state() {
  static ProductState& state = *new ProductState;  // kept to the end of the process on purpose
  return state;
}

}  // namespace

class PinnedProducts {
 public:
  ProductState state{product_state()};
};

namespace {

thread_local PinnedProducts* pinned_products = nullptr;

}  // namespace

std::shared_ptr<PinnedProducts> pin_products() { return std::make_shared<PinnedProducts>(); }

PinnedProducts* set_pinned_products(PinnedProducts* pinned) noexcept {
  return std::exchange(pinned_products, pinned);
}

std::optional<ProductPlan> product_plan(const Device& device, const ProductKey& key) noexcept {
  if (forced_product) {
    const bool counts = forced_product->kernel != ProductKernel::rule;
    return counts && is_product_plan(*forced_product, key) ? forced_product : std::nullopt;
  }
  ProductState& state = pinned_products != nullptr ? pinned_products->state : product_state();
  return state.decided(device, key);
}

bool has_product_plan(const Device& device, const ProductKey& key) {
  return product_state().has_shape(device, key);
}

void use_product_table(std::optional<std::string_view> json) {
  if (!json) return product_state().use(std::nullopt);
  product_state().use(parse_products(*json, "the text"));
}

ForcedProduct::ForcedProduct(const ProductPlan& plan) noexcept : before_(forced_product) {
  forced_product = plan;
}
ForcedProduct::~ForcedProduct() { forced_product = before_; }

const char* product_kernel_name(ProductKernel kernel) noexcept {
  return kProductKernels[static_cast<std::size_t>(kernel)];
}

std::optional<ProductKernel> product_kernel_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kProductKernels.size(); ++i) {
    if (name == kProductKernels[i]) return static_cast<ProductKernel>(i);
  }
  return std::nullopt;
}

std::optional<Gemm> planned_gemm(const Gemm& of, ScalarType out) {
  if (of.kernel != GemmKernel::automatic || of.tile || of.mma_tile || of.fma_tile || of.splits) {
    return std::nullopt;
  }
  ProductKey key = product_key(of.a, of.b, out, of.epilogue.gate.has_value());
  key.sums = product_sums(of);
  const auto plan = product_plan(of.a.device(), key);
  if (!plan) return std::nullopt;
  Gemm planned = of;
  const auto& n = plan->numbers;
  if (plan->kernel == ProductKernel::gemm) {
    planned.tile = planned_tile(*plan);
    planned.splits = n[6];
  } else if (plan->kernel == ProductKernel::mma) {
    planned.kernel = GemmKernel::mma;
    planned.mma_tile = MmaTile{n[0], n[1], n[2]};
    planned.splits = n[3];
  } else if (plan->kernel == ProductKernel::fma) {
    planned.fma_tile = FmaTile{n[0], n[1], n[2], n[3], n[4], n[5]};
    planned.splits = n[6];
  } else {
    return std::nullopt;
  }
  return planned;
}

GemmTile planned_tile(const ProductPlan& plan) noexcept {
  const auto& n = plan.numbers;
  return {n[0], n[1], n[2], n[3], n[4] != 0, n[5], n[7] != 0};
}

SkinnyPlan planned_skinny(const Array& x, const Array& weights) {
  std::vector<int> axes(weights.shape().size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  const auto plan = product_plan(x.device(), product_key(x, weights.transpose(axes), x.type()));
  if (!plan || plan->kernel != ProductKernel::skinny) return {};
  const auto& n = plan->numbers;
  SkinnyPlan wanted;
  wanted.kernel = static_cast<SkinnyKernel>(n[0]);
  wanted.warps = n[1];
  wanted.rows = n[2];
  wanted.unroll = n[3];
  wanted.hint = n[4];
  wanted.splits = n[5];
  wanted.ahead = n[6];
  wanted.stages = n[7];
  return wanted;
}

}  // namespace kernwright::kernels
