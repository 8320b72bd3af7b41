// Sets or clears an environment variable for the length of a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace kernwright::test {

/// Restores the variable when it goes. A null value clears the variable.
class EnvironmentGuard {
 public:
  EnvironmentGuard(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    set(value);
  }
  ~EnvironmentGuard() { set(before_ ? before_->c_str() : nullptr); }
  EnvironmentGuard(const EnvironmentGuard&) = delete;
  EnvironmentGuard& operator=(const EnvironmentGuard&) = delete;

  void set(const char* value) const {
    if (value != nullptr) {
      setenv(name_.c_str(), value, 1);
    } else {
      unsetenv(name_.c_str());
    }
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace kernwright::test
