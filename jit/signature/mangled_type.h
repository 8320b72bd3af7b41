// A C++ type as a tree, read from an Itanium mangled name, and its spelling.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

enum class TypeNodeKind {
  builtin,    ///< `text` is the C++ spelling: "unsigned long long"
  named,      ///< class, union or enum: `text` is the qualified name, `children` its arguments
  qualified,  ///< const/volatile of children[0]
  pointer,    ///< to children[0]
  lvalue_reference,  ///< to children[0]
  rvalue_reference,  ///< to children[0]
  array,             ///< of children[0]; `text` is the extent, empty when unknown
  function,          ///< children[0] is the result, then the parameters
  member_pointer,    ///< children[0] is the class, children[1] the member's type
  integer,           ///< a template argument: `text` is the literal, children[0] its type
  pack,              ///< a template argument pack: its elements
};

struct TypeNode;
/// Shared because substitutions make the tree a directed acyclic graph.
using TypeRef = std::shared_ptr<const TypeNode>;

struct TypeNode {
  TypeNodeKind kind = TypeNodeKind::builtin;
  std::string text = {};
  std::vector<TypeRef> children = {};
  bool is_const = false;
  bool is_volatile = false;
  bool has_arguments = false;  ///< named: an argument list is present, be it empty
};

/// The name of a mangled function (`_Z...`) as a `named` node; its parameter types are left unread.
/// Throws InvalidArgument for text outside the supported subset, or too deep or too large.
TypeRef demangle_name(std::string_view mangled);

/// A mangled function, and its parameters with template parameters replaced by their arguments.
struct FunctionNode {
  TypeRef name;
  std::vector<TypeRef> parameters;
};

/// The same for a function with its parameter types. Throws as demangle_name() does, also for types
/// computed from template parameters.
FunctionNode demangle_function(std::string_view mangled);

/// C++ spelling: "const float*", "int (*)(float)", "cuda::std::complex<float>".
/// Throws InvalidArgument when it would be longer than 64 KiB.
std::string spell(const TypeNode& type);

/// The text of a node's own name with inline namespaces of the CUDA library dropped.
std::string spell_name(std::string_view qualified_name);

}  // namespace kernwright
