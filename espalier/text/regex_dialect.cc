#include "espalier/text/regex_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "espalier/base/utf8.h"
#include "espalier/text/regex_classes.h"

namespace espalier::text {
namespace {

constexpr std::array<std::pair<char, const char*>, 7> kControlEscapes = {{{'t', "\\x09"},
                                                                          {'n', "\\x0a"},
                                                                          {'v', "\\x0b"},
                                                                          {'f', "\\x0c"},
                                                                          {'r', "\\x0d"},
                                                                          {'a', "\\x07"},
                                                                          {'e', "\\x1b"}}};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}
  Result<std::string> run();

 private:
  struct Group {
    size_t out_begin = 0;
    std::string closers;  // of options that run to the end of the group
  };
  // One character class: flat items, and what can only be written as an alternative of its own.
  struct Class {
    std::string items;
    std::vector<std::string> alternatives;
  };

  bool at_end() const { return at_ >= pattern_.size(); }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  Error unsupported(const std::string& what) const {
    return Error{.what = fmt::format("a pattern of the tokenizer uses {} at byte {}", what, at_),
                 .expected = "the part of Oniguruma's dialect that tokenizers use",
                 .actual = replace_invalid_utf8(pattern_.substr(0, 200)),
                 .fix = "Use a tokenizer without this construct."};
  }
  void atom(std::string_view text) {
    atom_begin_ = out_.size();
    out_ += text;
    quantified_ = false;
  }
  void wrap_atom() {
    out_.insert(*atom_begin_, "(?:");
    out_ += ')';
  }

  Status element();
  Status group();
  Status group_options();
  Status close_group();
  Status escape();
  Result<bool> quantifier();
  Result<std::optional<std::string>> interval();
  Result<CharacterSet> property(bool negated);
  Result<std::optional<CharacterSet>> set_escape(char letter);
  Result<std::string> code_point_escape(char letter);
  Result<std::string> character_class(int depth);
  Status class_element(Class& current, int depth);
  Result<std::string> class_literal();
  static std::string write_class(const Class& parts, bool negated);

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
  std::vector<Group> groups_ = {Group{}};
  std::optional<size_t> atom_begin_;  // what a quantifier applies to
  bool quantified_ = false;           // the atom already has a quantifier
};

// Any character but those that a pattern of one character matches.
std::string none_of(const std::string& pattern) { return fmt::format("(?:(?!{})(?s:.))", pattern); }

std::string escaped_literal(std::string_view character) {
  const bool special =
      character.size() == 1 && std::ispunct(static_cast<unsigned char>(character[0]));
  return fmt::format("{}{}", special ? "\\" : "", character);
}

Result<std::string> Translator::run() {
  while (!at_end()) {
    ASSIGN_OR_RETURN(const bool quantified, quantifier());
    if (!quantified) RETURN_IF_ERROR(element());
  }
  if (groups_.size() != 1) return unsupported("an unclosed group");
  return out_ + groups_[0].closers;
}

Status Translator::element() {
  switch (peek()) {
    case '\\':
      return escape();
    case '(':
      return group();
    case ')':
      return close_group();
    case '[': {
      ASSIGN_OR_RETURN(const std::string text, character_class(0));
      atom(text);
      return Ok{};
    }
    case '|':
      ++at_;
      out_ += '|';
      atom_begin_.reset();
      return Ok{};
    case '.':
      ++at_;
      atom(".");
      return Ok{};
    case '^':
    case '$':
      atom(fmt::format("(?m:{})", pattern_[at_++]));
      return Ok{};
    default: {
      const std::string_view character = pattern_.substr(at_, character_at(pattern_, at_).size);
      at_ += character.size();
      atom(character == "#" ? "#" : escaped_literal(character));  // '#' may begin a comment: (?x)
      return Ok{};
    }
  }
}

