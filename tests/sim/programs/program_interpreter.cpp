// The interpreter of random programs: a block's threads go through the tree together, as far as
// they take the same way.
#include "sim/programs/program_interpreter.h"

#include "sim/programs/program_functions.h"

#include <array>
#include <bit>
#include <cstring>

namespace kernwright::sim {
namespace {

using Kind = ProgramNode::Kind;

/// A bit for each thread of a block.
using Threads = Word64;

struct Thread {
  std::array<Word32, RandomProgram::kRegisters> r{};
  std::array<Word64, RandomProgram::kWideRegisters> w{};
  std::array<Word32, RandomProgram::kLocals> local{};
};

using Slots = std::vector<Word64>;

class Block {
 public:
  Block(const RandomProgram& program, const std::vector<Word32>& input, unsigned index,
        Slots& global, int broken)
      : program_(program),
        input_(input),
        index_(index),
        threads_(program.block()),
        slots_(global.size(), Word64{RandomProgram::kSlotStart} << 32 | RandomProgram::kSlotStart),
        global_(global),
        broken_(broken) {
    for (unsigned t = 0; t < threads_.size(); ++t) {
      Thread& thread = threads_[t];
      const std::size_t first = std::size_t{index * program.block() + t} * RandomProgram::kInputs;
      for (unsigned i = 0; i < RandomProgram::kInputs; ++i) {
        thread.r[i] = input[first + i];
        thread.r[i + RandomProgram::kInputs] = thread.r[i] ^ 0x5a5a5a5a;
      }
      for (unsigned i = 0; i < RandomProgram::kWideRegisters; ++i)
        thread.w[i] = Word64{thread.r[2 * i + 1]} << 32 | thread.r[2 * i];
      for (unsigned i = 0; i < RandomProgram::kLocals; ++i) thread.local[i] = i;
    }
  }

  void run() {
    const Threads all = threads_.size() == 64 ? ~Threads{0} : (Threads{1} << threads_.size()) - 1;
    Threads left = 0;
    run(program_.body(), all, left, {});
  }

  const std::vector<Thread>& threads() const { return threads_; }
  const Slots& slots() const { return slots_; }

 private:
  template <typename F>
  void each(Threads threads, F visit) {
    for (; threads != 0; threads &= threads - 1)
      visit(threads_[static_cast<std::size_t>(std::countr_zero(threads))]);
  }
  Word32& narrow(Thread& thread, unsigned i) const {
    return thread.r[i % RandomProgram::kRegisters];
  }
  Word64& wide(Thread& thread, unsigned i) const {
    return thread.w[i % RandomProgram::kWideRegisters];
  }

  Threads holds(const ProgramNode& node, Threads threads) {
    Threads result = 0;
    for (unsigned t = 0; t < threads_.size(); ++t) {
      if ((threads >> t & 1) == 0) continue;
      const bool yes =
          conditions()[node.number].holds(narrow(threads_[t], node.a), narrow(threads_[t], node.b));
      result |= Threads{yes} << t;
    }
    return result;
  }

  /// `left` gathers who leaves the loop around these nodes.
  void run(const ProgramNodes& nodes, Threads threads, Threads& left, ProgramContext context) {
    for (const ProgramNode& node : nodes) {
      const Threads here = threads & ~left;
      if (here == 0) return;
      if (context.runs(node, program_.block())) run(node, here, left, context);
    }
  }

