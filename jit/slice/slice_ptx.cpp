// Inserts parameters and a prologue into the functions of a PTX module.
#include "jit/slice/slice_ptx.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/errors.h"
#include "base/format.h"
#include "jit/signature/ptx_parameters.h"

namespace kernwright {
namespace {

constexpr std::size_t kNowhere = std::string_view::npos;

bool is_slice_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$';
}

/// A function with a body: offsets in the text.
struct PtxFunction {
  bool is_entry = false;
  std::size_t word = 0;           ///< of .entry or .func
  std::size_t name_end = 0;       ///< behind the entry's name
  std::size_t open = kNowhere;    ///< of the entry's parenthesis
  std::size_t body = 0, end = 0;  ///< of the braces
  bool reads = false;
};

/// A read of a special register: `length` bytes at `offset` are to become `name`.
struct Read {
  std::size_t offset = 0, length = 0;
  std::string name;
};

/// Finds functions and reads in a text without comments.
class PtxScan {
 public:
  explicit PtxScan(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text_.size(); ++at) at = step(at);
  }

  std::vector<PtxFunction> functions;
  std::vector<Read> reads;

 private:
  /// Returns the offset of the last byte of what stands at `at`.
  std::size_t step(std::size_t at) {
    const char c = text_[at];
    if (c == '"') return std::min(text_.find('"', at + 1), text_.size() - 1);
    if (c == '{' && depth_++ == 0 && pending_) open_body(at);
    if (c == '}' && --depth_ == 0) functions_end(at);
    if (c == ';' && depth_ == 0) pending_ = false;
    if (c == '%') return special(at);
    if (c != '.' || depth_ != 0) return at;
    std::size_t end = at + 1;
    while (end < text_.size() && is_slice_name_char(text_[end])) ++end;
    const std::string_view word = text_.substr(at, end - at);
    if (word == ".entry" || word == ".func") begin_function(at, end, word == ".entry");
    return end - 1;
  }

  void begin_function(std::size_t at, std::size_t end, bool is_entry) {
    pending_ = true;
    next_ = {.is_entry = is_entry, .word = at};
    if (!is_entry) return;
    std::size_t name = text_.find_first_not_of(" \t\r\n", end);
    while (name < text_.size() && (is_slice_name_char(text_[name]) || text_[name] == '%')) ++name;
    next_.name_end = name;
    const std::size_t open = text_.find_first_not_of(" \t\r\n", name);
    if (open < text_.size() && text_[open] == '(') next_.open = open;
  }

  void open_body(std::size_t at) {
    next_.body = at;
    is_inside_ = true;
    pending_ = false;
  }

  void functions_end(std::size_t at) {
    if (!is_inside_) return;
    next_.end = at;
    functions.push_back(next_);
    is_inside_ = false;
  }

  std::size_t special(std::size_t at) {
    std::size_t end = at + 1;
    while (end < text_.size() && is_slice_name_char(text_[end])) ++end;
    const std::string_view word = text_.substr(at, end - at);
    constexpr std::array<std::string_view, 3> kRefused{"%clusterid", "%nclusterid", "%gridid"};
    if (std::find(kRefused.begin(), kRefused.end(), word) != kRefused.end()) refuse(word);
    if (word != "%ctaid" && word != "%nctaid") return end - 1;
    const bool is_part = end + 1 < text_.size() && text_[end] == '.' && text_[end + 1] >= 'x' &&
                         text_[end + 1] <= 'z';
    if (!is_part) refuse(format("{} as a vector", word));
    reads.push_back({at, end + 2 - at,
                     format("%kernwright_{}_{}", word == "%ctaid" ? "at" : "grid",
                            std::string(1, text_[end + 1]))});
    next_.reads = true;
    return end + 1;
  }

  [[noreturn]] static void refuse(std::string_view what) {
    throw NotSliceable(format("the PTX reads {}, which a slice cannot redirect", what));
  }

  std::string_view text_;
  int depth_ = 0;
  bool pending_ = false, is_inside_ = false;
  PtxFunction next_;
};

constexpr std::string_view kParameters =
    ".param .align 4 .b8 kernwright_first[12], .param .align 4 .b8 kernwright_grid[12]";
