// A callable that keeps its choice of launch for each problem seen.
#include "base/hash.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/python_support.h"
#include "bindings/tune/bind_tune.h"
#include "core/graph/capture.h"

#include <structmember.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

// Nothing but braces where the interpreter has its lock.
#ifndef Py_BEGIN_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

namespace kernwright::python {
namespace {

constexpr std::size_t kMostPlaces = 6;
/// More problems are looked up anew now and then.
constexpr std::size_t kMostEntries = 4096;

/// The device and the integers of one call; they choose the launch.
struct CallKey {
  const Device* device = nullptr;
  std::array<long long, kMostPlaces> values{};
  bool operator==(const CallKey&) const = default;
};

struct CallKeyHash {
  std::size_t operator()(const CallKey& key) const noexcept {
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(key.device);
    for (const long long value : key.values) hash = mix(hash, static_cast<std::uint64_t>(value));
    return mixed(hash);
  }
};

/// The target for a key, and its calls until Python is asked again.
struct CallEntry {
  py::object target;
  std::int64_t left = -1;  ///< calls until then; negative: never
};

struct CallTable {
  std::vector<Py_ssize_t> places;  ///< of the arguments in a key
  bool is_keyed = false;           ///< else each call asks Python
  std::unordered_map<CallKey, CallEntry, CallKeyHash> entries;
  CallKey last_key;
  CallEntry* last = nullptr;  ///< entries never move
};

struct TunedCall {
  PyObject_HEAD vectorcallfunc call;
  CallTable table;  // begins in tuned_new(), ends in tuned_free()
};

CallTable& call_table(PyObject* self) { return reinterpret_cast<TunedCall*>(self)->table; }

/// The key of these arguments; nothing where one in its places is no integer of 64 bits.
std::optional<CallKey> find_key(const CallTable& table, PyObject* const* arguments,
                                Py_ssize_t count) {
  CallKey key;
  if (!table.is_keyed) return std::nullopt;
  for (std::size_t i = 0; i < table.places.size(); ++i) {
    const Py_ssize_t place = table.places[i];
    if (place >= count || !PyLong_CheckExact(arguments[place])) return std::nullopt;
    int overflow = 0;
    key.values[i] = PyLong_AsLongLongAndOverflow(arguments[place], &overflow);
    if (overflow != 0) return std::nullopt;
  }
  key.device = &current_device();
  return key;
}

/// The target for that key while it has calls left, else null.
py::object take_target(PyObject* self, const CallKey& key) {
  py::object target;
  Py_BEGIN_CRITICAL_SECTION(self);
  CallTable& table = call_table(self);
  if (table.last == nullptr || !(table.last_key == key)) {
    const auto found = table.entries.find(key);
    table.last = found == table.entries.end() ? nullptr : &found->second;
    table.last_key = key;
  }
  if (table.last != nullptr && table.last->left != 0) {
    if (table.last->left > 0) --table.last->left;
    target = table.last->target;
  }
  Py_END_CRITICAL_SECTION();
  return target;
}

void keep_target(PyObject* self, const CallKey& key, const py::object& target, std::int64_t calls) {
  std::unordered_map<CallKey, CallEntry, CallKeyHash> dropped;  // ends when the table is whole
  py::object before;
  Py_BEGIN_CRITICAL_SECTION(self);
  CallTable& table = call_table(self);
  table.last = nullptr;
  if (table.entries.size() >= kMostEntries) dropped.swap(table.entries);
  CallEntry& entry = table.entries[key];
  before = std::exchange(entry.target, target);
  entry.left = calls;
  Py_END_CRITICAL_SECTION();
}

/// self._resolve(arguments) gives (target, calls, whether it launched already): `calls` as in
/// CallEntry, 0 to keep nothing.
PyObject* resolve_and_call(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                           const std::optional<CallKey>& key) {
  py::tuple given(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    given[static_cast<std::size_t>(i)] = py::reinterpret_borrow<py::object>(arguments[i]);
  const py::object answer = py::handle(self).attr("_resolve")(given);
  const auto parts = answer.cast<py::tuple>();
  const py::object target = parts[0];
  const auto calls = parts[1].cast<std::int64_t>();
  if (key && calls != 0) keep_target(self, *key, target, calls);
  if (parts[2].cast<bool>()) Py_RETURN_NONE;
  return PyObject_Vectorcall(target.ptr(), arguments, static_cast<std::size_t>(count), nullptr);
}

PyObject* tuned_call(PyObject* self, PyObject* const* arguments, std::size_t flagged_count,
                     PyObject* keywords) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
    const bool has_keywords = keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0;
    const std::optional<CallKey> key = find_key(call_table(self), arguments, count);
    if (key) {
      // The target words the error about keywords.
      if (const py::object target = take_target(self, *key))
        return PyObject_Vectorcall(target.ptr(), arguments, static_cast<std::size_t>(count),
                                   keywords);
    }
    if (has_keywords) {
      PyErr_SetString(PyExc_TypeError, "arguments of a kernel are positional");
      return nullptr;
    }
    return resolve_and_call(self, arguments, count, key);
  });
}

PyObject* tuned_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const object = type->tp_alloc(type, 0);
  if (object == nullptr) return nullptr;
  auto* const tuned = reinterpret_cast<TunedCall*>(object);
  tuned->call = &tuned_call;
  new (&tuned->table) CallTable();
  return object;
}

void tuned_free(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  call_table(self).~CallTable();
  type->tp_free(self);
  Py_DECREF(type);
}

/// _key_by(places): arguments with the integers that choose the target; None: ask at each call.
PyObject* tuned_key_by(PyObject* self, PyObject* given) {
  return guarded<PyObject*>(nullptr, [&] {
    std::vector<Py_ssize_t> places;
    if (given != Py_None) places = py::handle(given).cast<std::vector<Py_ssize_t>>();
    const bool is_keyed = given != Py_None && places.size() <= kMostPlaces;
    std::unordered_map<CallKey, CallEntry, CallKeyHash> dropped;
    Py_BEGIN_CRITICAL_SECTION(self);
    CallTable& table = call_table(self);
    table.last = nullptr;
    dropped.swap(table.entries);
    table.places = std::move(places);
    table.is_keyed = is_keyed;
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
  });
}

}  // namespace

void bind_tune_call(py::module_& m) {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(TunedCall, call), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyMethodDef methods[] = {
      {"_key_by", &tuned_key_by, METH_O, nullptr},  // the stub has its docstring
      {nullptr, nullptr, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(&tuned_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&tuned_free)},
      {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
      {Py_tp_members, members},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  static PyType_Spec spec = {"kernwright._core.TunedCall", sizeof(TunedCall), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
                             slots};
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  m.def("_any_capture", &any_capture);
  m.def("_exchange_captured_only", &exchange_captured_only);
  m.attr("TunedCall") = py::reinterpret_steal<py::object>(type);
}

}  // namespace kernwright::python