  void run(const ProgramNode& node, Threads here, Threads& left, ProgramContext context) {
    const ProgramContext within = context.inside(node);
    switch (node.kind) {
      case Kind::operation:
        each(here, [&](Thread& thread) { compute(node, thread); });
        break;
      case Kind::branch: {
        const Threads yes = holds(node, here);
        run(node.bodies[0], yes, left, within);
        run(node.bodies[1], here & ~yes, left, within);
        break;
      }
      case Kind::uniform_branch:
        run(node.bodies[index_ & 1], here, left, within);
        break;
      case Kind::choice: {
        const std::array<Threads, 4> chosen = choose(node, here);
        for (std::size_t i = 0; i < chosen.size(); ++i)
          run(node.bodies[i], chosen[i], left, within);
        break;
      }
      case Kind::loop:
      case Kind::uniform_loop:
      case Kind::until:
        run_loop(node, here, within);
        break;
      case Kind::leave:
        left |= holds(node, here);
        break;
      case Kind::warp:
        run_warp(node, here);
        break;
      case Kind::exchange:
        exchange(node);
        break;
      case Kind::atomic:
        each(here, [&](Thread& thread) { apply(node, thread); });
        break;
      case Kind::local:
        each(here, [&](Thread& thread) {
          thread.local[narrow(thread, node.a) & 7] = narrow(thread, node.b);
          narrow(thread, node.d) = thread.local[narrow(thread, node.c) & 7];
        });
        break;
      case Kind::gather:
        each(here, [&](Thread& thread) {
          narrow(thread, node.d) = input_[narrow(thread, node.a) & 255];
        });
        break;
      case Kind::call:
        each(here, [&](Thread& thread) {
          const Word32 which = node.number < 2 ? node.number : narrow(thread, node.c) & 1;
          const Word32 second = node.number == 0 ? narrow(thread, node.b) : node.immediate & 0xff;
          narrow(thread, node.d) = (which == 0 ? halve : descend)(narrow(thread, node.a), second);
        });
        break;
    }
  }

  std::array<Threads, 4> choose(const ProgramNode& node, Threads here) {
    std::array<Threads, 4> result{};
    for (unsigned t = 0; t < threads_.size(); ++t)
      result[narrow(threads_[t], node.a) & 3] |= here & Threads{1} << t;
    return result;
  }

  void run_loop(const ProgramNode& node, Threads here, ProgramContext within) {
    Threads left = 0;
    if (node.kind == Kind::until) {
      for (int i = 0; i < 5 && here != 0; ++i) {
        run(node.bodies[0], here, left, within);
        here &= ~left;
        here &= ~holds(node, here);
      }
      return;
    }
    // The register may change within the loop: threads count on their own.
    std::array<Word32, 64> count{};
    for (unsigned t = 0; t < threads_.size(); ++t)
      count[t] = node.kind == Kind::loop ? narrow(threads_[t], node.a) & 7 : node.immediate;
    for (Word32 i = 0; here != 0; ++i) {
      for (unsigned t = 0; t < threads_.size(); ++t) {
        if (count[t] <= i) here &= ~(Threads{1} << t);
      }
      run(node.bodies[0], here, left, within);
      here &= ~left;
    }
  }

  void compute(const ProgramNode& node, Thread& thread) const {
    const Operation& op = operation(node.number);
    const auto value = [&](char letter, unsigned index) -> Word64 {
      const bool is_wide = op.has(static_cast<char>(letter - 'a' + 'A'));
      return is_wide ? wide(thread, index) : narrow(thread, index);
    };
    const Word64 a = value('a', node.a), b = value('b', node.b);
    const Word64 c = op.has('i')   ? node.immediate
                     : op.has('j') ? node.immediate & 0xff
                                   : value('c', node.c);
    const auto low = [](Word64 x) { return static_cast<Word32>(x); };
    Word64 result = op.narrow != nullptr ? op.narrow(low(a), low(b), low(c)) : op.wide(a, b, c);
    if (static_cast<int>(node.number) == broken_) result = ~result;
    if (op.has('D')) {
      wide(thread, node.d) = result;
    } else {
      narrow(thread, node.d) = low(result);
    }
  }

  void apply(const ProgramNode& node, Thread& thread) {
    const AtomicOperation& op = atomic_operations()[node.number];
    Word64& slot = (node.masked ? global_ : slots_)[node.number];
    if (op.wide) {
      slot = op.apply(slot, wide(thread, node.a));
    } else {
      const Word64 low = op.apply(slot & 0xffffffff, narrow(thread, node.a)) & 0xffffffff;
      slot = slot >> 32 << 32 | low;
    }
  }