Status Translator::group() {
  static constexpr std::string_view kOpenings[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
  for (const std::string_view opening : kOpenings) {
    if (!take(opening)) continue;
    groups_.push_back({out_.size(), ""});
    out_ += opening;
    atom_begin_.reset();
    return Ok{};
  }
  if (take("(?#")) {
    while (!at_end() && peek() != ')') at_ += peek() == '\\' ? 2 : 1;
    if (!take(")")) return unsupported("an unclosed comment");
    return Ok{};
  }
  if (peek(1) == '*') return unsupported("a callout");
  if (peek(1) == '?' && peek(2) != '<') return group_options();
  groups_.push_back({out_.size(), ""});
  if (take("(?<")) {
    const size_t end = pattern_.find('>', at_);
    if (end == std::string_view::npos) return unsupported("an unclosed group name");
    at_ = end + 1;
  } else {
    ++at_;
  }
  out_ += '(';
  atom_begin_.reset();
  return Ok{};
}

// (?imx-imx) runs to the end of the enclosing group, over its alternatives; (?imx-imx: ) is a
// group.
Status Translator::group_options() {
  at_ += 2;
  std::string options = "(?";
  for (; peek() != ')' && peek() != ':'; ++at_) {
    switch (peek()) {
      case 'i':
      case 'x':
      case '-':
        options += peek();
        break;
      case 'm':  // the dot matches newlines: PCRE2's s
        options += 's';
        break;
      default:
        return unsupported("an unknown group option");
    }
  }
  options += ':';
  if (pattern_[at_++] == ':') {
    groups_.push_back({out_.size(), ""});
  } else {
    groups_.back().closers += ')';
  }
  out_ += options;
  atom_begin_.reset();
  return Ok{};
}

Status Translator::close_group() {
  if (groups_.size() == 1) return unsupported("an unmatched ')'");
  ++at_;
  out_ += groups_.back().closers;
  out_ += ')';
  atom_begin_ = groups_.back().out_begin;
  quantified_ = false;
  groups_.pop_back();
  return Ok{};
}

// {n}, {n,}, {,m} or {n,m} in PCRE2's form, or nothing where the brace is a literal.
Result<std::optional<std::string>> Translator::interval() {
  constexpr long kRepeatLimit = 65535;  // PCRE2's
  size_t i = at_ + 1;
  const auto number = [&]() -> std::optional<long> {
    const size_t begin = i;
    while (i < pattern_.size() && pattern_[i] >= '0' && pattern_[i] <= '9') ++i;
    if (i == begin) return std::nullopt;
    return i - begin > 6 ? kRepeatLimit + 1
                         : std::stol(std::string(pattern_.substr(begin, i - begin)));
  };
  const std::optional<long> low = number();
  const bool exact = i < pattern_.size() && pattern_[i] == '}';
  std::optional<long> high = low;
  if (!exact) {
    if (i >= pattern_.size() || pattern_[i] != ',') return std::optional<std::string>();
    ++i;
    high = number();
    if (i >= pattern_.size() || pattern_[i] != '}') return std::optional<std::string>();
  }
  if (!low && !high) return std::optional<std::string>();
  if (std::max(low.value_or(0), high.value_or(0)) > kRepeatLimit ||
      (high && *high < low.value_or(0))) {
    return unsupported("a repeat interval out of range");
  }
  at_ = i + 1;
  if (exact) return std::optional(fmt::format("{{{}}}", *low));
  return std::optional(
      fmt::format("{{{},{}}}", low.value_or(0), high ? std::to_string(*high) : ""));
}

// Oniguruma repeats what is already repeated, has no possessive intervals, and reads {n}? as
// optional.
Result<bool> Translator::quantifier() {
  std::string text;
  bool is_interval = false;
  if (peek() == '*' || peek() == '+' || peek() == '?') {
    text = pattern_[at_++];
  } else if (peek() == '{') {
    ASSIGN_OR_RETURN(const std::optional<std::string> found, interval());
    if (!found) return false;
    text = *found;
    is_interval = true;
  } else {
    return false;
  }
  if (!atom_begin_) return unsupported("a repeat of nothing");
  const bool takes_lazy = !is_interval || text.find(',') != std::string::npos;
  if (takes_lazy && take("?")) {
    text += '?';
  } else if (!is_interval && take("+")) {
    text += '+';
  }
  if (quantified_) wrap_atom();
  out_ += text;
  quantified_ = true;
  return true;
}

Result<CharacterSet> Translator::property(bool negated) {
  const size_t end = pattern_.find('}', at_);
  if (end == std::string_view::npos) return unsupported("an unclosed property");
  std::string name;
  for (const char c : pattern_.substr(at_ + 1, end - at_ - 1)) {
    if (c == '^' && name.empty()) {
      negated = !negated;
    } else if (std::isalnum(static_cast<unsigned char>(c))) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c != '_' && c != '-' && c != ' ') {
      return unsupported("an unknown property");
    }
  }
  const CharacterSet set = property_set(name);
  at_ = end + 1;
  return negated ? inverted(set) : set;
}

