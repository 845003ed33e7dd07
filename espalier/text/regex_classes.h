// The character sets of Oniguruma's dialect, written as PCRE2 writes the inside of a class: \d, \s,
// \w, \h, POSIX classes and properties. Constant tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier::text {

// `complement` is empty where PCRE2 has no such form inside a class, `items` where the set was
// inverted.
struct CharacterSet {
  std::string items;
  std::string complement;
};

CharacterSet inverted(const CharacterSet& set);
// The set as a pattern of its own.
std::string pattern_of(const CharacterSet& set);

// The set that \d, \s, \w or \h names; nothing for other letters.
std::optional<CharacterSet> lettered_set(char letter);
// [:name:]
std::optional<CharacterSet> posix_set(std::string_view name);
// \p{name}, by the loose name: lower case, without '_', '-' and blanks. What is in no table is
// taken for a script, and PCRE2 says so if it is none.
CharacterSet property_set(const std::string& name);

}  // namespace espalier::text
