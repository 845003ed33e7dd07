#include "espalier/text/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/text/golden_tokenizers.h"

namespace espalier::text {
namespace {

Json minimal() {
  return parse_json(
             R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})",
             "test")
      .value();
}

// Reads and makes; the error of either step.
std::optional<Error> error_of(const Json& json, const Json& config = Json()) {
  auto data = formats::read_tokenizer_json(json, config);
  if (!data.ok()) return data.error();
  auto tokenizer = Tokenizer::make(std::move(data).value());
  return tokenizer.ok() ? std::nullopt : std::optional(tokenizer.error());
}

Tokenizer made(const Json& json, const Json& config = Json()) {
  auto data = formats::read_tokenizer_json(json, config);
  CHECK(data.ok());
  return std::move(Tokenizer::make(std::move(data).value())).value();
}

TEST(Tokenizer, NamesTheOffsetOfInvalidUtf8) {
  const Tokenizer tokenizer = made(minimal());
  const auto ids = tokenizer.encode("ab\xFF");
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().message().find("offset 2"), std::string::npos);
}

TEST(Tokenizer, EncodesTheEmptyText) {
  const auto ids = made(minimal()).encode("");
  ASSERT_TRUE(ids.ok());
  EXPECT_TRUE(ids->empty());
}

TEST(Tokenizer, MergesAMegabyteWithoutBlanksInTime) {
  const GoldenTokenizer golden = golden_tokenizer("gguf_gpt-2");
  std::string text;
  while (text.size() < (1 << 20)) text += "aaaaabcdefghij";
  const auto begin = std::chrono::steady_clock::now();
  const auto ids = golden.tokenizer.encode(text);
  const auto passed = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(golden.tokenizer.decode(*ids), text);
  EXPECT_LT(passed, std::chrono::seconds(30));  // quadratic work would take hours
  const GoldenTokenizer pieces = golden_tokenizer("sentencepiece_0");
  EXPECT_EQ(pieces.tokenizer.decode(*pieces.tokenizer.encode(text)), text);
}

// Twenty parts that each write ten letters for one.
Json explosive_parts(const char* members_key, const char* type) {
  const Json part = {{"type", type}, {"pattern", {{"String", "a"}}}, {"content", "aaaaaaaaaa"}};
  return {{"type", "Sequence"}, {members_key, std::vector<Json>(20, part)}};
}

TEST(Tokenizer, RefusesToMakeATextLongerWithoutMeasure) {
  Json json = minimal();
  json["normalizer"] = explosive_parts("normalizers", "Replace");
  for (const size_t length : {size_t{1}, size_t{1000}}) {
    const auto ids = made(json).encode(std::string(length, 'a'));
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.error().what, "the tokenizer makes the text too long");
  }
  EXPECT_TRUE(made(json).encode("b").ok());
  json["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(2 << 20, 'a')}};
  EXPECT_FALSE(made(json).encode("a").ok());
  // Many sections share one budget.
  json["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(1000, 'a')}};
  json["added_tokens"] = Json::array({{{"content", "b"}, {"special", true}}});
  EXPECT_TRUE(made(json).encode("abababab").ok());
  std::string sections;
  for (int i = 0; i < 5000; ++i) sections += "ab";
  EXPECT_FALSE(made(json).encode(sections).ok());
  // A text is made longer when the tokenizer is made, too: an added token that is normalised.
  json = minimal();
  json["normalizer"] = explosive_parts("normalizers", "Replace");
  json["added_tokens"] = Json::array({{{"content", "a!"}, {"normalized", true}}});
  EXPECT_EQ(error_of(json)->what, "the tokenizer makes the text too long");
  // The same by what pre-tokenizers write.
  json = minimal();
  json["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", std::vector<Json>(20, {{"type", "ByteLevel"},
                                                                    {"add_prefix_space", true}})}};
  EXPECT_FALSE(made(json).encode("\xC3\xBC\xC3\xBC").ok());
}

TEST(Tokenizer, DecodesATokenThatWouldGrowWithoutMeasureAsItIs) {
  Json json = minimal();
  json["decoder"] = explosive_parts("decoders", "Replace");
  const std::string text = made(json).decode(std::vector<TokenId>{0, 1});
  EXPECT_LE(text.size(), 2u << 20);
  EXPECT_TRUE(text.ends_with("b"));
}

TEST(Tokenizer, RefusesMorePartsThanAnyoneNeeds) {
  for (const auto& [key, members_key] :
       {std::pair("normalizer", "normalizers"), std::pair("decoder", "decoders")}) {
    const Json part = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "b"}};
    Json json = minimal();
    json[key] = {{"type", "Sequence"}, {members_key, std::vector<Json>(64, part)}};
    EXPECT_FALSE(error_of(json).has_value());
    json[key][members_key].push_back(part);
    EXPECT_TRUE(error_of(json)->what.ends_with("has too many parts")) << error_of(json)->what;
  }
}