// \d \s \w \h, their complements, and \p{..}; nothing for other letters. `at_` stands after the
// letter.
Result<std::optional<CharacterSet>> Translator::set_escape(char letter) {
  if (letter == 'p' || letter == 'P') {
    if (peek() != '{') return std::optional<CharacterSet>();
    ASSIGN_OR_RETURN(const CharacterSet set, property(letter == 'P'));
    return std::optional(set);
  }
  if (const auto set = lettered_set(letter)) return set;
  const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const std::optional<CharacterSet> set = lettered_set(lower);
  return set ? std::optional(inverted(*set)) : std::nullopt;
}

// The character that \xHH, \x{H..}, \uHHHH, \0oo or a control escape names, in PCRE2's form; empty
// for others.
Result<std::string> Translator::code_point_escape(char letter) {
  for (const auto& [name, text] : kControlEscapes) {
    if (letter == name) return std::string(text);
  }
  const auto digits = [&](size_t limit, int (*is_digit)(int)) {
    const size_t begin = at_;
    while (at_ - begin < limit && is_digit(static_cast<unsigned char>(peek())) != 0) ++at_;
    return std::string(pattern_.substr(begin, at_ - begin));
  };
  const auto is_octal = [](int c) { return static_cast<int>(c >= '0' && c <= '7'); };
  if (letter == '0') {
    const std::string octal = digits(2, is_octal);
    return fmt::format("\\x{{{:x}}}", octal.empty() ? 0 : std::stoul(octal, nullptr, 8));
  }
  if (letter != 'x' && letter != 'u') return std::string();
  const bool braces = letter == 'x' && take("{");
  const std::string hex = digits(letter == 'u' ? 4 : braces ? 8 : 2, std::isxdigit);
  if (hex.empty() || (letter == 'u' && hex.size() != 4) || (braces && !take("}"))) {
    return unsupported("an unfinished code point");
  }
  const unsigned long code_point = std::stoul(hex, nullptr, 16);
  if ((letter == 'x' && !braces && code_point > 0x7F) || code_point > 0x10FFFF) {
    return unsupported("a byte that is no character");
  }
  return fmt::format("\\x{{{:x}}}", code_point);
}

Status Translator::escape() {
  ++at_;
  if (at_end()) return unsupported("a lone backslash");
  const std::string_view character = pattern_.substr(at_, character_at(pattern_, at_).size);
  const char letter = character[0];
  at_ += character.size();
  ASSIGN_OR_RETURN(const std::optional<CharacterSet> set, set_escape(letter));
  if (set) {
    atom(pattern_of(*set));
    return Ok{};
  }
  ASSIGN_OR_RETURN(const std::string code_point, code_point_escape(letter));
  if (!code_point.empty()) {
    atom(code_point);
    return Ok{};
  }
  const std::string word = pattern_of(*lettered_set('w'));
  switch (letter) {
    case 'A':
    case 'z':
    case 'Z':
    case 'G':
      atom(fmt::format("\\{}", letter));
      return Ok{};
    case 'b':
      atom(fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word));
      return Ok{};
    case 'B':
      atom(fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word));
      return Ok{};
    case 'R':
      atom(R"((?>\x0d\x0a|[\x0a-\x0d\x{85}\x{2028}\x{2029}]))");
      return Ok{};
    case 'N':
      atom(R"([^\x0a])");
      return Ok{};
    case 'O':
      atom("(?s:.)");
      return Ok{};
    case 'X':
    case 'K':
    case 'k':
    case 'g':
    case 'y':
    case 'Y':
    case 'c':
    case 'C':
    case 'M':
      return unsupported(fmt::format("\\{}", letter));
    default:
      break;
  }
  if (letter >= '1' && letter <= '9') return unsupported("a back reference");
  atom(escaped_literal(character));
  return Ok{};
}

