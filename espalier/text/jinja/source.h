// Places in a template's source, and errors that name them. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/base/result.h"

namespace espalier::text::jinja {

using Offset = uint32_t;  // bytes from the beginning of the normalised source

// Line breaks become "\n" and one at the very end is dropped, as jinja2 does before it reads
// anything.
std::string normalize_source(std::string_view source);
std::string normalize_newlines(std::string_view text);

// The error with "line L, column C: " in front; an error that already has its place keeps it.
Error at(std::string_view source, Offset offset, const Error& error);
Error syntax_error(std::string_view source, Offset offset, std::string what, std::string expected,
                   std::string actual);

}  // namespace espalier::text::jinja
