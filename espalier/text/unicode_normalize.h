// Unicode normalisation forms through utf8proc, held to the version of Unicode that the
// `tokenizers` library normalises with: characters that came later are left alone and keep their
// place. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace espalier::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// Normalises a piece of valid UTF-8. Pieces that normalization_unit() gives are independent of each
// other.
std::string normalize_unit(std::string_view unit, NormalForm form);

// Size of the first piece of a text (valid UTF-8, not empty) that normalises independently of what
// follows: a character with the marks and conjoining letters after it.
size_t normalization_unit(std::string_view text);

}  // namespace espalier::text
