#include "espalier/text/regex_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "espalier/text/unicode.h"

namespace espalier::text {
namespace {

// A set of characters as PCRE2 writes it between brackets. `complement` is empty where it has no
// such form.
struct CharacterSet {
  std::string items;
  std::string complement;
};

constexpr const char* kSpace =
    R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr const char* kNotSpace =
    R"(\x00-\x08\x0e-\x1f\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// Oniguruma's \w: letters, marks, digits, connectors, circled letters, and the numbers of Latin-1.
constexpr const char* kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9})"
    R"(\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// Alphabetic, with the marks that became so after Unicode 14, the version of PCRE2 10.42.
constexpr const char* kAlphabetic =
    R"(\p{Alphabetic}\x{363}-\x{36f}\x{c04}\x{f82}\x{f83}\x{1dd3}-\x{1de6}\x{11080}\x{11081}\x{11241})";
constexpr const char* kAlphanumeric =
    R"(\p{Alphabetic}\x{363}-\x{36f}\x{c04}\x{f82}\x{f83}\x{1dd3}-\x{1de6}\x{11080}\x{11081}\x{11241})"
    R"(\p{Nd})";
constexpr const char* kHexDigit = "0-9A-Fa-f";

struct NamedSet {
  std::string_view name;  // lower case, without '_', '-' and blanks
  const char* items;
};

// POSIX classes ([:name:] and \p{name}) and properties that PCRE2 names or fills differently.
constexpr NamedSet kNamedSets[] = {
    {"alnum", kAlphanumeric},
    {"alpha", kAlphabetic},
    {"alphabetic", kAlphabetic},
    {"blank", R"(\p{Zs}\x09)"},
    {"cntrl", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})"},
    {"lower", R"(\p{Lowercase})"},
    {"punct", R"(\p{P}\p{S})"},
    {"space", kSpace},
    {"upper", R"(\p{Uppercase})"},
    {"word", kWord},
    {"xdigit", kHexDigit},
    {"whitespace", kSpace},
    {"any", R"(\x00-\x{10ffff})"},
    {"assigned", R"(\P{Cn})"},
    {"lc", R"(\p{Lu}\p{Ll}\p{Lt})"},
    {"casedletter", R"(\p{Lu}\p{Ll}\p{Lt})"},
    {"letter", R"(\p{L})"},
    {"uppercaseletter", R"(\p{Lu})"},
    {"lowercaseletter", R"(\p{Ll})"},
    {"titlecaseletter", R"(\p{Lt})"},
    {"modifierletter", R"(\p{Lm})"},
    {"otherletter", R"(\p{Lo})"},
    {"mark", R"(\p{M})"},
    {"combiningmark", R"(\p{M})"},
    {"nonspacingmark", R"(\p{Mn})"},
    {"spacingmark", R"(\p{Mc})"},
    {"enclosingmark", R"(\p{Me})"},
    {"number", R"(\p{N})"},
    {"decimalnumber", R"(\p{Nd})"},
    {"letternumber", R"(\p{Nl})"},
    {"othernumber", R"(\p{No})"},
    {"punctuation", R"(\p{P})"},
    {"connectorpunctuation", R"(\p{Pc})"},
    {"dashpunctuation", R"(\p{Pd})"},
    {"openpunctuation", R"(\p{Ps})"},
    {"closepunctuation", R"(\p{Pe})"},
    {"initialpunctuation", R"(\p{Pi})"},
    {"finalpunctuation", R"(\p{Pf})"},
    {"otherpunctuation", R"(\p{Po})"},
    {"symbol", R"(\p{S})"},
    {"mathsymbol", R"(\p{Sm})"},
    {"currencysymbol", R"(\p{Sc})"},
    {"modifiersymbol", R"(\p{Sk})"},
    {"othersymbol", R"(\p{So})"},
    {"separator", R"(\p{Z})"},
    {"spaceseparator", R"(\p{Zs})"},
    {"lineseparator", R"(\p{Zl})"},
    {"paragraphseparator", R"(\p{Zp})"},
    {"other", R"(\p{C})"},
    {"control", R"(\p{Cc})"},
    {"format", R"(\p{Cf})"},
    {"privateuse", R"(\p{Co})"},
    {"unassigned", R"(\p{Cn})"},
};

