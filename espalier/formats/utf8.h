// Whether bytes from a file are valid UTF-8, asked before they become names, JSON or messages.
#pragma once

#include <string_view>

namespace espalier::formats {

// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_valid_utf8(std::string_view text);

}  // namespace espalier::formats
