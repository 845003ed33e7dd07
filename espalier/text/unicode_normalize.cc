#include "espalier/text/unicode_normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "espalier/base/check.h"
#include "espalier/base/utf8.h"
#include "espalier/text/unicode.h"

namespace espalier::text {
namespace {

// Letters that compose with, or whose compatibility forms become letters that compose with, what is
// before them: conjoining and compatibility Jamo, halfwidth sound marks and halfwidth Jamo.
bool is_conjoining(char32_t c) {
  return (c >= 0x1100 && c <= 0x11FF) || (c >= 0x3130 && c <= 0x318F) ||
         (c >= 0xFF9E && c <= 0xFFDC);
}

// Whether a unit may begin with `c`: nothing before it can change with it.
bool begins_unit(char32_t c) {
  if (c < 0x300 || is_normalization_inert(c)) return true;
  if (is_conjoining(c)) return false;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return false;
    default:
      return true;
  }
}

// Puts runs of marks into canonical order, which changes no normal form. utf8proc sorts by
// exchanging neighbours: quadratic, so a text of a hundred thousand marks in a row would keep it
// busy for minutes.
std::string with_sorted_marks(std::string_view unit) {
  struct Mark {
    char32_t code_point;
    int combining_class;
  };
  std::string out;
  std::vector<Mark> marks;
  const auto flush = [&] {
    std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    for (const Mark& mark : marks) append_utf8(out, mark.code_point);
    marks.clear();
  };
  for (size_t i = 0; i < unit.size();) {
    const Character c = character_at(unit, i);
    const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c.code_point));
    const int combining_class = property->combining_class;
    if (combining_class == 0) flush();
    marks.push_back({c.code_point, combining_class});
    i += c.size;
  }
  flush();
  return out;
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  options |= composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

}  // namespace

size_t normalization_unit(std::string_view text) {
  const Character first = character_at(text, 0);
  size_t size = first.size;
  if (is_normalization_inert(first.code_point)) return size;
  while (size < text.size()) {
    const Character next = character_at(text, size);
    if (begins_unit(next.code_point)) break;
    size += next.size;
  }
  return size;
}

std::string normalize_unit(std::string_view unit, NormalForm form) {
  const Character first = character_at(unit, 0);
  const bool single = first.size == unit.size();
  if (single && (first.code_point < 0x80 || is_normalization_inert(first.code_point))) {
    return std::string(unit);
  }
  constexpr size_t kLongUnit = 256;
  std::string sorted;
  if (unit.size() > kLongUnit) unit = sorted = with_sorted_marks(unit);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(unit.data()),
                   static_cast<utf8proc_ssize_t>(unit.size()), &mapped, options_of(form));
  CHECK_GE(size, 0);  // the text is valid UTF-8, so only memory could fail
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(mapped, &std::free);
  return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

}  // namespace espalier::text
