// Typed look-ups in GGUF metadata (formats/gguf.h).
#include <cstring>
#include <optional>

#include "espalier/base/utf8.h"
#include "espalier/formats/byte_reader.h"
#include "espalier/formats/gguf.h"
#include "espalier/formats/gguf_types.h"

namespace espalier::formats {
namespace {

using Kind = GgufTypeInfo::Kind;

// What a value is, for messages: "an array of 49152 string".
std::string description(const GgufValue& value) {
  const auto name = gguf_type_info(value.type).name;
  if (value.type != GgufType::kArray) return std::string(name);
  return fmt::format("an array of {} {}", value.count, gguf_type_info(value.element_type).name);
}

// The integer at `bytes`, or nothing where the type is no integer or the value does not fit.
std::optional<int64_t> integer_at(const GgufTypeInfo& info, const std::byte* bytes) {
  if (info.kind != Kind::kSigned && info.kind != Kind::kUnsigned) return std::nullopt;
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, info.bytes);
  if (info.kind == Kind::kSigned) {  // shifted to the top and back, which repeats the sign
    const uint64_t unused_bits = 64 - 8 * info.bytes;
    return static_cast<int64_t>(bits << unused_bits) >> unused_bits;
  }
  if (bits > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(bits);
}

std::optional<double> number_at(const GgufTypeInfo& info, const std::byte* bytes) {
  if (info.kind != Kind::kFloat) {
    const auto integer = integer_at(info, bytes);
    return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
  }
  float narrow = 0;
  double wide = 0;
  if (info.bytes == sizeof(wide)) {
    std::memcpy(&wide, bytes, sizeof(wide));
    return wide;
  }
  std::memcpy(&narrow, bytes, sizeof(narrow));
  return narrow;
}

std::optional<bool> boolean_at(const GgufTypeInfo& info, const std::byte* bytes) {
  if (info.kind != Kind::kBool) return std::nullopt;
  return *bytes != std::byte{0};
}

Error wrong_type(const std::string& source, std::string_view key, const char* expected,
                 const std::string& actual) {
  return Error{.what = fmt::format("{}: metadata '{}' cannot be used", source, key),
               .expected = expected,
               .actual = actual,
               .fix = "Convert the model to GGUF again."};
}

Result<const GgufValue*> require(const GgufMetadata::Entries& entries, const std::string& source,
                                 std::string_view key, const char* expected) {
  const auto found = entries.find(key);
  if (found == entries.end()) return wrong_type(source, key, expected, "no such key");
  return &found->second;
}

// A scalar read by one of the *_at functions above.
template <typename T>
Result<T> scalar(const GgufMetadata::Entries& entries, const std::string& source,
                 std::string_view key, const char* expected,
                 std::optional<T> (*read)(const GgufTypeInfo&, const std::byte*)) {
  ASSIGN_OR_RETURN(const GgufValue* value, require(entries, source, key, expected));
  const auto result = read(gguf_type_info(value->type), value->bytes.data());
  if (!result) return wrong_type(source, key, expected, description(*value));
  return *result;
}

// An array of elements of one size, each read by one of the *_at functions above.
template <typename Out, typename T>
Result<std::vector<Out>> array(const GgufMetadata::Entries& entries, const std::string& source,
                               std::string_view key, const char* expected,
                               std::optional<T> (*read)(const GgufTypeInfo&, const std::byte*)) {
  ASSIGN_OR_RETURN(const GgufValue* value, require(entries, source, key, expected));
  if (value->type != GgufType::kArray)
    return wrong_type(source, key, expected, description(*value));
  const GgufTypeInfo& info = gguf_type_info(value->element_type);
  std::vector<Out> elements;
  elements.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto element = read(info, value->bytes.data() + i * info.bytes);
    if (!element) return wrong_type(source, key, expected, description(*value));
    elements.push_back(static_cast<Out>(*element));
  }
  return elements;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool GgufMetadata::is_array(std::string_view key) const {
  const auto found = entries_.find(key);
  return found != entries_.end() && found->second.type == GgufType::kArray;
}

Result<std::string> GgufMetadata::string(std::string_view key) const {
  constexpr auto kExpected = "a string in UTF-8";
  ASSIGN_OR_RETURN(const GgufValue* value, require(entries_, source_, key, kExpected));
  if (value->type != GgufType::kString) {
    return wrong_type(source_, key, kExpected, description(*value));
  }
  const std::string_view text = text_of(value->bytes.subspan(sizeof(uint64_t)));
  if (invalid_utf8_at(text)) return wrong_type(source_, key, kExpected, "other bytes");
  return std::string(text);
}

Result<int64_t> GgufMetadata::integer(std::string_view key) const {
  return scalar(entries_, source_, key, "an integer below 2^63", integer_at);
}

Result<double> GgufMetadata::number(std::string_view key) const {
  return scalar(entries_, source_, key, "a number", number_at);
}

Result<bool> GgufMetadata::boolean(std::string_view key) const {
  return scalar(entries_, source_, key, "a bool", boolean_at);
}

Result<std::string> GgufMetadata::string_or(std::string_view key, std::string_view fallback) const {
  return contains(key) ? string(key) : std::string(fallback);
}

Result<int64_t> GgufMetadata::integer_or(std::string_view key, int64_t fallback) const {
  return contains(key) ? integer(key) : fallback;
}

Result<double> GgufMetadata::number_or(std::string_view key, double fallback) const {
  return contains(key) ? number(key) : fallback;
}

Result<bool> GgufMetadata::boolean_or(std::string_view key, bool fallback) const {
  return contains(key) ? boolean(key) : fallback;
}

Result<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  constexpr auto kExpected = "an array of strings";
  ASSIGN_OR_RETURN(const GgufValue* value, require(entries_, source_, key, kExpected));
  if (value->type != GgufType::kArray || value->element_type != GgufType::kString) {
    return wrong_type(source_, key, kExpected, description(*value));
  }
  std::vector<std::string_view> texts;
  texts.reserve(value->count);
  ByteReader reader(value->bytes);
  for (uint64_t i = 0; i < value->count; ++i) {
    uint64_t length = 0;
    std::span<const std::byte> text;
    CHECK(reader.read(length) && reader.take(length, text));  // the parser has walked through them
    texts.push_back(text_of(text));
  }
  return texts;
}

Result<std::vector<int64_t>> GgufMetadata::integers(std::string_view key) const {
  return array<int64_t>(entries_, source_, key, "an array of integers below 2^63", integer_at);
}

Result<std::vector<float>> GgufMetadata::floats(std::string_view key) const {
  return array<float>(entries_, source_, key, "an array of numbers", number_at);
}

}  // namespace espalier::formats
