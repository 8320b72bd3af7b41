// Lists of tokens from Python, read without a caster for each number: prompts have thousands.
#pragma once

#include "bindings/support/python_support.h"

#include <cstdint>
#include <vector>

namespace kernwright::python {

/// How many tokens at the begin of a list are ints (no bool, no subclass) from 0 on and below
/// `vocabulary`. The caller holds the GIL.
inline py::ssize_t count_valid_tokens(const py::list& tokens, std::int64_t vocabulary) {
  const py::ssize_t size = PyList_GET_SIZE(tokens.ptr());
  for (py::ssize_t i = 0; i < size; ++i) {
    PyObject* const token = PyList_GET_ITEM(tokens.ptr(), i);
    int overflow = 0;
    if (!PyLong_CheckExact(token)) return i;
    const long long value = PyLong_AsLongLongAndOverflow(token, &overflow);
    if (overflow != 0 || value < 0 || value >= vocabulary) return i;
  }
  return size;
}

/// The tokens of a prompt: a list, or any sequence of numbers. Throws py::cast_error for another
/// object. The caller holds the GIL.
inline std::vector<std::int32_t> prompt_tokens(const py::object& prompt) {
  constexpr std::int64_t kEnd = std::int64_t{1} << 31;
  if (!PyList_CheckExact(prompt.ptr())) return prompt.cast<std::vector<std::int32_t>>();
  const auto list = py::reinterpret_borrow<py::list>(prompt);
  const py::ssize_t size = count_valid_tokens(list, kEnd);
  if (size != PyList_GET_SIZE(list.ptr())) return prompt.cast<std::vector<std::int32_t>>();
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(size));
  for (py::ssize_t i = 0; i < size; ++i)
    tokens[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(PyLong_AsLong(PyList_GET_ITEM(list.ptr(), i)));
  return tokens;
}

}  // namespace kernwright::python