TEST(Tokenizer, RefusesMalformedFilesWithAReason) {
  const auto broken = [](const char* patch) {
    Json json = minimal();
    json.merge_patch(parse_json(patch, "patch").value());
    const std::optional<Error> error = error_of(json);
    ASSERT_TRUE(error) << patch;
    EXPECT_FALSE(error->expected.empty() || error->fix.empty()) << error->message();
  };
  broken(R"({"model": null})");
  broken(R"({"model": {"type": "WordPiece"}})");
  broken(R"({"model": {"type": "Unigram"}})");
  broken(R"({"model": {"vocab": null}})");
  broken(R"({"model": {"vocab": {"a": 4000000000}}})");
  broken(R"({"model": {"vocab": {"a": -1}}})");
  broken(R"({"model": {"vocab": {"a": "x"}}})");
  broken(R"({"model": {"merges": null}})");
  broken(R"({"model": {"merges": ["ab"]}})");
  broken(R"({"model": {"merges": ["a b c"]}})");
  broken(R"({"model": {"merges": ["b a"]}})");
  broken(R"({"model": {"merges": [["a", 1]]}})");
  broken(R"({"model": {"dropout": 0.1}})");
  broken(R"({"model": {"continuing_subword_prefix": "###"}})");
  broken(R"({"added_tokens": {}})");
  broken(R"({"added_tokens": [{"id": 1}]})");
  broken(R"({"normalizer": {"type": "Nope"}})");
  broken(R"({"normalizer": {"type": "Sequence"}})");
  broken(R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AA=="}})");
  broken(R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "("}, "content": ""}})");
  broken(R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Nope"}})");
  broken(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "ab"}})");
  broken(R"({"pre_tokenizer": {"type": "FixedLength", "length": 0}})");
  broken(
      R"({"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}]}})");
  broken(R"({"post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["b", 99]}})");
  broken(R"({"decoder": {"type": "WordPiece"}})");
  broken(R"({"decoder": []})");
}

TEST(Tokenizer, ListsKnownPartsForAnUnknownOne) {
  Json json = minimal();
  json["pre_tokenizer"] = {{"type", "Nope"}};
  EXPECT_NE(error_of(json)->message().find("ByteLevel"), std::string::npos);
}

TEST(Tokenizer, FramesTextAsTheConfigurationSays) {
  Json json = minimal();
  json["added_tokens"] =
      parse_json(R"([{"id": 7, "content": "<s>", "special": true}])", "t").value();
  json["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"a", 0}}, {"sep", {"b", 1}}};
  const auto ids = [&](const Json& config) { return *made(json, config).encode("ab"); };
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(ids(Json()), (Ids{0, 2, 1}));
  EXPECT_EQ(ids({{"bos_token", "<s>"}, {"add_bos_token", true}}), (Ids{3, 2}));
  EXPECT_EQ(ids({{"bos_token", "<s>"}, {"add_bos_token", false}}), (Ids{2}));
  EXPECT_EQ(ids({{"eos_token", {{"content", "</s>"}}}, {"add_eos_token", true}}), (Ids{2, 4}));
}

TEST(Tokenizer, NumbersAddedTokensFromTheSizeOfTheVocabulary) {
  Json json = minimal();
  json["added_tokens"] =
      parse_json(R"([{"id": 900, "content": "new"}, {"id": 901, "content": "ab"}])", "t").value();
  const Tokenizer tokenizer = made(json);
  EXPECT_EQ(tokenizer.token_id("new"), 3);
  EXPECT_EQ(tokenizer.token_id("ab"), 2);
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  EXPECT_EQ(tokenizer.piece(3), "new");
  EXPECT_EQ(tokenizer.token_id("nothing"), std::nullopt);
}

formats::GgufMetadata gguf_metadata(const std::vector<std::byte>& bytes) {
  auto gguf = formats::parse_gguf(bytes, "test");
  CHECK(gguf.ok());
  return gguf->metadata;
}

TEST(Tokenizer, ListsKnownPreTokenizersForAnUnknownOne) {
  auto file = read_text_file(golden_path("gguf_smollm.gguf"));
  ASSERT_TRUE(file.ok());
  const size_t at = file->find("smollm");
  ASSERT_NE(at, std::string::npos);
  file->replace(at, 6, "smallm");
  const auto* begin = reinterpret_cast<const std::byte*>(file->data());
  const std::vector<std::byte> bytes(begin, begin + file->size());
  const auto data = formats::read_gguf_tokenizer(gguf_metadata(bytes));
  ASSERT_FALSE(data.ok());
  EXPECT_NE(data.error().message().find("llama-bpe"), std::string::npos);
}

}  // namespace
}  // namespace espalier::text
