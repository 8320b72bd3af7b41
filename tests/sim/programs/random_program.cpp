// Makes random programs and their input.
#include "sim/programs/random_program.h"

#include <iterator>

namespace kernwright::sim {
namespace {

using Kind = ProgramNode::Kind;

constexpr Word32 kEdges[] = {0,          1,          2,          31,         32,         0x7f,
                             0x80,       0xffff,     0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000,
                             0xbf800000, 0x00000001, 0x00800000, 0x7f7fffff, 0x7f800000, 0xff800000,
                             0x7fc00000, 0x4f000000, 0xcf000000, 0x12345678, 0x3c003c00, 0x7bfffbff,
                             0x3ff00000, 0xc0000000, 0x00018001, 0x7ff00000};

class Maker {
 public:
  Maker(Word64 seed, unsigned block) : random_(seed), block_(block) {}

  ProgramNodes body(int depth, unsigned length, ProgramContext context) {
    ProgramNodes nodes;
    while (nodes.size() < length) {
      ProgramNode node = leaf(context);
      if (depth < 3 && random_.below(9) < 2) node = inner(depth, context);
      if (context.runs(node, block_)) nodes.push_back(std::move(node));
    }
    return nodes;
  }

 private:
  ProgramNode leaf(ProgramContext context) {
    ProgramNode node;
    node.d = random_.below(RandomProgram::kRegisters);
    node.a = random_.below(RandomProgram::kRegisters);
    node.b = random_.below(RandomProgram::kRegisters);
    node.c = random_.below(RandomProgram::kRegisters);
    node.immediate = number();
    node.masked = random_.below(2) == 0;
    const unsigned dice = random_.below(100);
    const auto become = [&](Kind kind, std::size_t choices) {
      node.kind = kind;
      node.number = random_.below(static_cast<unsigned>(choices));
    };
    if (dice < 6 && context.members) {
      become(Kind::warp, warp_operations().size());
    } else if (dice < 9 && context.members) {
      become(Kind::exchange, 15);
    } else if (dice < 13) {
      become(Kind::atomic, atomic_operations().size());
    } else if (dice < 15) {
      become(Kind::local, 1);
    } else if (dice < 17) {
      become(Kind::gather, 1);
    } else if (dice < 19) {
      become(Kind::call, 3);
    } else if (dice < 21 && context.may_leave) {
      become(Kind::leave, conditions().size());
    } else {
      become(Kind::operation, operation_count());
      if (node.a == node.b && operation(node.number).is_extremum())
        node.b = (node.b + 1) % RandomProgram::kRegisters;
    }
    return node;
  }

  ProgramNode inner(int depth, ProgramContext context) {
    ProgramNode node = leaf(context);
    constexpr Kind kKinds[] = {Kind::branch,       Kind::branch, Kind::uniform_branch, Kind::loop,
                               Kind::uniform_loop, Kind::until,  Kind::choice};
    node.kind = kKinds[random_.below(std::size(kKinds))];
    node.number = random_.below(static_cast<unsigned>(conditions().size()));
    if (node.kind == Kind::uniform_loop) node.immediate = 1 + random_.below(3);
    const ProgramContext within = context.inside(node);
    if (node.kind == Kind::choice) {
      for (int i = 0; i < 4; ++i) node.bodies.push_back(body(depth + 1, random_.below(3), within));
      return node;
    }
    node.bodies.push_back(body(depth + 1, 2 + random_.below(5), within));
    const bool branches = node.kind == Kind::branch || node.kind == Kind::uniform_branch;
    if (branches) node.bodies.push_back(body(depth + 1, random_.below(2) * 3, within));
    return node;
  }

  Word32 number() {
    return random_.below(2) == 0 ? kEdges[random_.below(std::size(kEdges))]
                                 : static_cast<Word32>(random_.next());
  }

  RandomWords random_;
  unsigned block_;
};

}  // namespace

std::size_t ProgramNode::size() const {
  std::size_t sum = 1;
  for (const ProgramNodes& nodes : bodies) {
    for (const ProgramNode& node : nodes) sum += node.size();
  }
  return sum;
}

ProgramContext ProgramContext::inside(const ProgramNode& node) const {
  switch (node.kind) {
    case Kind::branch:
      return {false, node.masked && members, may_leave};
    case Kind::uniform_branch:
      return *this;
    case Kind::uniform_loop:
      return members ? ProgramContext{all, true, false} : ProgramContext{false, false, true};
    case Kind::loop:
    case Kind::until:
      return {false, false, true};
    default:
      return {false, false, may_leave};
  }
}

bool ProgramContext::runs(const ProgramNode& node, unsigned block) const {
  switch (node.kind) {
    case Kind::leave:
      return may_leave;
    case Kind::warp:
      return members && (!warp_operations()[node.number].needs_all || (all && block % 32 == 0));
    case Kind::exchange:
      return all;
    default:
      return true;
  }
}

RandomProgram::RandomProgram(std::uint64_t seed) : seed_(seed) {
  body_ = Maker(seed, block()).body(0, seed % 10 == 0 ? 12 : 28, {});
}

std::size_t RandomProgram::size() const {
  std::size_t sum = 0;
  for (const ProgramNode& node : body_) sum += node.size();
  return sum;
}

std::vector<Word32> RandomProgram::input() const {
  RandomWords random(seed_ ^ 0x1234567);
  std::vector<Word32> values(std::size_t{threads()} * kInputs);
  for (Word32& value : values) {
    value = random.below(2) == 0 ? kEdges[random.below(std::size(kEdges))]
                                 : static_cast<Word32>(random.next());
  }
  return values;
}

}  // namespace kernwright::sim
