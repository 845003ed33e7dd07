// JSON without exceptions: nlohmann/json behind Result, with a nesting limit that keeps hostile
// files from exhausting the stack, and typed look-ups whose errors name the key, what was expected
// and found.
#pragma once

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"

namespace espalier {

using Json = nlohmann::json;
// Keeps the order of keys, which chat templates print (tojson). Look-up is linear: for requests,
// not for files.
using OrderedJson = nlohmann::ordered_json;

inline constexpr int kJsonDepthLimit = 128;
inline constexpr size_t kOrderedJsonMemberLimit = 1024;  // members of one object

// What an exception of the library says, without the number that it puts in front.
std::string json_problem(const std::exception& exception);

// `source` names the text in errors ("config.json"). Duplicate keys: the last one wins.
Result<Json> parse_json(std::string_view text, const std::string& source);
Result<OrderedJson> parse_ordered_json(std::string_view text, const std::string& source);

// Required and optional members of an object. A JSON null counts as absent.
Result<int64_t> json_integer(const Json& object, const std::string& key);
Result<double> json_number(const Json& object, const std::string& key);
Result<bool> json_bool(const Json& object, const std::string& key);
Result<std::string> json_string(const Json& object, const std::string& key);
Result<int64_t> json_integer_or(const Json& object, const std::string& key, int64_t fallback);
Result<double> json_number_or(const Json& object, const std::string& key, double fallback);
Result<bool> json_bool_or(const Json& object, const std::string& key, bool fallback);
Result<std::string> json_string_or(const Json& object, const std::string& key,
                                   const std::string& fallback);
// The member, or nullptr when it is absent, null, or `object` is not an object.
const Json* json_find(const Json& object, const std::string& key);

}  // namespace espalier
