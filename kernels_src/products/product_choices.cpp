// The tables of products in use, and what was decided by them where a launch can look it up.
#include "kernels_src/products/product_choices.h"

#include "base/env.h"
#include "base/errors.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/whole_file.h"
#include "kernels_src/launch_choices.h"
#include "kernels_src/launch_choices.json.h"
#include "kernels_src/products/product_table.h"

#include <array>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace kernwright::kernels {
namespace {

constexpr std::size_t kMostProducts = 8192;

struct PlaceKey {
  int device;
  ProductKey key;
  bool operator==(const PlaceKey&) const = default;
};
struct PlaceKeyHash {
  std::size_t operator()(const PlaceKey& place) const noexcept {
    const ProductKey& key = place.key;
    std::uint64_t sum = static_cast<std::uint64_t>(place.device);
    for (const ScalarType type : {key.a, key.b, key.out}) {
      sum = sum * 32 + static_cast<std::uint64_t>(type);
    }
    sum = sum * 32 + static_cast<std::uint64_t>(key.accumulation) * 8u + key.a_turned * 4u +
          key.b_turned * 2u + key.gated;
    for (const std::int64_t extent : {key.rows, key.columns, key.inner, key.batches}) {
      sum = mix(sum, static_cast<std::uint64_t>(extent));
    }
    return mixed(sum);
  }
};

/// Real and simulated devices count from 0 each.
int product_place(const Device& device) {
  return device.ordinal() * 2 + (device.is_simulated() ? 1 : 0);
}

enum class Filled : std::uint8_t { unknown, empty, some };

/// Tables behind a lock, and what was decided by them.
class ProductState {
 public:
  ProductState() = default;
  /// The present tables of another state.
  explicit ProductState(ProductState& from) {
    const std::unique_lock lock(from.mutex_);
    from.read_once();
    users_ = from.users_;
    has_read_ = true;
    update_filled();
  }

  ProductRow decided(const Device& device, const ProductKey& key) noexcept {
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
      ProductRow plan = look_up(device, key);
      if (plan && !is_product_plan(*plan, key)) plan.reset();
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
  ProductRow look_up(const Device& device, const ProductKey& key) const {
    const std::array<std::string, 2> shapes = {product_shape(key), product_bucket(key)};
    for (const ProductTable* table : {users_ ? &*users_ : nullptr, &shipped_}) {
      if (table == nullptr || (table == &shipped_ && is_off())) continue;
      for (const std::string& shape : shapes) {
        const ProductRow* row = find_product(*table, device, key, shape);
        if (row == nullptr) continue;
        const bool same_shape = &shape == &shapes.front();
        if (same_shape || !*row || suits_product(device, key, **row)) return *row;
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
  std::unordered_map<PlaceKey, ProductRow, PlaceKeyHash> plans_;
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

ProductRow tuned_product(const Device& device, const ProductKey& key) noexcept {
  if (const std::optional<ProductRow>& forced = ForcedProduct::current()) {
    const ProductRow& row = *forced;
    return row && is_product_plan(*row, key) ? row : std::nullopt;
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

}  // namespace kernwright::kernels
