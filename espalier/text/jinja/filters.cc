#include "espalier/text/jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/filter_functions.h"

namespace espalier::text::jinja {
namespace {

constexpr Filter kFilters[] = {
    {"abs", "", filters::absolute},
    {"attr", "name", filters::attribute},
    {"batch", "linecount fill_with?", filters::batch},
    {"capitalize", "", filters::capitalize_text},
    {"center", "width?", filters::center},
    {"count", "", filters::length},
    {"d", "default_value? boolean?", filters::default_value},
    {"default", "default_value? boolean?", filters::default_value},
    {"dictsort", "case_sensitive? by? reverse?", filters::dictsort},
    {"e", "", filters::escape},
    {"escape", "", filters::escape},
    {"filesizeformat", "binary?", filters::filesizeformat},
    {"first", "", filters::first},
    {"float", "default?", filters::to_float},
    {"forceescape", "", filters::forceescape},
    {"format", "* **", filters::format},
    {"groupby", "attribute default? case_sensitive?", filters::groupby},
    {"indent", "width? first? blank?", filters::indent},
    {"int", "default? base?", filters::to_int},
    {"items", "", filters::items},
    {"join", "d? attribute?", filters::join},
    {"last", "", filters::last},
    {"length", "", filters::length},
    {"list", "", filters::to_list},
    {"lower", "", filters::lower},
    {"map", "* **", filters::map},
    {"max", "case_sensitive? attribute?", filters::maximum},
    {"min", "case_sensitive? attribute?", filters::minimum},
    {"reject", "* **", filters::reject},
    {"rejectattr", "* **", filters::rejectattr},
    {"replace", "old new count?", filters::replace_text},
    {"reverse", "", filters::reverse},
    {"round", "precision? method?", filters::round},
    {"safe", "", filters::safe},
    {"select", "* **", filters::select},
    {"selectattr", "* **", filters::selectattr},
    {"slice", "slices fill_with?", filters::slice_list},
    {"sort", "reverse? case_sensitive? attribute?", filters::sort},
    {"string", "", filters::string},
    {"striptags", "", filters::striptags},
    {"sum", "attribute? start?", filters::sum},
    {"title", "", filters::title},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filters::tojson},
    {"trim", "chars?", filters::trim},
    {"truncate", "length? killwords? end? leeway?", filters::truncate},
    {"unique", "case_sensitive? attribute?", filters::unique},
    {"upper", "", filters::upper},
    {"urlencode", "", filters::urlencode},
    {"wordcount", "", filters::wordcount},
};

}  // namespace

const Filter* find_filter(std::string_view name) {
  const auto found = std::lower_bound(
      std::begin(kFilters), std::end(kFilters), name,
      [](const Filter& filter, std::string_view wanted) { return filter.name < wanted; });
  return found != std::end(kFilters) && found->name == name ? &*found : nullptr;
}

Error unknown_filter(std::string_view name) {
  std::string known;
  for (const Filter& filter : kFilters)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", filter.name);
  return Error{.what = fmt::format("no filter named '{}'", name),
               .expected = std::move(known),
               .actual = std::string(name),
               .fix = "Correct its name."};
}

}  // namespace espalier::text::jinja
