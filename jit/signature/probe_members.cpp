// The templates for questions about members, and the reading of their mangled names.
#include "jit/signature/probe_members.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "jit/signature/cuda_types.h"

namespace kernwright {
namespace {

/// Asks any class for a member of this name: void for anything but an accessible data member. {0}
/// is its index in the list, {1} the name.
constexpr std::string_view kMember = R"probe(
template <class kernwright_T_, class = void> struct kernwright_member_{0}_ {{
  typedef void kernwright_type_;
}};
template <class kernwright_T_> struct kernwright_member_{0}_<
    kernwright_T_, decltype(void(__INTADDR__(&(((kernwright_T_*)0)->{1}))),
                            void(&kernwright_T_::{1}))> {{
  typedef kernwright_member_<
      decltype(kernwright_T_::{1}),
      typename kernwright_plain_<decltype(kernwright_T_::{1})>::kernwright_type_,
      typename kernwright_layout_<
          kernwright_element_<decltype(kernwright_T_::{1})>>::kernwright_type_,
      sizeof(decltype(kernwright_T_::{1})), __INTADDR__(&(((kernwright_T_*)0)->{1})), {0}>
      kernwright_type_;
}};
)probe";

/// The members named {0} of a struct {1} of the text, for this class or a class derived of it: only
/// such classes have an inner name {1}. {2} are the members.
constexpr std::string_view kGroup = R"probe(
template <class kernwright_D_, class kernwright_T_, class = void> struct kernwright_group_{0}_ {{
  typedef void kernwright_type_;
}};
template <class kernwright_D_, class kernwright_T_> struct kernwright_group_{0}_<
    kernwright_D_, kernwright_T_, decltype(void((typename kernwright_D_::{1}*)0))> {{
  typedef kernwright_list_<0, {2}> kernwright_type_;
}};
template <class kernwright_T_> struct kernwright_group_{0}_<void, kernwright_T_, void> {{
  typedef kernwright_list_<0, {2}> kernwright_type_;
}};
)probe";

/// Members of structs without a name may be any class's.
constexpr std::string_view kNamelessGroup = R"probe(
template <class, class kernwright_T_> struct kernwright_group_{0}_ {{
  typedef kernwright_list_<0, {1}> kernwright_type_;
}};
)probe";

/// A class without a derived one (union, final, polymorphic) is asked for all names. {0} are the
/// groups.
constexpr std::string_view kList = R"probe(
template <class kernwright_T_, bool> struct kernwright_derived_ {{
  struct kernwright_type_ : kernwright_T_ {{}};
}};
template <class kernwright_T_> struct kernwright_derived_<kernwright_T_, false> {{
  typedef void kernwright_type_;
}};
template <class kernwright_D_, class kernwright_T_> struct kernwright_groups_ {{
  typedef kernwright_list_<__is_union(kernwright_T_) + 2 * __is_empty(kernwright_T_), {0}>
      kernwright_type_;
}};
template <class kernwright_T_> struct kernwright_members_<kernwright_T_, true>
    : kernwright_groups_<typename kernwright_derived_<
          kernwright_T_, !__is_union(kernwright_T_) && !__is_final(kernwright_T_) &&
                         !__is_polymorphic(kernwright_T_)>::kernwright_type_, kernwright_T_> {{}};
)probe";

// The kinds of classes in the answer of kList.
constexpr std::size_t kUnion = 1;
constexpr std::size_t kEmpty = 2;

constexpr std::size_t kMemberNumbers = 3;  // size, offset, place of the name

/// Members of members told by one answer: a struct of arrays of structs names each type once and
/// has each of its members as often as it is used. The rest stays bytes.
constexpr std::size_t kMaxMembers = 8192;

/// "x" of "S::x".
std::string_view own_name(std::string_view member) { return member.substr(member.find("::") + 2); }

class MemberReader {
 public:
  MemberReader(std::span<const std::string> members, std::string_view lowered)
      : members_(members), lowered_(lowered) {}