// A single character at `at_` inside a class, escaped for PCRE2.
Result<std::string> Translator::class_literal() {
  if (at_end()) return unsupported("an unclosed class");
  const bool escaped = take("\\");
  if (at_end()) return unsupported("an unclosed class");
  const std::string_view character = pattern_.substr(at_, character_at(pattern_, at_).size);
  at_ += character.size();
  if (escaped && std::isalnum(static_cast<unsigned char>(character[0])) != 0) {
    if (character == "b") return std::string("\\x08");
    ASSIGN_OR_RETURN(const std::string code_point, code_point_escape(character[0]));
    if (!code_point.empty()) return code_point;
    if (std::string_view("pPRXcCM123456789").find(character[0]) != std::string_view::npos) {
      return unsupported(fmt::format("\\{} in a class", character));
    }
  }
  return escaped_literal(character);
}

// One member of a class: a nested class, a POSIX class, a set, a character or a range.
Status Translator::class_element(Class& current, int depth) {
  const auto add = [&](const CharacterSet& set) {
    if (set.items.empty()) {
      current.alternatives.push_back(pattern_of(set));
    } else {
      current.items += set.items;
    }
  };
  if (peek() == '[' && peek(1) == ':') {
    const size_t end = pattern_.find(":]", at_ + 2);
    if (end != std::string_view::npos) {
      std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
      const bool negated = name.starts_with('^');
      if (negated) name.remove_prefix(1);
      const std::optional<CharacterSet> set = posix_set(name);
      if (!set) return unsupported("an unknown POSIX class");
      add(negated ? inverted(*set) : *set);
      at_ = end + 2;
      return Ok{};
    }
  }
  if (peek() == '[') {
    ASSIGN_OR_RETURN(const std::string nested, character_class(depth + 1));
    current.alternatives.push_back(nested);
    return Ok{};
  }
  if (peek() == '\\') {
    const size_t escape_begin = at_;
    const char letter = peek(1);
    at_ = std::min(at_ + 2, pattern_.size());
    ASSIGN_OR_RETURN(const std::optional<CharacterSet> set, set_escape(letter));
    if (set) {
      add(*set);
      return Ok{};
    }
    at_ = escape_begin;
  }
  ASSIGN_OR_RETURN(std::string first, class_literal());
  if (peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
    if (peek(1) == '[') return unsupported("a range that ends in a class");
    ++at_;
    ASSIGN_OR_RETURN(const std::string last, class_literal());
    first += fmt::format("-{}", last);
  }
  current.items += first;
  return Ok{};
}

std::string Translator::write_class(const Class& parts, bool negated) {
  if (parts.alternatives.empty()) {
    if (parts.items.empty()) return negated ? "(?s:.)" : "(?!)";
    return fmt::format("[{}{}]", negated ? "^" : "", parts.items);
  }
  std::string any = "(?:";
  if (!parts.items.empty()) any += fmt::format("[{}]|", parts.items);
  for (const std::string& alternative : parts.alternatives) any += alternative + "|";
  any.back() = ')';
  return negated ? none_of(any) : any;
}

// A class, with nested classes as alternatives and intersections as conditions on the next
// character.
Result<std::string> Translator::character_class(int depth) {
  constexpr int kDepthLimit = 32;
  if (depth > kDepthLimit) return unsupported("classes nested too deeply");
  ++at_;
  const bool negated = take("^");
  Class current;
  std::string conditions;
  bool first = true;
  while (true) {
    if (at_end()) return unsupported("an unclosed class");
    if (peek() == ']' && !first) break;
    if (take("&&")) {
      conditions += fmt::format("(?={})", write_class(current, false));
      current = Class{};
      continue;
    }
    if (first && take("]")) {
      current.items += "\\]";
    } else {
      RETURN_IF_ERROR(class_element(current, depth));
    }
    first = false;
  }
  ++at_;
  if (conditions.empty()) return write_class(current, negated);
  const std::string all = fmt::format("(?:{}{})", conditions, write_class(current, false));
  return negated ? none_of(all) : all;
}

}  // namespace

Result<std::string> pcre2_from_oniguruma(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace espalier::text
