#include "espalier/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(Json, ErrorsNameTheSource) {
  const auto result = parse_json("{\"a\": ", "config.json");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().what, HasSubstr("config.json"));
}

TEST(Json, NestingIsLimitedBeforeParsing) {
  const auto nested = [](size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(parse_json(nested(kJsonDepthLimit), "t").ok());
  EXPECT_FALSE(parse_json(nested(kJsonDepthLimit + 1), "t").ok());
  EXPECT_FALSE(parse_json(nested(10'000'000), "t").ok());
  EXPECT_FALSE(parse_json(std::string(10'000'000, '['), "t").ok());
  EXPECT_TRUE(parse_json(fmt::format("\"{}\"", std::string(1000, '[')), "t").ok());
  EXPECT_TRUE(parse_json(R"("\"[[[")", "t").ok());
}

TEST(Json, RefusesWhatIsNoJson) {
  for (const std::string text : {"", "{", "nul", "{a:1}", "[1,]", "1 2", "\"\xff\"",
                                 "\"\xed\xa0\x80\"", "\"\\ud800\"", "01", "1e999"}) {
    EXPECT_FALSE(parse_json(text, "t").ok()) << text;
  }
  EXPECT_FALSE(parse_json(std::string("{}\0{}", 5), "t").ok());
  EXPECT_FALSE(parse_json(std::string("{}\0", 3), "t").ok());
}

TEST(Json, LookUpsNameTheKeyAndBothTypes) {
  const Json object = {{"n", 3},    {"x", 1.5},        {"s", "text"},
                       {"b", true}, {"null", nullptr}, {"huge", UINT64_MAX}};
  EXPECT_EQ(*json_integer(object, "n"), 3);
  EXPECT_EQ(*json_number(object, "n"), 3.0);
  EXPECT_EQ(*json_number(object, "x"), 1.5);
  EXPECT_EQ(*json_string(object, "s"), "text");
  EXPECT_TRUE(*json_bool(object, "b"));
  EXPECT_EQ(
      json_integer(object, "s").error().message(),
      "key 's' has the wrong type: expected an integer, got \"text\". Correct it in the file.");
  EXPECT_THAT(json_string(object, "absent").error().message(), HasSubstr("'absent' is missing"));
  EXPECT_FALSE(json_integer(object, "x").ok());
  EXPECT_FALSE(json_integer(object, "b").ok());
  EXPECT_FALSE(json_bool(object, "n").ok());
  EXPECT_THAT(json_integer(object, "huge").error().message(), HasSubstr("2^63"));
}

TEST(Json, NullAndNoObjectCountAsAbsent) {
  const Json object = {{"null", nullptr}, {"n", 1}};
  EXPECT_EQ(json_find(object, "null"), nullptr);
  EXPECT_EQ(json_find(Json(), "n"), nullptr);
  EXPECT_EQ(json_find(Json::array({1}), "n"), nullptr);
  EXPECT_EQ(*json_integer_or(object, "null", 7), 7);
  EXPECT_EQ(*json_number_or(object, "absent", 0.5), 0.5);
  EXPECT_EQ(*json_string_or(object, "absent", "x"), "x");
  EXPECT_TRUE(*json_bool_or(object, "absent", true));
  EXPECT_FALSE(json_bool_or(object, "n", true).ok());
}

TEST(Json, OrderedDocumentsKeepTheirOrderAndLimitTheirMembers) {
  const auto document = parse_ordered_json(R"({"z": 1, "a": {"y": 2, "b": 3}})", "t");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->dump(), R"({"z":1,"a":{"y":2,"b":3}})");
  std::string text = "{\"k\":0";
  for (size_t i = 1; i < kOrderedJsonMemberLimit; ++i) text += fmt::format(",\"k{}\":0", i);
  EXPECT_TRUE(parse_ordered_json(text + "}", "t").ok());
  EXPECT_FALSE(parse_ordered_json(text + ",\"more\":0}", "t").ok());
}

TEST(Json, RandomTextIsParsedOrRefused) {
  static constexpr std::string_view kPieces[] = {"{",    "}", "[",    "]",    ",",      ":", "\"",
                                                 "\\",   "a", "1",    "-",    ".",      "e", "null",
                                                 "true", " ", "\xc3", "\xa9", "\\u00e9"};
  std::mt19937 random(5);
  int parsed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t length = random() % 12; length > 0; --length)
      text += kPieces[random() % std::size(kPieces)];
    const auto result = parse_json(text, "t");
    if (!result.ok()) continue;
    ++parsed;
    EXPECT_EQ(parse_json(result->dump(), "t").value(), *result);
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace espalier