  /// Appends the members of a struct at `path` ("pos.") and `base`; `list` is void where nothing is
  /// known of it.
  void read(const TypeNode& list, const std::string& path, std::size_t base, std::size_t size,
            std::vector<StructField>& fields) {
    if (list.kind != TypeNodeKind::named) return;
    const bool whole = list.children.size() == 2 && list.children[1]->kind == TypeNodeKind::pack;
    if (!whole) answer_not_understood(lowered_);
    std::vector<Found> found;
    for (const TypeRef& group : list.children[1]->children) {
      if (group->kind != TypeNodeKind::named) continue;
      const bool is_group =
          group->children.size() == 2 && group->children[1]->kind == TypeNodeKind::pack;
      if (!is_group) answer_not_understood(lowered_);
      for (const TypeRef& node : group->children[1]->children) {
        if (node->kind == TypeNodeKind::named) add(*node, found);
      }
    }
    // Any member of a union may hold the value, also one missing from the answer.
    const bool is_union = (to_size(*list.children[0], lowered_) & kUnion) != 0;
    if (is_union && !found.empty()) found.push_back(untold_bytes(0, size));
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
      return a.field.offset < b.field.offset;
    });
    for (Found& member : found) {
      const std::string inner = path + member.field.name;
      const std::size_t start = base + member.field.offset;
      const std::size_t step = member.field.size / std::max<std::size_t>(member.count, 1);
      member.field.name = inner;
      member.field.offset = start;
      fields.push_back(std::move(member.field));
      if (member.members != nullptr) read(*member.members, inner + ".", start, step, fields);
    }
  }

 private:
  /// A member, and the answer about its own members.
  struct Found {
    StructField field;
    std::size_t count = 1;              ///< elements of an array
    const TypeNode* members = nullptr;  ///< of each
  };

  static Found untold_bytes(std::size_t offset, std::size_t size) {
    Found bytes;
    bytes.field.offset = offset;
    bytes.field.size = size;
    return bytes;
  }

  static bool overlaps(const StructField& a, const StructField& b) {
    return a.offset < b.offset + b.size && b.offset < a.offset + a.size;
  }

  /// A struct without members has one meaningless byte; others may share it.
  bool is_empty(const TypeNode& list) const {
    return list.kind == TypeNodeKind::named && !list.children.empty() &&
           (to_size(*list.children[0], lowered_) & kEmpty) != 0;
  }

  /// Appends the member. Members with common bytes belong to a union without a name.
  void add(const TypeNode& node, std::vector<Found>& found) {
    const bool whole = node.children.size() == 4 && node.children[3]->kind == TypeNodeKind::pack &&
                       node.children[3]->children.size() == kMemberNumbers;
    if (!whole) answer_not_understood(lowered_);
    if (is_empty(*node.children[2]) || ++count_ > kMaxMembers) return;
    Found member = read_member(node);
    const bool is_known = std::any_of(found.begin(), found.end(), [&](const Found& other) {
      return other.field.name == member.field.name;
    });
    if (is_known) return;  // several structs have that name, and this is derived of them
    std::size_t begin = member.field.offset;
    std::size_t end = begin + member.field.size;
    bool shares = false;
    for (const Found& other : found) {
      if (!overlaps(member.field, other.field)) continue;
      shares = true;
      begin = std::min(begin, other.field.offset);
      end = std::max(end, other.field.offset + other.field.size);
    }
    if (shares) found.push_back(untold_bytes(begin, end - begin));
    found.push_back(std::move(member));
  }

  Found read_member(const TypeNode& node) const {
    const std::vector<TypeRef>& numbers = node.children[3]->children;
    Found member;
    StructField& field = member.field;
    field.type = spell(*node.children[0]);
    field.size = to_size(*numbers[0], lowered_);
    field.offset = to_size(*numbers[1], lowered_);
    const std::size_t index = to_size(*numbers[2], lowered_);
    if (index >= members_.size()) answer_not_understood(lowered_);
    field.name = own_name(members_[index]);
    const ArrayElement element = array_element(*node.children[1], lowered_);
    field.shape = element.shape;
    const ElementType number = element_type(*element.type);
    field.scalar = number.scalar;
    field.lanes = std::max(number.lanes, 1);
    if (element.type->kind == TypeNodeKind::pointer) field.scalar = ScalarType::uint64;
    member.count = element.count();
    if (!field.scalar && member.count > 0) member.members = node.children[2].get();
    return member;
  }

  std::span<const std::string> members_;
  std::string_view lowered_;
  std::size_t count_ = 0;
};

}  // namespace

std::string member_templates(std::span<const std::string> members) {
  std::string text = "#pragma nv_diag_suppress 1427\n";  // offsets in what is no plain C struct
  std::map<std::string_view, std::string> groups;        // by the name of the struct
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t end = members[i].find("::");
    std::string& group = groups[std::string_view(members[i]).substr(0, end)];
    text += format(kMember, i, own_name(members[i]));
    group += format("{}typename kernwright_member_{}_<kernwright_T_>::kernwright_type_",
                    group.empty() ? "" : ", ", i);
  }
  std::string list;
  std::size_t index = 0;
  for (const auto& [name, group] : groups) {
    text +=
        name.empty() ? format(kNamelessGroup, index, group) : format(kGroup, index, name, group);
    list +=
        format("{}typename kernwright_group_{}_<kernwright_D_, kernwright_T_>::kernwright_type_",
               list.empty() ? "" : ", ", index++);
  }
  return text + format(kList, list);
}

std::vector<StructField> read_members(const TypeNode& answer, std::size_t size,
                                      std::span<const std::string> members,
                                      std::string_view lowered) {
  std::vector<StructField> fields;
  MemberReader(members, lowered).read(answer, {}, 0, size, fields);
  return fields;
}

std::size_t ArrayElement::count() const noexcept {
  std::size_t result = 1;
  for (const std::size_t extent : shape) result *= extent;
  return result;
}

ArrayElement array_element(const TypeNode& type, std::string_view lowered) {
  ArrayElement element{&unqualified(type), {}};
  while (element.type->kind == TypeNodeKind::array) {
    const std::string& extent = element.type->text;
    std::size_t value = 0;
    const char* const end = extent.data() + extent.size();
    const auto read = std::from_chars(extent.data(), end, value);
    if (!extent.empty() && (read.ec != std::errc() || read.ptr != end)) {
      answer_not_understood(lowered);
    }
    element.shape.push_back(value);
    element.type = &unqualified(*element.type->children[0]);
  }
  return element;
}

std::size_t to_size(const TypeNode& literal, std::string_view lowered) {
  std::size_t value = 0;
  const auto [end, error] =
      std::from_chars(literal.text.data(), literal.text.data() + literal.text.size(), value);
  if (literal.kind != TypeNodeKind::integer || error != std::errc() ||
      end != literal.text.data() + literal.text.size()) {
    answer_not_understood(lowered);
  }
  return value;
}

void answer_not_understood(std::string_view lowered) {
  throw InvalidArgument(format("the probe's answer is not understood: {}", lowered.substr(0, 200)));
}

}  // namespace kernwright
