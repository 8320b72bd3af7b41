// The one seam to a GPU: a table of the driver functions that driver_api.def lists.
#pragma once

#include "base/fault.h"
#include "driver/driver_types.h"

#include <span>

namespace kernwright {

/// Becomes, for any slot, a function that returns CUDA_ERROR_NOT_SUPPORTED and touches nothing.
class NotSupportedStub {
  template <typename... Parameters>
  using Function = CUresult (*)(Parameters...);

 public:
  template <typename... Parameters>
  constexpr operator Function<Parameters...>() const noexcept {
    return [](Parameters...) -> CUresult { return CUDA_ERROR_NOT_SUPPORTED; };
  }
};

/// Function pointers of a driver: a real one (driver_loader.h), the simulated device, or a
/// decorator over one of these. No slot is ever null: a slot that was never set returns
/// NOT_SUPPORTED. A plain value; copying it copies the pointers. Reading a table from several
/// threads is safe.
struct DriverApi {
#define KW_DRIVER(name, symbol, since, need, parameters) \
  CUresult(*name) parameters = NotSupportedStub{};
#define KW_DRIVER_EXTENSION(name, parameters) CUresult(*name) parameters = NotSupportedStub{};
#include "driver/driver_api.def"
};

/// Whether a driver without the function is refused.
enum class DriverNeed : bool { REQUIRED, OPTIONAL };

/// The row of one slot in driver_api.def. An extension slot has an empty symbol and since = 0.
struct DriverRow {
  const char* name;
  const char* symbol;
  int since;
  DriverNeed need;
};

/// One enumerator of driver_enums.def, for messages and for tables of attributes.
struct DriverEnumerator {
  const char* type;  ///< "CUresult"
  const char* name;  ///< "CUDA_ERROR_INVALID_VALUE"
  int value;
};

/// All enumerators in the order of driver_enums.def.
std::span<const DriverEnumerator> driver_enumerators();

/// The spelling of a result code ("CUDA_ERROR_INVALID_VALUE"), without asking any driver; null for
/// a code that CUDA 13.0 does not know.
const char* result_name(CUresult code) noexcept;

/// Calls visit(const DriverRow&, slot&) for each slot in the order of driver_api.def. `slot` is a
/// reference to the function pointer inside `table`, so its type differs from row to row.
template <typename Table, typename Visitor>
void for_each_slot(Table& table, Visitor&& visit) {
#define KW_DRIVER(name, symbol, since, need, parameters) \
  visit(DriverRow{#name, #symbol, since, DriverNeed::need}, table.name);
#define KW_DRIVER_EXTENSION(name, parameters) \
  visit(DriverRow{#name, "", 0, DriverNeed::OPTIONAL}, table.name);
#include "driver/driver_api.def"
}

}  // namespace kernwright
