// Damage to PTX texts that leaves many of them modules.
#include "fuzz/ptx_mutation.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace kernwright::fuzz {
namespace {

constexpr std::array<std::string_view, 26> kNumbers{"0",
                                                    "1",
                                                    "-1",
                                                    "2",
                                                    "4",
                                                    "7",
                                                    "8",
                                                    "16",
                                                    "31",
                                                    "32",
                                                    "63",
                                                    "64",
                                                    "255",
                                                    "256",
                                                    "4095",
                                                    "4096",
                                                    "65536",
                                                    "1048576",
                                                    "0x7fffffff",
                                                    "0x80000000",
                                                    "0xffffffff",
                                                    "0x100000000",
                                                    "0x7fffffffffffffff",
                                                    "0x8000000000000000",
                                                    "0xfffffffffffffff8",
                                                    "-8"};

constexpr std::array<std::string_view, 34> kSuffixes{".b8",       ".b16",
                                                     ".b32",      ".b64",
                                                     ".b128",     ".u8",
                                                     ".u32",      ".u64",
                                                     ".s32",      ".s64",
                                                     ".f16",      ".f16x2",
                                                     ".f32",      ".f64",
                                                     ".v2",       ".v4",
                                                     ".global",   ".shared",
                                                     ".local",    ".param",
                                                     ".const",    ".wide",
                                                     ".lo",       ".hi",
                                                     ".sat",      ".cc",
                                                     ".sync",     ".aligned",
                                                     ".relaxed",  ".gpu",
                                                     ".volatile", ".nc",
                                                     ".rn",       ".shared::cluster"};

constexpr std::array<std::string_view, 22> kLines{"ret;",
                                                  "exit;",
                                                  "trap;",
                                                  "bar.sync 0;",
                                                  "bar.warp.sync -1;",
                                                  "membar.gl;",
                                                  "{ .param .b64 z; st.param.b64 [z], 1; }",
                                                  "{ .param .align 8 .b8 z[64]; }",
                                                  "mov.u32 %r1, %tid.x;",
                                                  "mov.u64 %rd1, %clock64;",
                                                  "ld.param.u64 %rd1, [%rd2];",
                                                  "st.local.u32 [%r1], %r2;",
                                                  "st.shared.u32 [%r1+4], %r2;",
                                                  "ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r5];",
                                                  "atom.add.u32 %r1, [%rd1], 1;",
                                                  "atom.shared.cas.b32 %r1, [%r2], %r3, %r4;",
                                                  "cvta.to.global.u64 %rd1, %rd2;",
                                                  "cvta.param.u64 %rd1, %rd2;",
                                                  "shfl.sync.idx.b32 %r1, %r2, %r3, 31, -1;",
                                                  "activemask.b32 %r1;",
                                                  "nanosleep.u32 1;",
                                                  "alloca.u64 %rd1, 16;"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '%' || c == '$';
}

class Mutation {
 public:
  Mutation(std::string_view text, std::uint64_t seed) : random_(seed) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  std::string run() {
    const std::size_t changes = 1 + below(4);
    for (std::size_t i = 0; i < changes && !lines_.empty(); ++i) change();
    std::string text;
    for (const std::string& line : lines_) text.append(line).append(1, '\n');
    return text;
  }

 private:
  struct Word {
    std::size_t at = 0, length = 0;
  };

  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  static std::vector<Word> words_of(const std::string& line) {
    std::vector<Word> words;
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (!is_word(line[at])) continue;
      const std::size_t begin = at;
      while (at < line.size() && is_word(line[at])) ++at;
      words.push_back({begin, at - begin});
    }
    return words;
  }

  /// A word of a line near `line`, mostly, where registers have the same types.
  std::string some_word(std::size_t line) {
    const std::size_t from =
        below(3) == 0 ? below(lines_.size()) : std::min(lines_.size() - 1, line + below(8));
    const std::vector<Word> words = words_of(lines_[from]);
    if (words.empty()) return "0";
    const Word word = words[below(words.size())];
    return lines_[from].substr(word.at, word.length);
  }

  void change() {
    const std::size_t at = below(lines_.size()), other = below(lines_.size());
    switch (below(10)) {
      case 0:
        lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      case 1:
        lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at), std::string(lines_[other]));
        return;
      case 2:
        return std::swap(lines_[at], lines_[other]);
      case 3:
        lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at),
                      std::string(kLines[below(kLines.size())]));
        return;
      default:
        return change_line(at);
    }
  }

  void change_line(std::size_t index) {
    std::string& line = lines_[index];
    const std::vector<Word> words = words_of(line);
    if (words.empty()) return;
    const Word word = words[below(words.size())];
    switch (below(6)) {
      case 0:  // a number
        line.replace(word.at, word.length, kNumbers[below(kNumbers.size())]);
        return;
      case 1:  // an offset
        line.insert(word.at + word.length, "+" + std::string(kNumbers[below(kNumbers.size())]));
        return;
      case 2: {  // part of an opcode
        const std::string_view suffix = kSuffixes[below(kSuffixes.size())];
        const bool is_suffix = word.at != 0 && line[word.at - 1] == '.';
        line.replace(word.at, word.length, is_suffix ? suffix.substr(1) : suffix);
        return;
      }
      default: {  // another word
        const std::string with = some_word(index);
        line.replace(word.at, word.length, with);
        return;
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string mutate_ptx(std::string_view text, std::uint64_t seed) {
  return Mutation(text, seed).run();
}

}  // namespace kernwright::fuzz