// Names that \p takes as they are: general categories and a few binary properties. All others are
// scripts.
constexpr std::string_view kProperties[] = {
    "l",          "lu", "ll", "lt", "lm",        "lo",        "m",     "mn",
    "mc",         "me", "n",  "nd", "nl",        "no",        "p",     "pc",
    "pd",         "ps", "pe", "pi", "pf",        "po",        "s",     "sm",
    "sc",         "sk", "so", "z",  "zs",        "zl",        "zp",    "c",
    "cc",         "cf", "cn", "co", "uppercase", "lowercase", "emoji", "extendedpictographic",
    "ideographic"};

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

std::string outside_class(const CharacterSet& set) {
  return set.items.empty() ? fmt::format("[^{}]", set.complement) : fmt::format("[{}]", set.items);
}

CharacterSet inverted(const CharacterSet& set) { return {set.complement, set.items}; }

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
  out_ += groups_.back().closers + ")";
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
  CharacterSet set;
  const auto* named = std::find_if(std::begin(kNamedSets), std::end(kNamedSets),
                                   [&](const NamedSet& row) { return row.name == name; });
  if (named != std::end(kNamedSets)) {
    set.items = named->items;
  } else {
    const bool is_property =
        std::find(std::begin(kProperties), std::end(kProperties), name) != std::end(kProperties);
    const std::string full_name = (is_property ? "" : "sc:") + name;
    set = {fmt::format("\\p{{{}}}", full_name), fmt::format("\\P{{{}}}", full_name)};
  }
  at_ = end + 1;
  return negated ? inverted(set) : set;
}

// \d \s \w \h, their complements, and \p{..}; nothing for other letters. `at_` stands after the
// letter.
Result<std::optional<CharacterSet>> Translator::set_escape(char letter) {
  switch (letter) {
    case 'd':
      return std::optional(CharacterSet{"\\p{Nd}", "\\P{Nd}"});
    case 's':
      return std::optional(CharacterSet{kSpace, kNotSpace});
    case 'w':
      return std::optional(CharacterSet{kWord, ""});
    case 'h':
      return std::optional(CharacterSet{kHexDigit, ""});
    case 'D':
    case 'S':
    case 'W':
    case 'H': {
      ASSIGN_OR_RETURN(const auto set, set_escape(static_cast<char>(std::tolower(letter))));
      return std::optional(inverted(*set));
    }
    case 'p':
    case 'P': {
      if (peek() != '{') return std::optional<CharacterSet>();
      ASSIGN_OR_RETURN(const CharacterSet set, property(letter == 'P'));
      return std::optional(set);
    }
    default:
      return std::optional<CharacterSet>();
  }
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
  if (letter == '0')
    return fmt::format("\\x{{{:x}}}", std::stoul("0" + digits(2, is_octal), nullptr, 8));
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
    atom(outside_class(*set));
    return Ok{};
  }
  ASSIGN_OR_RETURN(const std::string code_point, code_point_escape(letter));
  if (!code_point.empty()) {
    atom(code_point);
    return Ok{};
  }
  switch (letter) {
    case 'A':
    case 'z':
    case 'Z':
    case 'G':
      atom(fmt::format("\\{}", letter));
      return Ok{};
    case 'b':
      atom(fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord));
      return Ok{};
    case 'B':
      atom(fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWord));
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
      current.alternatives.push_back(outside_class(set));
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
      const auto* row = std::find_if(std::begin(kNamedSets), std::end(kNamedSets),
                                     [&](const NamedSet& set) { return set.name == name; });
      if (row == std::end(kNamedSets)) return unsupported("an unknown POSIX class");
      const CharacterSet set{row->items, ""};
      add(negated ? inverted(set) : set);
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
  if (!parts.items.empty()) any += "[" + parts.items + "]|";
  for (const std::string& alternative : parts.alternatives) any += alternative + "|";
  any.back() = ')';
  return negated ? "(?:(?!" + any + ")(?s:.))" : any;
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
      conditions += "(?=" + write_class(current, false) + ")";
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
  const std::string all = "(?:" + conditions + write_class(current, false) + ")";
  return negated ? "(?:(?!" + all + ")(?s:.))" : all;
}

}  // namespace

Result<std::string> pcre2_from_oniguruma(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace espalier::text
