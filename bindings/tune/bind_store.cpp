// Stores for Python; rows travel as JSON texts.
#include "base/errors.h"
#include "bindings/jit/program_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/python_support.h"
#include "bindings/tune/bind_tune.h"
#include "core/device.h"
#include "jit/source/kernel_scanner.h"
#include "tune/session/session_rows.h"
#include "tune/store/store.h"

#include <pybind11/stl.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

Row row_argument(const std::string& text) {
  Row row = Row::parse(text, nullptr, false);
  if (row.is_discarded()) throw InvalidArgument("a row of a store must be valid JSON");
  return row;
}

std::string row_text(const Row& row) {
  return row.dump(-1, ' ', true, Row::error_handler_t::replace);
}

py::list row_list(const std::vector<Row>& rows) {
  py::list list;
  for (const Row& row : rows) list.append(row_text(row));
  return list;
}

py::list text_list(const std::vector<std::string>& texts) {
  py::list list;
  for (const std::string& text : texts) list.append(text_object(text));
  return list;
}

void bind_store_file(py::module_& m) {
  py::class_<StoreFile>(m, "TuneStoreFile")
      .def(py::init([](const py::object& path) {
        return std::make_unique<StoreFile>(path_argument(path, "kw.tune.Store"));
      }))
      .def("append",
           [](StoreFile& self, const std::vector<std::string>& texts) {
             std::vector<Row> rows;
             for (const std::string& text : texts) rows.push_back(row_argument(text));
             without_gil([&] { self.append_all(rows); });
           })
      .def("require_store",
           [](const StoreFile& self) { without_gil([&] { self.require_store(); }); })
      .def("read", [](const StoreFile& self, const std::string& kind, const std::string& session) {
        return row_list(without_gil([&] { return self.read(kind, session); }).rows);
      });
  m.def("_tune_rows",
        [](const py::bytes& text, const std::string& kind, const std::string& session) {
          const std::string_view bytes(text);
          return row_list(without_gil([&] { return read_rows(bytes, kind, session); }).rows);
        });
}

py::list find(Store& self, const std::string& query) {
  const StoreKey key = StoreKey::from_row(row_argument(query));
  const std::vector<StoreMatch> matches = without_gil([&] { return self.find(key); });
  py::list list;
  for (const StoreMatch& match : matches) {
    py::list differences;
    for (const KeyDifference& difference : match.differences)
      differences.append(
          py::make_tuple(key_part_name(difference.part), text_object(difference.text)));
    list.append(
        py::make_tuple(row_text(match.row), text_object(match.path), differences, match.distance));
  }
  return list;
}

/// Names of the kernel's parameters as the text declares them; "" where it gives none.
std::vector<std::string> parameter_names(const ProgramObject& program, const std::string& kernel) {
  const std::string name = kernel.substr(0, kernel.find('<'));
  for (const KernelDeclaration& declaration : program.program.declarations()) {
    if (declaration.name == name) return declaration.parameter_names;
  }
  return {};
}

/// Names of the __device__, __constant__ and __managed__ variables declared by the text.
std::vector<std::string> variable_names(const std::string& text) {
  std::vector<std::string> names;
  for (SymbolDeclaration& symbol : scan_source(text).symbols)
    names.push_back(std::move(symbol.name));
  return names;
}

py::dict device_members(const py::object& device) {
  const Device& chosen = device_argument(device);
  const DeviceClass its_class = DeviceClass::from(chosen);
  py::dict members;
  members["name"] = text_object(its_class.name);
  members["major"] = its_class.major;
  members["minor"] = its_class.minor;
  members["sm_count"] = its_class.sm_count;
  members["driver"] = chosen.driver_version();
  return members;
}

}  // namespace

void bind_tune_store(py::module_& m) {
  bind_store_file(m);
  py::class_<Store>(m, "TuneStore")
      .def(py::init([](const py::list& given) {
        std::vector<std::string> paths;
        for (const py::handle path : given) paths.push_back(path_argument(path, "kw.tune.Store"));
        return without_gil([&] { return std::make_unique<Store>(std::move(paths)); });
      }))
      .def("add", [](Store& self, std::string name,
                     const py::bytes& text) { self.add(std::move(name), std::string_view(text)); })
      .def("find", &find)
      .def("results",
           [](Store& self) { return row_list(without_gil([&] { return self.results(); })); })
      .def("problems", [](Store& self) {
        return text_list(without_gil([&] { return self.problems(&trial_problems); }));
      });
  m.def("_tune_source_hash",
        [](const ProgramObject& program, const std::vector<std::string>& parameters) {
          return without_gil([&] { return source_hash(program.program, parameters); });
        });
  m.def("_tune_text_hash",
        [](const ProgramObject& program, const std::vector<std::string>& parameters) {
          return text_hash(program.program, parameters);
        });
  m.def("_tune_space_hash", [](TuneSpace& space) {
    if (space.space.is_listed()) space.configurations();
    return space_hash(space.space);
  });
  m.def("_tune_bucket", [](py::handle value) { return problem_bucket(value_argument(value)); });
  m.def("_tune_parameter_names", &parameter_names);
  m.def("_tune_variable_names", &variable_names);
  m.def("_tune_device_class", &device_members);
}

}  // namespace kernwright::python
