// Video instructions with all their types, parts, masks and joins against a reference that reads
// the instruction's own text.
#include "unit/sim/exec/exec_support.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>

using namespace kernwright::sim::testing;

namespace {

__extension__ using Wide = __int128;

const std::vector<std::uint64_t> kWords{0,          1,          0x7f,       0x80,
                                        0xff80,     0x8000,     0x12345678, 0x7fffffff,
                                        0x80000000, 0xfedcba98, 0xff00ff7f, 0xffffffff};
const std::vector<std::uint64_t> kThirds{0, 0x80017fff, 0xffffffff};

struct Form {
  std::string op;  ///< without the number of parts
  int parts = 1;
  bool d_signed = false, a_signed = false, b_signed = false, sat = false;
  std::string d_part, a_part, b_part;  ///< ".h1" or empty
  std::string second;                  ///< ".add", ".min", ".max"
  std::string more;                    ///< ".wrap", ".lt", ".shr7"
  bool a_minus = false, b_minus = false, c_minus = false, plus_one = false, has_c = true;

  static std::string type(bool is_signed) { return is_signed ? ".s32" : ".u32"; }
  std::string text() const {
    std::string t = op + (parts == 1 ? "" : std::to_string(parts));
    if (op != "vset") t += type(d_signed);
    t += type(a_signed) + (op == "vshl" || op == "vshr" ? ".u32" : type(b_signed));
    t += (plus_one ? ".po" : "") + std::string(sat ? ".sat" : "") + more + second;
    t += " %d" + d_part + ", " + (a_minus ? "-" : "") + "%a" + a_part + ", " +
         (b_minus ? "-" : "") + "%b" + b_part;
    if (has_c) t += std::string(", ") + (c_minus ? "-" : "") + "%c";
    return t + ";";
  }
};

/// `width` bits of x from bit `at` on, as a number.
Wide field(std::uint64_t x, int at, int width, bool is_signed) {
  const std::uint64_t low = (x >> at) & ((std::uint64_t{1} << width) - 1);
  const bool negative = is_signed && (low >> (width - 1) & 1) != 0;
  return Wide{low} - (negative ? Wide{1} << width : Wide{0});
}

int width_of_part(const std::string& part) { return part.empty() ? 32 : part[1] == 'b' ? 8 : 16; }
Wide take(std::uint64_t x, const std::string& part, bool is_signed) {
  const int width = width_of_part(part);
  return field(x, part.empty() ? 0 : (part[2] - '0') * width, width, is_signed);
}

Wide clamp_to(Wide x, int width, bool is_signed) {
  const Wide top = (Wide{1} << (is_signed ? width - 1 : width)) - 1;
  return std::clamp(x, is_signed ? -top - 1 : Wide{0}, top);
}

Wide apply(const Form& form, Wide x, Wide y) {
  const std::string& op = form.op;
  if (op == "vadd") return x + y;
  if (op == "vsub") return x - y;
  if (op == "vabsdiff") return x > y ? x - y : y - x;
  if (op == "vmin") return x < y ? x : y;
  if (op == "vmax") return x < y ? y : x;
  if (op == "vavrg") return (x + y + (x + y < 0 ? 0 : 1)) >> 1;
  if (op == "vset") {
    const std::string& c = form.more;
    return c == ".eq"   ? x == y
           : c == ".ne" ? x != y
           : c == ".lt" ? x < y
           : c == ".le" ? x <= y
           : c == ".gt" ? x > y
                        : x >= y;
  }
  const Wide count = form.more == ".wrap" ? y % 32 : std::min<Wide>(y, 32);
  return op == "vshl" ? x * (Wide{1} << static_cast<int>(count)) : x >> static_cast<int>(count);
}

std::uint64_t word_reference(const Form& form, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const bool b_signed = form.b_signed && form.op != "vshl" && form.op != "vshr";
  Wide x = apply(form, take(a, form.a_part, form.a_signed), take(b, form.b_part, b_signed));
  const int width = width_of_part(form.d_part);
  if (form.sat) x = clamp_to(x, width, form.d_signed);
  const auto value = static_cast<std::uint32_t>(x);
  const auto third = static_cast<std::uint32_t>(c);
  if (!form.d_part.empty()) {
    const int at = (form.d_part[2] - '0') * width;
    const std::uint32_t mask = ((1u << width) - 1) << at;
    return ((value << at) & mask) | (third & ~mask);
  }
  if (form.second.empty()) return value;
  if (form.second == ".add") return static_cast<std::uint32_t>(value + third);
  const Wide p = field(value, 0, 32, form.d_signed), q = field(third, 0, 32, form.d_signed);
  return static_cast<std::uint32_t>(form.second == ".min" ? std::min(p, q) : std::max(p, q));
}

std::uint64_t parts_reference(const Form& form, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const int n = form.parts, width = 32 / n;
  const auto lane = [&](const std::string& part, int i, int usual, bool is_signed) {
    // ".h32": the digit of part i counts from the end.
    const int from =
        part.empty() ? i + usual : part[part.size() - 1 - static_cast<unsigned>(i)] - '0';
    return field(from < n ? a : b, from % n * width, width, is_signed);
  };
  std::uint64_t result = 0, sum = c;
  for (int i = 0; i < n; ++i) {
    const bool written =
        form.d_part.empty() || form.d_part.find(static_cast<char>('0' + i)) != std::string::npos;
    const std::uint64_t mask = ((std::uint64_t{1} << width) - 1) << (i * width);
    if (!written) {
      result |= c & mask;
      continue;
    }
    Wide x =
        apply(form, lane(form.a_part, i, 0, form.a_signed), lane(form.b_part, i, n, form.b_signed));
    if (form.sat) x = clamp_to(x, width, form.d_signed);
    result |= (static_cast<std::uint64_t>(x) << (i * width)) & mask;
    sum += static_cast<std::uint64_t>(x);
  }
  return static_cast<std::uint32_t>(form.second.empty() ? result : sum);
}

std::uint64_t product_reference(const Form& form, std::uint64_t a, std::uint64_t b,
                                std::uint64_t c) {
  Wide x = take(a, form.a_part, form.a_signed) * take(b, form.b_part, form.b_signed);
  if (form.a_minus != form.b_minus) x = -x;
  const bool is_signed =
      form.a_signed || form.b_signed || form.a_minus != form.b_minus || form.c_minus;
  const Wide third = field(c, 0, 32, is_signed);
  x += form.c_minus ? -third : third;
  if (form.plus_one) x += 1;
  x >>= form.more.empty() ? 0 : form.more == ".shr7" ? 7 : 15;
  if (form.sat) x = clamp_to(x, 32, is_signed);
  return static_cast<std::uint32_t>(x);
}

std::uint64_t reference(const Form& form, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  if (form.op == "vmad") return product_reference(form, a, b, c);
  return form.parts == 1 ? word_reference(form, a, b, c) : parts_reference(form, a, b, c);
}

void check(const Form& form) {
  static const Table table = all_triples(kWords, kWords, kThirds);
  INFO(form.text());
  for (const unsigned block : {32u, 21u}) {
    const auto got = evaluate({form.text()}, table.a, table.b, table.c, block);
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::uint64_t want = reference(form, table.a[i], table.b[i], table.c[i]);
      if (got[i] == want || ++wrong > 2) continue;
      INFO("a=" << table.a[i] << " b=" << table.b[i] << " c=" << table.c[i]);
      CHECK(got[i] == want);
    }
    CHECK(wrong == 0);
  }
}

