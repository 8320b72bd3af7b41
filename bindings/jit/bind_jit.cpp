// Program and ObjectCode for Python: the explicit way from source text to code.
#include "array/array.h"
#include "base/counted.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "bindings/jit/program_object.h"
#include "bindings/launch/kernel_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/compile_limits.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"
#include "core/device.h"
#include "driver/shared_library.h"
#include "jit/cache/code_cache.h"
#include "jit/object_code.h"
#include "jit/program.h"
#include "jit/signature/image_reader.h"

#include <pybind11/stl.h>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace kernwright::python {
namespace {

Tristate tristate(const py::object& value) {
  if (PyUnicode_Check(value.ptr())) return Tristate::automatic;
  return value.cast<bool>() ? Tristate::on : Tristate::off;
}

/// From kernwright.ProgramOptions, with checked kinds of fields.
ProgramOptions read_options(const py::object& from) {
  ProgramOptions options;
  if (from.is_none()) return options;
  const auto optional_int = [&](const char* name) -> std::optional<int> {
    const py::object value = from.attr(name);
    if (value.is_none()) return std::nullopt;
    return value.cast<int>();
  };
  if (!from.attr("arch").is_none()) options.arch = from.attr("arch").cast<std::string>();
  options.std = from.attr("std").cast<std::string>();
  options.defines = from.attr("defines").cast<std::map<std::string, std::string>>();
  options.headers = from.attr("headers").cast<std::map<std::string, std::string>>();
  options.include_dirs = from.attr("include_dirs").cast<std::vector<std::string>>();
  options.fast_math = from.attr("fast_math").cast<bool>();
  options.max_registers = optional_int("max_registers");
  options.lineinfo = from.attr("lineinfo").cast<bool>();
  options.device_debug = from.attr("device_debug").cast<bool>();
  options.strip_host = from.attr("strip_host").cast<bool>();
  options.minimal = tristate(from.attr("minimal"));
  options.pch = tristate(from.attr("pch"));
  options.opt_level = optional_int("opt_level");
  if (const auto limit = timeout_argument(from.attr("timeout"))) {
    options.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(*limit);
  }
  options.extra = from.attr("extra").cast<std::vector<std::string>>();
  return options;
}

/// In UTF-8. Half of a surrogate pair, possible in a str, is no character.
std::string source_text(const py::str& text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  const py::error_already_set error;
  if (!error.matches(PyExc_UnicodeEncodeError)) throw error;
  throw InvalidArgument(format("the source text has a lone surrogate at index {}",
                               error.value().attr("start").cast<Py_ssize_t>()));
}

CodeKind code_kind(const std::string& name) {
  if (name == "cubin") return CodeKind::cubin;
  if (name == "ptx") return CodeKind::ptx;
  throw InvalidArgument(
      format("unknown kind of code \"{}\": use \"cubin\" or \"ptx\"", printable(name)));
}

/// Compiles for the arch of the options, else for the current device's.
ObjectCode compile(const ProgramObject& self, const std::string& kind,
                   const std::vector<std::string>& names, const py::object& timeout,
                   const StopObject* stop) {
  for (const std::string& name : names) require_whole_name(name, "the kernel name");
  const WaitScope scope(wait_limits_argument(timeout, stop));
  const Program& program = self.program;
  const CodeKind wanted = code_kind(kind);
  if (!program.options().arch.empty()) {
    const GilRelease unlocked;
    return program.compile(wanted, names);
  }
  const int number = device_argument(py::none()).compute_capability().number();
  ProgramOptions options = program.options();
  options.arch = format("{}_{}", wanted == CodeKind::ptx ? "compute" : "sm", number);
  const GilRelease unlocked;
  return Program(program.source(), options).compile(wanted, names);
}

/// Compiles and loads all kernels but templates.
void load(const ProgramObject& self, const py::object& device, const py::object& timeout,
          const StopObject* stop) {
  const WaitScope scope(wait_limits_argument(timeout, stop));
  Device& chosen = device_argument(device);
  const GilRelease unlocked;
  self.program.module(chosen);
}

/// (dtype or None, shape, bytes) of a variable; of a struct its Layout in the place of a dtype.
py::tuple symbol_type(const ProgramObject& self, const std::string& name,
                      const py::object& device) {
  require_whole_name(name, "the variable name");
  const Program& program = self.program;
  Device& chosen = device_argument(device);
  SymbolType type;
  std::size_t size = 0;
  {
    const GilRelease unlocked;
    type = program.symbol_type(chosen, name);
    size = program.symbol(chosen, name).size;
  }
  py::list shape;
  std::size_t count = 1;
  for (const std::size_t extent : type.shape) {
    shape.append(extent);
    count *= extent;
  }
  if (type.scalar && type.lanes > 1) shape.append(type.lanes);
  py::object dtype = py::none();
  if (type.scalar) {
    dtype = dtype_object(*type.scalar);
  } else if (!type.fields.empty() && count > 0) {
    dtype = struct_layout(type.fields, size / count);
  }
  return py::make_tuple(dtype, py::tuple(shape), size);
}

/// A __device__ or __constant__ variable as an array over the module's own memory; `offset` and
/// `strides` are bytes.
Array symbol(const ProgramObject& self, const std::string& name, const py::object& dtype,
             const py::object& shape, const py::object& device, std::size_t offset,
             const py::object& given_strides) {
  require_whole_name(name, "the variable name");
  const Program& program = self.program;
  Device& chosen = device_argument(device);
  ModuleSymbol found;
  std::shared_ptr<Module> owner;
  {
    const GilRelease unlocked;
    found = program.symbol(chosen, name);
    owner = std::make_shared<Module>(program.module(chosen));
  }
  const ScalarType type = dtype.is_none() ? ScalarType::uint8 : scalar_argument(dtype);
  const std::size_t item = scalar_size(type);
  Shape extents;
  if (shape.is_none()) {
    extents.push_back(static_cast<std::int64_t>(found.size / item));
  } else {
    extents = shape.cast<Shape>();
  }
  const auto bytes = static_cast<std::size_t>(element_count(extents)) * item;
  if (bytes > found.size || (shape.is_none() && bytes != found.size)) {
    throw InvalidArgument(
        format("{} has {} bytes, which is not a whole number of elements of {} "
               "or less than the shape wants",
               name, found.size, scalar_name(type)));
  }
  Shape strides =
      given_strides.is_none() ? contiguous_strides(extents, item) : given_strides.cast<Shape>();
  return Array::adopt(chosen, found.address + offset, std::move(extents), std::move(strides), type,
                      std::move(owner));
}

/// Compiles for the current device where the text does not show all kernels.
py::list kernel_names(const ProgramObject& self) {
  const Program& program = self.program;
  const bool asks = !program.declares_all();
  Device* const device = asks ? &device_argument(py::none()) : nullptr;
  std::vector<std::string> found;
  {
    const GilRelease unlocked;
    found = program.kernel_names(device);
  }
  py::list names;
  for (const std::string& name : found) names.append(text_object(name));
  return names;
}

void bind_program(py::module_& m) {
  using Object = ProgramObject;
  py::class_<Object>(m, "_Program")
      .def(py::init([](const py::str& text, const std::string& name, int first_line,
                       const std::string& directory, const py::object& options) {
             return make_program({source_text(text), name, first_line, directory}, options);
           }),
           py::arg("text"), py::arg("name"), py::arg("first_line"), py::arg("directory"),
           py::arg("options"))
      .def_property_readonly("text",
                             [](const Object& o) { return text_object(o.program.source().text); })
      .def_property_readonly("source_name",
                             [](const Object& o) { return text_object(o.program.source().name); })
      .def_property_readonly("first_line",
                             [](const Object& o) { return o.program.source().first_line; })
      .def_property_readonly(
          "directory", [](const Object& o) { return text_object(o.program.source().directory); })
      .def_property_readonly("options", [](const Object& o) { return o.options; })
      .def_property_readonly("declared",
                             [](const Object& o) {
                               py::list names;
                               for (const KernelDeclaration& d : o.program.declarations()) {
                                 names.append(text_object(d.name));
                               }
                               return names;
                             })
      .def("compile", &compile, py::arg("kind"), py::arg("names"), py::arg("timeout") = py::none(),
           py::arg("stop") = nullptr)
      .def("load", &load, py::arg("device"), py::arg("timeout"), py::arg("stop"))
      .def(
          "kernel",
          [](const py::object& self, const std::string& name) {
            return make_kernel(self.cast<const Object&>().program, name, self);
          },
          py::arg("name"))
      .def("symbol", &symbol, py::arg("name"), py::arg("dtype"), py::arg("shape"),
           py::arg("device") = py::none(), py::arg("offset") = 0, py::arg("strides") = py::none())
      .def("symbol_type", &symbol_type, py::arg("name"), py::arg("device") = py::none())
      .def("names", &kernel_names)
      .def_property_readonly("code",
                             [](const Object& o) -> py::object {
                               const auto& code = o.program.loaded_code();
                               return code ? py::cast(*code) : py::object(py::none());
                             })
      .def_static(
          "of_code",
          [](const ObjectCode& code, const std::string& name) {
            return ProgramObject{Program(code, name), py::none()};
          },
          py::arg("code"), py::arg("name"));
}

py::dict list_kernels(const ObjectCode& code) {
  const auto shared = std::make_shared<const ObjectCode>(code);
  py::dict kernels;
  for (const KernelSignature& signature : code.kernels) {
    kernels[text_object(signature.name)] =
        py::cast(std::make_unique<KernelObject>(shared, signature.name));
  }
  return kernels;
}

py::dict list_lowered_names(const ObjectCode& code) {
  py::dict names;
  for (const KernelSignature& signature : code.kernels) {
    names[text_object(signature.name)] = signature.lowered;
  }
  return names;
}

/// The output of save(), a cubin or PTX.
ObjectCode read_image(std::string_view image) {
  return ObjectCode::is_saved(image) ? ObjectCode::deserialize(image) : object_code_of_image(image);
}

/// The text of a str that is no path: PTX, or meant to be PTX.
std::optional<std::string> code_text(const py::object& source) {
  if (PyUnicode_Check(source.ptr()) == 0) return std::nullopt;
  const auto breaks = source.attr("count")("\n").cast<Py_ssize_t>();
  const bool is_blank = source.attr("strip")().attr("__len__")().cast<Py_ssize_t>() == 0;
  if (breaks == 0 && !is_blank) return std::nullopt;
  return source_text(py::str(source));
}

/// Code of that kind from bytes, PTX as a str, or a file at a path.
ObjectCode load_image(const py::object& source, CodeKind kind) {
  ObjectCode code;
  if (const auto text = code_text(source)) {
    code = object_code_of_image(*text);
  } else if (PyObject_CheckBuffer(source.ptr()) != 0) {
    code = read_image(std::string_view(py::bytes(source)));
  } else {
    code = ObjectCode::load(path_argument(source, "ObjectCode"));
  }
  if (code.kind == kind) return code;
  const bool is_ptx = code.kind == CodeKind::ptx;
  throw InvalidArgument(format("this is {} for {}, not {}: load it with {}() or load()",
                               is_ptx ? "PTX" : "a cubin", code.arch, is_ptx ? "a cubin" : "PTX",
                               is_ptx ? "from_ptx" : "from_cubin"));
}

/// A file as the source of a kernel; InvalidArgument says why it cannot be one.
py::bytes read_source_file(const py::object& path) {
  const std::string name = path_argument(path, "a kernel's source");
  RegularFile file;
  {
    const GilRelease unlocked;
    file = read_regular_file(name, kMaxSourceBytes);
  }
  if (file.reason.empty()) return py::bytes(file.bytes);
  throw InvalidArgument(
      format("{} cannot be used as a source: {}", short_repr(path, 4096), file.reason));
}

/// The beginning of a file, perhaps of object code; empty where it cannot be read.
py::bytes file_head(const py::object& path, std::size_t count) {
  return py::bytes(read_file_head(path_argument(path, "a kernel's source"), count).bytes);
}

void bind_object_code(py::module_& m) {
  py::class_<ObjectCode>(m, "ObjectCode")
      .def_property_readonly("code", [](const ObjectCode& o) { return py::bytes(o.code); })
      .def_property_readonly(
          "kind", [](const ObjectCode& o) { return o.kind == CodeKind::ptx ? "ptx" : "cubin"; })
      .def_property_readonly("arch", [](const ObjectCode& o) { return o.arch; })
      .def_property_readonly("log", [](const ObjectCode& o) { return text_object(o.log); })
      .def_property_readonly("diagnostics",
                             [](const ObjectCode& o) { return diagnostic_list(o.diagnostics); })
      .def_property_readonly("nvrtc_version", [](const ObjectCode& o) { return o.nvrtc_version; })
      .def_property_readonly("compile_ms", [](const ObjectCode& o) { return o.compile_ms; })
      .def_property_readonly("kernels", &list_kernels)
      .def_property_readonly("lowered_names", &list_lowered_names)
      .def(
          "kernel",
          [](const ObjectCode& o, const std::string& name) {
            require_whole_name(name, "the kernel name");
            return std::make_unique<KernelObject>(std::make_shared<const ObjectCode>(o), name);
          },
          py::arg("name"))
      .def(
          "save",
          [](const ObjectCode& o, const py::object& path) {
            o.save(path_argument(path, "ObjectCode.save"));
          },
          py::arg("path"))
      .def_static(
          "load",
          [](const py::object& path) {
            return ObjectCode::load(path_argument(path, "ObjectCode.load"));
          },
          py::arg("path"))
      .def_static(
          "from_ptx", [](const py::object& ptx) { return load_image(ptx, CodeKind::ptx); },
          py::arg("ptx"))
      .def_static(
          "from_cubin", [](const py::object& cubin) { return load_image(cubin, CodeKind::cubin); },
          py::arg("cubin"))
      .def_static(
          "_of_image", [](const py::bytes& image) { return read_image(std::string_view(image)); },
          py::arg("image"))
      .def("__repr__",
           [](const ObjectCode& o) {
             return text_object(format(
                 "<ObjectCode {} for {}: {}, {}>", o.kind == CodeKind::ptx ? "PTX" : "cubin",
                 o.arch, counted(o.kernels.size(), "kernel"), counted(o.code.size(), "byte")));
           })
      .def("__reduce__", [](const ObjectCode& o) {
        return py::make_tuple(module_member("kernwright._core", "_object_code"),
                              py::make_tuple(py::bytes(o.serialize())));
      });
  m.def(
      "_object_code",
      [](const py::bytes& bytes) { return ObjectCode::deserialize(std::string_view(bytes)); },
      py::arg("bytes"));
}

/// Has the end of the interpreter wait for a library on its way in.
void watch_openings() {
  constexpr std::chrono::seconds kPatience{5};
  py::module_::import("atexit").attr("register")(py::cpp_function([kPatience] {
    const GilRelease unlocked;
    wait_for_openings(kPatience);
  }));
}

}  // namespace

ProgramObject make_program(Source source, const py::object& options) {
  ProgramObject made{Program(std::move(source), read_options(options)), options};
  const GilRelease unlocked;
  prefetch_compiler();
  return made;
}

void bind_jit(py::module_& m) {
  m.def("_file_head", &file_head, py::arg("path"), py::arg("count"));
  m.def("_read_source_file", &read_source_file, py::arg("path"));
  watch_openings();
  bind_program(m);
  bind_object_code(m);
}

}  // namespace kernwright::python
