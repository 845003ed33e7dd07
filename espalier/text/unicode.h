// The questions that tokenizers ask about characters. The answers are those of the
// `tokenizers` library (text/unicode_tables.h), not of whatever Unicode version a system library
// has. Pure functions.
#pragma once

#include <string>

namespace espalier::text {

bool is_white_space(char32_t c);
bool is_numeric(char32_t c);          // Nd, Nl, No
bool is_word(char32_t c);             // \w of the regex crate
bool is_punctuation(char32_t c);      // category P, and the ASCII symbols
bool is_other(char32_t c);            // control characters and the like, dropped by BertNormalizer
bool is_mark_nonspacing(char32_t c);  // Mn
bool is_combining_mark(char32_t c);   // M
bool is_normalization_inert(char32_t c);  // newer than the library's normalisation tables
void append_lowercase(std::string& text, char32_t c);

// The character that stands for `c` before PCRE2, so that its version of Unicode does not matter:
// of the same category, script family and UTF-8 length. Mostly `c` itself.
char32_t regex_stand_in(char32_t c);

}  // namespace espalier::text
