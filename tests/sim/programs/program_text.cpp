// The PTX of a random program.
#include "base/format.h"
#include "sim/programs/program_functions.h"
#include "sim/programs/random_program.h"

#include <string_view>

namespace kernwright::sim {
namespace {

using Kind = ProgramNode::Kind;

/// Instructions before those of the tree.
constexpr std::string_view kBegin = R"(.version 7.0
.target sm_80
.address_size 64
{functions}.visible .entry random_program(.param .u64 in, .param .u64 out) {{
.shared .align 16 .b8 exchange[512];
.shared .align 16 .b8 cells[{slot_bytes}];
.local .align 8 .b8 locals[{local_bytes}];
.reg .b32 %r<{registers}>; .reg .b64 %w<{wide}>;
.reg .b32 %t, %n, %i, %blk, %who, %old;
.reg .b64 %in, %at, %to, %by, %local, %cells, %global, %old64;
.reg .pred %first;
mov.u32 %blk, %ctaid.x;
mov.u32 %i, %tid.x;
mad.lo.u32 %t, %blk, {block}, %i;
ld.param.u64 %in, [in];
ld.param.u64 %to, [out];
add.s64 %cells, %to, {first_slot};
add.s64 %global, %to, {global_slot};
mad.wide.u32 %at, %t, {input_bytes}, %in;
mad.wide.u32 %to, %t, {output_bytes}, %to;
mov.u64 %local, locals;
mov.u32 %who, {full};
setp.ge.u32 %first, %i, 32;
@%first mov.u32 %who, {last};
setp.lt.u32 %first, %i, {slot_words};
shl.b32 %n, %i, 2;
mov.u32 %old, cells;
add.u32 %n, %n, %old;
@%first st.shared.b32 [%n], {slot_start};
bar.sync 0;
)";

/// The shared slots of the block go behind the threads' words.
constexpr std::string_view kEnd = R"(bar.sync 0;
@!%first ret;
ld.shared.b32 %old, [%n];
mad.wide.u32 %by, %blk, {slot_bytes}, %cells;
mad.wide.u32 %by, %i, 4, %by;
st.global.b32 [%by], %old;
ret;
}}
)";

/// Where and how nodes print: the register of the members, and where the loop around ends.
struct Place {
  ProgramContext context;
  std::string members;
  std::string loop_end;
};

class Printer {
 public:
  explicit Printer(const RandomProgram& program) : program_(program) {}

  void print(const ProgramNodes& nodes, const Place& place) {
    for (const ProgramNode& node : nodes) {
      if (place.context.runs(node, program_.block())) print(node, place);
    }
  }

  std::string text;

 private:
  static std::string reg(unsigned index) {
    return "%r" + std::to_string(index % RandomProgram::kRegisters);
  }
  static std::string wide(unsigned index) {
    return "%w" + std::to_string(index % RandomProgram::kWideRegisters);
  }

