#include "espalier/text/regex_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace espalier::text {
namespace {

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
  std::string_view name;
  const char* items;
};

constexpr size_t kPosixCount = 11;  // the first rows are POSIX classes too

// Classes and properties that PCRE2 names or fills differently.
constexpr NamedSet kNamedSets[] = {
    {"alnum", kAlphanumeric},
    {"alpha", kAlphabetic},
    {"blank", R"(\p{Zs}\x09)"},
    {"cntrl", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})"},
    {"lower", R"(\p{Lowercase})"},
    {"punct", R"(\p{P}\p{S})"},
    {"space", kSpace},
    {"upper", R"(\p{Uppercase})"},
    {"word", kWord},
    {"xdigit", kHexDigit},
    {"alphabetic", kAlphabetic},
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

// Names that \p takes as they are: general categories and binary properties.
constexpr std::string_view kProperties =
    " l lu ll lt lm lo m mn mc me n nd nl no p pc pd ps pe pi pf po s sm sc sk so z zs zl zp c cc "
    "cf "
    "cn co uppercase lowercase emoji extendedpictographic ideographic ";

const NamedSet* find_named(std::string_view name, size_t count) {
  const NamedSet* end = kNamedSets + count;
  const NamedSet* row =
      std::find_if(kNamedSets, end, [&](const NamedSet& set) { return set.name == name; });
  return row == end ? nullptr : row;
}

}  // namespace

CharacterSet inverted(const CharacterSet& set) { return {set.complement, set.items}; }

std::string pattern_of(const CharacterSet& set) {
  return set.items.empty() ? fmt::format("[^{}]", set.complement) : fmt::format("[{}]", set.items);
}

std::optional<CharacterSet> lettered_set(char letter) {
  switch (letter) {
    case 'd':
      return CharacterSet{"\\p{Nd}", "\\P{Nd}"};
    case 's':
      return CharacterSet{kSpace, kNotSpace};
    case 'w':
      return CharacterSet{kWord, ""};
    case 'h':
      return CharacterSet{kHexDigit, ""};
    default:
      return std::nullopt;
  }
}

std::optional<CharacterSet> posix_set(std::string_view name) {
  const NamedSet* row = find_named(name, kPosixCount);
  return row == nullptr ? std::nullopt : std::optional(CharacterSet{row->items, ""});
}

CharacterSet property_set(const std::string& name) {
  if (const NamedSet* row = find_named(name, std::size(kNamedSets))) return {row->items, ""};
  const bool is_property = kProperties.find(fmt::format(" {} ", name)) != std::string_view::npos;
  const std::string full_name = fmt::format("{}{}", is_property ? "" : "sc:", name);
  return {fmt::format("\\p{{{}}}", full_name), fmt::format("\\P{{{}}}", full_name)};
}

}  // namespace espalier::text