constexpr std::string_view kRegisters =
    " .reg .pred %kernwright_p; .reg .b32 %kernwright_t; .reg .b64 %kernwright_w;"
    " .reg .b32 %kernwright_at_x, %kernwright_at_y, %kernwright_at_z;"
    " .reg .b32 %kernwright_grid_x, %kernwright_grid_y, %kernwright_grid_z;";
constexpr std::string_view kLoads =
    " ld.param.u32 %kernwright_at_x, [kernwright_first];"
    " ld.param.u32 %kernwright_at_y, [kernwright_first+4];"
    " ld.param.u32 %kernwright_at_z, [kernwright_first+8];"
    " ld.param.u32 %kernwright_grid_x, [kernwright_grid];"
    " ld.param.u32 %kernwright_grid_y, [kernwright_grid+4];"
    " ld.param.u32 %kernwright_grid_z, [kernwright_grid+8];";
/// The block of a run.
constexpr std::string_view kRun = " mov.u32 %kernwright_t, %ctaid.x;";
/// A predicate for all threads but the first.
constexpr std::string_view kOthers =
    " mov.u32 %kernwright_t, %tid.x; { .reg .b32 %kernwright_u;"
    " mov.u32 %kernwright_u, %tid.y; or.b32 %kernwright_t, %kernwright_t, %kernwright_u;"
    " mov.u32 %kernwright_u, %tid.z; or.b32 %kernwright_t, %kernwright_t, %kernwright_u; }"
    " setp.ne.u32 %kernwright_p, %kernwright_t, 0;";
/// Behind kOthers: the next block of a counter. All threads leave when there is none, or when told
/// to stop.
constexpr std::string_view kTake =
    " @%kernwright_p bra $kernwright_taken;"
    " ld.param.u64 %kernwright_w, [kernwright_order];"
    " ld.volatile.u32 %kernwright_t, [%kernwright_w];"
    " setp.ne.u32 %kernwright_p, %kernwright_t, 0; mov.u32 %kernwright_t, 0xffffffff;"
    " @%kernwright_p bra $kernwright_stopped;"
    " ld.param.u64 %kernwright_w, [kernwright_next];"
    " atom.add.u32 %kernwright_t, [%kernwright_w], 1;"
    " $kernwright_stopped: st.shared.u32 [kernwright_turn], %kernwright_t;"
    " $kernwright_taken: bar.sync 0; ld.shared.u32 %kernwright_t, [kernwright_turn];"
    " { .reg .b32 %kernwright_u; mul.lo.u32 %kernwright_u, %kernwright_grid_x, %kernwright_grid_y;"
    " mul.lo.u32 %kernwright_u, %kernwright_u, %kernwright_grid_z;"
    " setp.ge.u32 %kernwright_p, %kernwright_t, %kernwright_u; }"
    " @%kernwright_p exit;";
constexpr std::string_view kIndex =
    " add.u32 %kernwright_at_x, %kernwright_at_x, %kernwright_t;"
    " mul.lo.u32 %kernwright_t, %kernwright_grid_y, %kernwright_grid_z;"
    " setp.eq.u32 %kernwright_p, %kernwright_t, 1; @%kernwright_p bra $kernwright_line;"
    " div.u32 %kernwright_t, %kernwright_at_x, %kernwright_grid_x;"
    " rem.u32 %kernwright_at_x, %kernwright_at_x, %kernwright_grid_x;"
    " add.u32 %kernwright_at_y, %kernwright_at_y, %kernwright_t;"
    " div.u32 %kernwright_t, %kernwright_at_y, %kernwright_grid_y;"
    " rem.u32 %kernwright_at_y, %kernwright_at_y, %kernwright_grid_y;"
    " add.u32 %kernwright_at_z, %kernwright_at_z, %kernwright_t; $kernwright_line:";

/// Instructions with the six registers and their places in shared memory.
std::string shared_places(std::string_view instruction) {
  std::string text;
  int offset = 0;
  for (const char* const name : {"at_x", "at_y", "at_z", "grid_x", "grid_y", "grid_z"}) {
    const std::string place = format("[kernwright_place+{}]", offset);
    const std::string value = format("%kernwright_{}", name);
    const bool loads = instruction.starts_with("ld");
    text += format(" {} {}, {};", instruction, loads ? value : place, loads ? place : value);
    offset += 4;
  }
  return text;
}