  /// Fills the marks of a text in.
  static std::string filled(std::string_view from, const ProgramNode& node,
                            const std::string& members = {}) {
    std::string result;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] != '$') {
        result += from[i];
        continue;
      }
      switch (from[++i]) {
        case 'd':
          result += reg(node.d);
          break;
        case 'a':
          result += reg(node.a);
          break;
        case 'b':
          result += reg(node.b);
          break;
        case 'c':
          result += reg(node.c);
          break;
        case 'D':
          result += wide(node.d);
          break;
        case 'A':
          result += wide(node.a);
          break;
        case 'B':
          result += wide(node.b);
          break;
        case 'C':
          result += wide(node.c);
          break;
        case 'i':
          result += std::to_string(node.immediate);
          break;
        case 'j':
          result += std::to_string(node.immediate & 0xff);
          break;
        case 's':
          result += std::to_string(node.immediate & 0x1f1f);
          break;
        case 'm':
          result += members;
          break;
        case 'o':
          result += node.masked ? "global" : "shared";
          break;
        default:
          result += node.masked ? "%global+" : "cells+";
          result += std::to_string(8 * node.number);
          break;
      }
    }
    return result;
  }
  void print(const ProgramNode& node, const Place& place) {
    switch (node.kind) {
      case Kind::operation:
        text += filled(operation(node.number).text, node) + "\n";
        break;
      case Kind::warp:
        text += filled(warp_operations()[node.number].text, node, place.members) + "\n";
        break;
      case Kind::atomic:
        text += filled(atomic_operations()[node.number].text, node) + "\n";
        break;
      case Kind::local:
        text += filled(
            "{ .reg .b64 p; .reg .b32 i; and.b32 i, $a, 7; mad.wide.u32 p, i, 4, %local;"
            " st.local.b32 [p], $b; and.b32 i, $c, 7; mad.wide.u32 p, i, 4, %local; "
            "ld.local.b32 $d, [p]; }\n",
            node);
        break;
      case Kind::gather:
        text += filled(
            "{ .reg .b64 p; .reg .b32 i; and.b32 i, $a, 255; mad.wide.u32 p, i, 4, %in; "
            "ld.global.nc.b32 $d, [p]; }\n",
            node);
        break;
      case Kind::call:
        text += filled(call(node.number), node) + "\n";
        break;
      case Kind::exchange:
        text += filled(exchange(node.number), node) + "\n";
        break;
      case Kind::leave:
        text += filled("{ .reg .pred q; ", node) + condition(node) + " @q bra " + place.loop_end +
                "; }\n";
        break;
      default:
        print_inner(node, place);
    }
  }

  static std::string condition(const ProgramNode& node) {
    return filled(conditions()[node.number].text, node);
  }

  static std::string call(unsigned number) {
    const std::string begin =
        "{ .param .b32 first; .param .b32 second; .param .b32 answer; st.param.b32 [first], $a; "
        "st.param.b32 [second], " +
        std::string(number == 0 ? "$b" : "$j") + "; ";
    const std::string end = " ld.param.b32 $d, [answer]; }";
    if (number < 2) {
      const std::string name = number == 0 ? "halve" : "descend";
      return begin + "call (answer), " + name + ", (first, second);" + end;
    }
    return "{ .reg .b64 p; .reg .b32 i; and.b32 i, $c, 1; mov.u64 p, functions; "
           "mad.wide.u32 p, i, 8, p; ld.global.u64 p, [p]; " +
           begin +
           "kind: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _); "
           "call (answer), p, (first, second), kind;" +
           end + " }";
  }

  static std::string exchange(unsigned number) {
    const std::string store =
        "{ .reg .b32 p, i; .reg .b16 h; .reg .b64 x, y; .reg .pred q; "
        "mov.u32 p, exchange; ";
    const std::string wait = " bar.sync 0; mov.u32 p, exchange; ", end = " bar.sync 0; }";
    switch (number % 5) {
      case 0:
        return store + "mad.lo.u32 p, %i, 4, p; st.shared.b32 [p], $a;" + wait +
               "and.b32 i, $b, 31; mad.lo.u32 p, i, 4, p; ld.shared.b32 $d, [p];" + end;
      case 1:
        return store + "mad.lo.u32 p, %i, 8, p; st.shared.v2.b32 [p], {$a, $b};" + wait +
               "and.b32 i, $c, 127; mad.lo.u32 p, i, 2, p; ld.shared.u16 h, [p]; "
               "cvt.u32.u16 $d, h;" +
               end;
      case 2:
        return store + "add.u32 p, %i, p; st.shared.u8 [p], $a;" + wait +
               "and.b32 i, $b, 7; mad.lo.u32 p, i, 4, p; ld.shared.b32 $d, [p];" + end;
      case 3:
        return store + "mad.lo.u32 p, %i, 8, p; st.shared.b64 [p], $A;" + wait +
               "and.b32 i, $b, 15; mad.lo.u32 p, i, 16, p; ld.shared.v2.b64 {x, y}, [p]; "
               "sub.u64 $D, x, y;" +
               end;
      default:
        break;
    }
    if (number < 5) return store + "setp.lt.u32 q, $a, $b; bar.red.popc.u32 $d, 0, q; }";
    return store + "setp.lt.u32 q, $a, $b; bar.red." + (number < 10 ? "and" : "or") +
           ".pred q, 0, q; selp.b32 $d, $a, $b, q; }";
  }

  void print_inner(const ProgramNode& node, const Place& place) {
    const std::string label = "L" + std::to_string(labels_++);
    Place within{place.context.inside(node), place.members, place.loop_end};
    switch (node.kind) {
      case Kind::branch: {
        const bool masked = within.context.members;
        const std::string members = "%m_" + label, q = "%q_" + label;
        text += ".reg .pred " + q + "; { .reg .pred q; " + condition(node) + " mov.pred " + q +
                ", q; }\n";
        if (masked) {
          text += ".reg .b32 " + members + ";\n" + "vote.sync.ballot.b32 " + members + ", " + q +
                  ", " + place.members + ";\n";
        }
        text += "@!" + q + " bra " + label + "_else;\n";
        within.members = members;
        print(node.bodies[0], within);
        text += "bra " + label + "_end;\n" + label + "_else:\n";
        if (masked) text += "xor.b32 " + members + ", " + members + ", " + place.members + ";\n";
        print(node.bodies[1], within);
        text += label + "_end:\n";
        break;
      }
      case Kind::uniform_branch:
        text += "{ .reg .pred q; .reg .b32 x; and.b32 x, %blk, 1; setp.eq.u32 q, x, 0; @!q bra " +
                label + "_else; }\n";
        print(node.bodies[0], within);
        text += "bra " + label + "_end;\n" + label + "_else:\n";
        print(node.bodies[1], within);
        text += label + "_end:\n";
        break;
      case Kind::choice:
        print_choice(node, label, within);
        break;
      default:
        print_loop(node, label, within);
    }
  }

  void print_choice(const ProgramNode& node, const std::string& label, const Place& within) {
    const std::string index = "%i_" + label;
    text += ".reg .b32 " + index + ";\n" + filled("and.b32 " + index + ", $a, 3;\n", node) + label +
            "_targets: .branchtargets ";
    for (std::size_t i = 0; i < node.bodies.size(); ++i)
      text += (i == 0 ? "" : ", ") + label + "_" + std::to_string(i);
    text += ";\nbrx.idx " + index + ", " + label + "_targets;\n";
    for (std::size_t i = 0; i < node.bodies.size(); ++i) {
      text += label + "_" + std::to_string(i) + ":\n";
      print(node.bodies[i], within);
      text += "bra " + label + "_end;\n";
    }
    text += label + "_end:\n";
  }

  void print_loop(const ProgramNode& node, const std::string& label, Place within) {
    const std::string counter = "%c_" + label, done = "%p_" + label;
    within.loop_end = label + "_end";
    text += ".reg .b32 " + counter + "; .reg .pred " + done + ";\n";
    if (node.kind == Kind::until) {
      text += "mov.b32 " + counter + ", 5;\n" + label + ":\n";
      print(node.bodies[0], within);
      text += "sub.u32 " + counter + ", " + counter + ", 1;\nsetp.eq.u32 " + done + ", " + counter +
              ", 0;\n@" + done + " bra " + label + "_end;\n{ .reg .pred q; " + condition(node) +
              " @!q bra " + label + "; }\n" + label + "_end:\n";
      return;
    }
    text += node.kind == Kind::loop ? filled("and.b32 " + counter + ", $a, 7;\n", node)
                                    : filled("mov.b32 " + counter + ", $i;\n", node);
    text += label + ":\nsetp.eq.u32 " + done + ", " + counter + ", 0;\n@" + done + " bra " + label +
            "_end;\nsub.u32 " + counter + ", " + counter + ", 1;\n";
    print(node.bodies[0], within);
    text += "bra " + label + ";\n" + label + "_end:\n";
  }

  const RandomProgram& program_;
  unsigned labels_ = 0;
};

}  // namespace

