// DLPack's C exchange table: another library's arrays read with no call of Python.
#pragma once

#include "array/dlpack.h"
#include "bindings/array/foreign.h"

namespace kernwright::python {

/// The table of version 1 in `type`'s __dlpack_c_exchange_api__, with the functions called here;
/// null where there is none. It lives as long as the process.
const DLPackExchangeAPI* find_exchange(PyTypeObject* type) noexcept;

/// The facts about `value`, of a type with `api`, for a launch on `device`; `place` tells where it
/// lies. The address is of its first element. Throws ArgumentError when the producer refuses.
void read_exchange(const DLPackExchangeAPI& api, py::handle value, ArrayArgument& argument,
                   DLDevice& place);

/// The present stream of the library of `api`. Throws ArgumentError when it tells none.
std::uintptr_t exchange_stream(const DLPackExchangeAPI& api, const DLDevice& place);

}  // namespace kernwright::python