  void run_warp(const ProgramNode& node, Threads here) {
    for (std::size_t first = 0; first < threads_.size(); first += 32) {
      const auto members = static_cast<Word32>(here >> first);
      if (members == 0) continue;
      std::array<Word32, 32> a{}, b{}, d{};
      for (std::size_t lane = 0; lane < 32 && first + lane < threads_.size(); ++lane) {
        a[lane] = narrow(threads_[first + lane], node.a);
        b[lane] = narrow(threads_[first + lane], node.b);
      }
      const WarpOperation& op = warp_operations()[node.number];
      op.compute(a.data(), b.data(), node.immediate & 0x1f1f, members, d.data());
      for (std::size_t lane = 0; lane < 32; ++lane) {
        if ((members >> lane & 1) != 0) narrow(threads_[first + lane], node.d) = d[lane];
      }
    }
  }

  /// All threads store, then all load.
  void exchange(const ProgramNode& node) {
    std::array<std::uint8_t, 512> memory{};
    const auto put = [&](std::size_t at, auto value) {
      std::memcpy(memory.data() + at, &value, sizeof value);
    };
    const auto get = [&]<typename T>(std::size_t at, T value) {
      std::memcpy(&value, memory.data() + at, sizeof value);
      return value;
    };
    const unsigned way = node.number % 5;
    unsigned less = 0;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      Thread& thread = threads_[t];
      const Word32 a = narrow(thread, node.a), b = narrow(thread, node.b);
      if (way == 0) put(4 * t, a);
      if (way == 1) put(8 * t, Word64{b} << 32 | a);
      if (way == 2) put(t, static_cast<std::uint8_t>(a));
      if (way == 3) put(8 * t, wide(thread, node.a));
      less += a < b ? 1 : 0;
    }
    for (Thread& thread : threads_) {
      const Word32 a = narrow(thread, node.a), b = narrow(thread, node.b);
      Word32& d = narrow(thread, node.d);
      if (way == 0) d = get(std::size_t{b & 31} * 4, Word32{});
      if (way == 1) d = get(std::size_t{narrow(thread, node.c) & 127} * 2, std::uint16_t{});
      if (way == 2) d = get(std::size_t{b & 7} * 4, Word32{});
      if (way == 3) {
        const std::size_t at = std::size_t{b & 15} * 16;
        wide(thread, node.d) = get(at, Word64{}) - get(at + 8, Word64{});
      }
      if (way == 4 && node.number < 5) d = less;
      if (way == 4 && node.number >= 5)
        d = (node.number < 10 ? less == threads_.size() : less != 0) ? a : b;
    }
  }

  const RandomProgram& program_;
  const std::vector<Word32>& input_;
  unsigned index_;
  std::vector<Thread> threads_;
  Slots slots_;
  Slots& global_;
  int broken_;
};

}  // namespace

std::vector<Word32> interpret(const RandomProgram& program, int broken) {
  const std::vector<Word32> input = program.input();
  std::vector<Word32> result, tail;
  const auto append = [](std::vector<Word32>& to, Word64 word) {
    to.push_back(static_cast<Word32>(word));
    to.push_back(static_cast<Word32>(word >> 32));
  };
  Slots global(atomic_operations().size());
  for (unsigned i = 0; i < program.grid(); ++i) {
    Block block(program, input, i, global, broken);
    block.run();
    for (const Thread& thread : block.threads()) {
      result.insert(result.end(), thread.r.begin(), thread.r.end());
      for (const Word64 word : thread.w) append(result, word);
    }
    for (const Word64 slot : block.slots()) append(tail, slot);
  }
  for (const Word64 slot : global) append(tail, slot);
  result.insert(result.end(), tail.begin(), tail.end());
  return result;
}

}  // namespace kernwright::sim