std::string RandomProgram::ptx() const {
  const unsigned last = block() > 32 ? block() - 32 : block();
  const std::size_t slot_bytes = 4 * slot_words();
  std::string text =
      format(fmt::runtime(kBegin), fmt::arg("functions", kFunctionText),
             fmt::arg("slot_bytes", slot_bytes), fmt::arg("local_bytes", 4 * kLocals),
             fmt::arg("registers", kRegisters), fmt::arg("wide", kWideRegisters),
             fmt::arg("block", block()), fmt::arg("first_slot", 4 * first_slot()),
             fmt::arg("global_slot", 4 * (first_slot() + grid() * slot_words())),
             fmt::arg("input_bytes", 4 * kInputs), fmt::arg("output_bytes", 4 * kOutputs),
             fmt::arg("full", ~0u), fmt::arg("last", last == 32 ? ~0u : (1u << last) - 1),
             fmt::arg("slot_words", slot_words()), fmt::arg("slot_start", Word32{kSlotStart}));
  for (unsigned i = 0; i < kLocals; ++i)
    text += format("st.local.b32 [%local+{}], {};\n", 4 * i, i);
  for (unsigned i = 0; i < kInputs; ++i) {
    text += format("ld.global.u32 %r{0}, [%at+{1}];\nxor.b32 %r{2}, %r{0}, 0x5a5a5a5a;\n", i, 4 * i,
                   i + kInputs);
  }
  for (unsigned i = 0; i < kWideRegisters; ++i)
    text += format("mov.b64 %w{}, {{%r{}, %r{}}};\n", i, 2 * i, 2 * i + 1);
  Printer printer(*this);
  printer.print(body_, {{}, "%who", ""});
  text += printer.text;
  for (unsigned i = 0; i < kRegisters; ++i)
    text += format("st.global.b32 [%to+{}], %r{};\n", 4 * i, i);
  for (unsigned i = 0; i < kWideRegisters; ++i)
    text += format("st.global.b64 [%to+{}], %w{};\n", 4 * kRegisters + 8 * i, i);
  return text + format(fmt::runtime(kEnd), fmt::arg("slot_bytes", slot_bytes));
}

}  // namespace kernwright::sim
