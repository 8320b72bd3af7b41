// The part of the probe for the members of structs, and of members of struct type.
#pragma once

#include "core/kernel_signature.h"
#include "jit/signature/mangled_type.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// Templates that ask structs for members of these names ("S::x", as MemberNames finds them: an S,
/// or a struct derived of one, for x; "::x" all structs). Members of struct type, or arrays of
/// structs, are asked in turn. Pointers are not followed. The templates are in the namespace of the
/// probe's other ones.
std::string member_templates(std::span<const std::string> members);

/// Reads the answers of these templates for a struct of `size` bytes. Members stand in the order of
/// their offsets. A member of struct type is followed by its own members, with paths for names
/// ("pos.x") and offsets from the outermost struct on; an array of structs by those of the first. A
/// path without a name in the end ("", "pos.") is bytes of a union; they may hold untold members.
/// Nothing for a struct without told members.
std::vector<StructField> read_members(const TypeNode& answer, std::size_t size,
                                      std::span<const std::string> members,
                                      std::string_view lowered);

/// The innermost element of an array of arrays.
struct ArrayElement {
  const TypeNode* type = nullptr;
  std::vector<std::size_t> shape;

  /// The number of elements; `bytes` / count() is the size of one, unless an extent is 0.
  std::size_t count() const noexcept;
};

ArrayElement array_element(const TypeNode& type, std::string_view lowered);

/// The number in a template argument.
std::size_t to_size(const TypeNode& literal, std::string_view lowered);

[[noreturn]] void answer_not_understood(std::string_view lowered);

}  // namespace kernwright