std::string prologue(bool yields, bool is_shared) {
  std::string text{kRegisters};
  text += kLoads;
  if (yields) {
    (text += kOthers) += kTake;
  } else {
    text += kRun;
  }
  text += kIndex;
  if (!is_shared) return text;
  (text += kOthers) += " @%kernwright_p bra $kernwright_placed;";
  text += shared_places("st.shared.u32");
  return text += " $kernwright_placed: bar.sync 0;";
}

/// Pieces to insert in the order of their offsets.
struct Insertion {
  std::size_t offset = 0, removed = 0;
  std::string text;
};

void add_parameters(std::string_view text, const PtxFunction& entry, bool yields,
                    std::vector<Insertion>& changes) {
  std::string parameters{kParameters};
  if (yields) {
    parameters += ", .param .u64 kernwright_order, .param .u64 kernwright_next";
  }
  if (entry.open == kNowhere) {
    changes.push_back({entry.name_end, 0, format("({})", parameters)});
    return;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n", entry.open + 1);
  const bool is_empty = first != kNowhere && text[first] == ')';
  changes.push_back({entry.open + 1, 0, parameters + (is_empty ? "" : ", ")});
}

/// The beginning of the function's declaration: behind the `;`, `}` or line break before its
/// linkage.
std::size_t declaration_begin(std::string_view text, std::size_t word) {
  const std::size_t before = text.find_last_of(";}\n", word);
  return before == kNowhere ? 0 : before + 1;
}

}  // namespace

std::string slice_ptx(std::string_view ptx, bool yields) {
  const std::string clean = without_ptx_comments(ptx);
  PtxScan scan(clean);
  const bool is_shared = std::any_of(scan.functions.begin(), scan.functions.end(),
                                     [](const PtxFunction& f) { return !f.is_entry && f.reads; });
  std::vector<Insertion> changes;
  if (!scan.functions.empty()) {
    std::string variables;
    if (is_shared) variables += ".shared .align 4 .b8 kernwright_place[24]; ";
    if (yields) variables += ".shared .align 4 .u32 kernwright_turn; ";
    changes.push_back({declaration_begin(clean, scan.functions.front().word), 0, variables});
  }
  for (const PtxFunction& function : scan.functions) {
    if (function.is_entry) {
      add_parameters(clean, function, yields, changes);
      changes.push_back({function.body + 1, 0, prologue(yields, is_shared)});
    } else if (function.reads) {
      changes.push_back(
          {function.body + 1, 0, std::string(kRegisters) + shared_places("ld.shared.u32")});
    }
  }
  for (Read& read : scan.reads) changes.push_back({read.offset, read.length, std::move(read.name)});
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Insertion& a, const Insertion& b) { return a.offset < b.offset; });
  std::string result;
  std::size_t from = 0;
  for (const Insertion& change : changes) {
    result.append(ptx, from, change.offset - from);
    result += change.text;
    from = change.offset + change.removed;
  }
  return result.append(ptx.substr(from));
}

std::vector<PtxVariable> ptx_state(std::string_view ptx) {
  const std::string clean = without_ptx_comments(ptx);
  std::vector<PtxVariable> state;
  for (std::string& name : ptx_variables(clean)) {
    // The declaration is the first line with the name.
    std::size_t at = clean.find(name);
    while (at != kNowhere && at + name.size() < clean.size() &&
           is_slice_name_char(clean[at + name.size()])) {
      at = clean.find(name, at + 1);
    }
    if (at == kNowhere) continue;
    const std::size_t begin = clean.rfind('\n', at) + 1;
    const std::string_view line =
        std::string_view(clean).substr(begin, clean.find('\n', at) - begin);
    const bool is_table = line.find(".visible") == kNowhere && line.find('{') != kNowhere &&
                          line.find('=') != kNowhere;
    const bool is_constant = line.find(".const ") != kNowhere;
    if (is_constant || !is_table) state.push_back({std::move(name), is_constant});
  }
  return state;
}

}  // namespace kernwright