class Chooser {
 public:
  explicit Chooser(unsigned seed) : random_(seed) {}
  std::string of(const std::vector<std::string>& words) { return words[random_() % words.size()]; }
  bool flip() { return random_() % 2 == 0; }

 private:
  std::mt19937 random_;
};

const std::vector<std::string> kParts{"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
const std::vector<std::string> kOrders{".eq", ".ne", ".lt", ".le", ".gt", ".ge"};

/// Every combination of signs and saturation, the rest drawn.
void each_sign(const std::function<void(Form&)>& f) {
  for (int bits = 0; bits < 16; ++bits) {
    Form form;
    form.d_signed = (bits & 1) != 0;
    form.a_signed = (bits & 2) != 0;
    form.b_signed = (bits & 4) != 0;
    form.sat = (bits & 8) != 0;
    f(form);
  }
}

}  // namespace

TEST_CASE("video: instructions on words take parts, join and merge") {
  Chooser choose(11);
  for (const std::string op :
       {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"}) {
    each_sign([&](Form& form) {
      form.op = op;
      form.a_part = choose.of(kParts);
      form.b_part = choose.of(kParts);
      if (op == "vset") {
        form.d_signed = form.sat = false;
        form.more = choose.of(kOrders);
      }
      if (op == "vshl" || op == "vshr") form.more = choose.of({".clamp", ".wrap"});
      form.second = choose.of({"", ".add", ".min", ".max"});
      if (form.second.empty()) form.d_part = choose.of(kParts);
      form.has_c = !form.second.empty() || !form.d_part.empty();
      check(form);
    });
  }
}

TEST_CASE("video: vmad multiplies exactly, with signs, scale and saturation") {
  Chooser choose(12);
  each_sign([&](Form& form) {
    form.op = "vmad";
    form.a_part = choose.of(kParts);
    form.b_part = choose.of(kParts);
    form.more = choose.of({"", ".shr7", ".shr15"});
    form.plus_one = choose.flip();
    if (!form.plus_one) {
      // At most one of the product and c is negated.
      form.a_minus = choose.flip();
      form.c_minus = !form.a_minus && choose.flip();
    }
    check(form);
  });
}

TEST_CASE("video: instructions on halves and bytes take any parts of both words") {
  Chooser choose(13);
  for (const std::string op : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"}) {
    for (const int parts : {2, 4}) {
      each_sign([&](Form& form) {
        form.op = op;
        form.parts = parts;
        if (op == "vset") {
          form.d_signed = form.sat = false;
          form.more = choose.of(kOrders);
        }
        const bool two = parts == 2;
        form.a_part = choose.of(two ? std::vector<std::string>{"", ".h10", ".h03", ".h22"}
                                    : std::vector<std::string>{"", ".b3210", ".b0741", ".b5555"});
        form.b_part = choose.of(two ? std::vector<std::string>{"", ".h32", ".h11", ".h30"}
                                    : std::vector<std::string>{"", ".b7654", ".b1263", ".b0000"});
        form.d_part = choose.of(two ? std::vector<std::string>{"", ".h0", ".h1", ".h10"}
                                    : std::vector<std::string>{"", ".b20", ".b3210", ".b3"});
        if (!form.sat && choose.flip()) form.second = ".add";
        check(form);
      });
    }
  }
}

TEST_CASE("video: parts that do not exist are refused") {
  for (const std::string text :
       {"vadd.u32.u32.u32 %d, %a.b4, %b;", "vadd.u32.u32.u32 %d, %a.h2, %b;",
        "vadd.u32.u32.u32 %d.h0, %a, %b;", "vadd.u32.u32.u32.add %d.h0, %a, %b, %c;",
        "vadd.u32.u32.u32 %d, %a, %b, %c;", "vadd2.u32.u32.u32 %d, %a.h4, %b, %c;",
        "vadd2.u32.u32.u32 %d.h01, %a, %b, %c;", "vadd4.u32.u32.u32 %d, %a.b321, %b, %c;",
        "vadd4.u32.u32.u32 %d, %a, %b, %c.b3210;", "add.u32 %d, %a.h0, %b;",
        "vmad.u32.u32.u32 %d.h0, %a, %b, %c;"}) {
    CAPTURE(text);
    CHECK_THROWS(compile(kernel_for({text})));
  }
}
