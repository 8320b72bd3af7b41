// The tables between element types, dtypes and scalar classes, filled when first needed.
#include "bindings/values/dtype.h"

#include "bindings/support/bindings.h"

#include "base/errors.h"
#include "base/format.h"
#include "bindings/support/python_support.h"

#include <array>
#include <string>
#include <unordered_map>

namespace kernwright::python {
namespace {

bool from_ml_dtypes(ScalarType type) {
  return type == ScalarType::bfloat16 || type == ScalarType::float8_e4m3fn ||
         type == ScalarType::float8_e5m2;
}

std::string known_types() {
  std::string names;
  for (int i = 0; i < kScalarTypeCount; ++i) {
    if (i != 0) names += ", ";
    names += scalar_name(static_cast<ScalarType>(i));
  }
  return names;
}

/// "torch.float32" -> "float32"; torch's and others' dtypes print like that.
std::optional<ScalarType> foreign_scalar(py::handle dtype) {
  const auto text = py::str(dtype).cast<std::string>();
  const std::size_t dot = text.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  std::string name = text.substr(dot + 1);
  if (name == "half") name = "float16";
  return scalar_from_name(name);
}

using TypeTable = std::unordered_map<PyTypeObject*, ScalarType>;

/// Adds `module`.`name` to `table`; its class lives as long as the process.
void add_type(TypeTable& table, py::handle module, const char* name, ScalarType type) {
  const py::object scalar = module.attr(name);
  table.emplace(reinterpret_cast<PyTypeObject*>(scalar.inc_ref().ptr()), type);
}

TypeTable* numpy_types() {
  const py::module_ numpy = py::module_::import("numpy");
  auto* table = new TypeTable;
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    if (from_ml_dtypes(type)) continue;
    const std::string name(scalar_name(type));
    add_type(*table, numpy, type == ScalarType::boolean ? "bool_" : name.c_str(), type);
  }
  // C's long long has a class of its own where int64 is long.
  add_type(*table, numpy, "longlong", ScalarType::int64);
  add_type(*table, numpy, "ulonglong", ScalarType::uint64);
  return table;
}

TypeTable* ml_types() {
  const py::module_ ml_dtypes = py::module_::import("ml_dtypes");
  auto* table = new TypeTable;
  for (const ScalarType type :
       {ScalarType::bfloat16, ScalarType::float8_e4m3fn, ScalarType::float8_e5m2}) {
    add_type(*table, ml_dtypes, std::string(scalar_name(type)).c_str(), type);
  }
  return table;
}

std::optional<ScalarType> find(const TypeTable& table, PyTypeObject* type) {
  const auto found = table.find(type);
  if (found == table.end()) return std::nullopt;
  return found->second;
}

bool ml_dtypes_is_loaded() {
  return PyDict_GetItemString(PyImport_GetModuleDict(), "ml_dtypes") != nullptr;
}

bool has_half_bytes(const py::object& name) {
  if (!PyUnicode_Check(name.ptr())) return false;
  return PyUnicode_CompareWithASCIIString(name.ptr(), "int4") == 0 ||
         PyUnicode_CompareWithASCIIString(name.ptr(), "uint4") == 0;
}

}  // namespace

py::dtype dtype_object(ScalarType type) {
  static std::array<PyObject*, kScalarTypeCount> cache{};
  PyObject*& entry = cache[static_cast<std::size_t>(type)];
  if (entry == nullptr) {
    const std::string name(scalar_name(type));
    const py::object numpy_dtype = py::module_::import("numpy").attr("dtype");
    const py::object source = from_ml_dtypes(type)
                                  ? py::object(py::module_::import("ml_dtypes").attr(name.c_str()))
                                  : py::object(py::str(name));
    entry = numpy_dtype(source).release().ptr();
  }
  return py::reinterpret_borrow<py::dtype>(entry);
}

std::optional<ScalarType> dtype_scalar(py::handle dtype) {
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    // Looking an ml_dtypes type up would import the package; its dtypes have done so already.
    if (!from_ml_dtypes(type) && dtype_object(type).ptr() == dtype.ptr()) return type;
  }
  if (!dtype.attr("isnative").cast<bool>() || !dtype.attr("fields").is_none()) return std::nullopt;
  return scalar_from_name(dtype.attr("name").cast<std::string>());
}

ScalarType scalar_argument(py::handle dtype) {
  if (PyUnicode_Check(dtype.ptr())) {
    if (const auto known = scalar_from_name(dtype.cast<std::string>())) return *known;
  }
  std::optional<ScalarType> type;
  py::object made;
  try {
    made = py::module_::import("numpy").attr("dtype")(dtype);
    type = dtype_scalar(made);
  } catch (py::error_already_set&) {
    type = foreign_scalar(dtype);
  }
  if (!type) {
    const char* const more =
        has_half_bytes(made ? made.attr("name") : py::reinterpret_borrow<py::object>(dtype))
            ? ". Integers of 4 bits lie two in a byte: kw.nn.quant.pack_int4()"
            : "";
    throw ArgumentError(format("{} is no element type of an array; there are: {}{}",
                               short_repr(dtype), known_types(), more));
  }
  return *type;
}

py::object struct_layout(const std::vector<StructField>& fields, std::size_t size) {
  py::list rows;
  for (const StructField& field : fields) {
    py::list shape;
    for (const std::size_t extent : field.shape) shape.append(extent);
    if (field.lanes > 1) shape.append(field.lanes);
    py::object dtype = py::none();
    if (field.scalar) dtype = dtype_object(*field.scalar);
    rows.append(
        py::make_tuple(text_object(field.name), dtype, py::tuple(shape), field.offset, field.size));
  }
  return module_member("kernwright._jit.structs", "Layout").attr("told")(rows, size);
}

py::object struct_layout(const Parameter& parameter) {
  if (!parameter.fields.empty()) return struct_layout(parameter.fields, parameter.element_size);
  if (!parameter.scalar || parameter.lanes < 2) return {};
  std::vector<StructField> fields;
  for (std::size_t i = 0; i < static_cast<std::size_t>(parameter.lanes); ++i) {
    const std::size_t item = scalar_size(*parameter.scalar);
    fields.push_back({std::string(1, "xyzw"[i % 4]), {}, parameter.scalar, 1, {}, i * item, item});
  }
  const bool is_pointer = parameter.kind == ParameterKind::pointer;
  return struct_layout(fields, is_pointer ? parameter.pointee_size : parameter.size);
}

py::object struct_dtype(const Parameter& parameter) {
  const py::object layout = struct_layout(parameter);
  return layout ? py::object(layout.attr("dtype")) : py::object();
}

py::tuple opaque_parts(const Parameter& parameter) {
  const bool is_pointer = parameter.kind == ParameterKind::pointer;
  const std::string& type = parameter.type;
  const bool is_plain = parameter.kind != ParameterKind::aggregate && !is_pointer;
  const bool is_number = type.ends_with("__int128") || type.ends_with("decltype(nullptr)");
  const bool to_pointers = is_pointer && type.find('*') != type.rfind('*');
  const std::size_t size =
      is_pointer || parameter.element_size != 0 ? parameter.element_size : parameter.size;
  if (parameter.scalar || is_plain || is_number || to_pointers || size == 0) return py::tuple();
  return struct_layout(parameter.fields, size).attr("opaque");
}

std::optional<ScalarType> type_scalar(PyTypeObject* type) {
  static const TypeTable* numpy = numpy_types();
  if (const auto found = find(*numpy, type)) return found;
  if (!ml_dtypes_is_loaded()) return std::nullopt;
  static const TypeTable* ml = ml_types();
  return find(*ml, type);
}

}  // namespace kernwright::python
