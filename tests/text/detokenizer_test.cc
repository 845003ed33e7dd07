#include "espalier/text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "espalier/base/utf8.h"
#include "tests/text/golden_tokenizers.h"

namespace espalier::text {
namespace {

TEST(Detokenizer, NeverEmitsBrokenUtf8AndLosesNothing) {
  std::mt19937 random(5);
  for (const std::string& name : golden_tokenizer_names()) {
    const GoldenTokenizer golden = golden_tokenizer(name);
    const int64_t limit = golden.tokenizer.vocab_size() + 2;  // ids without a token among them
    for (int round = 0; round < 60; ++round) {
      std::vector<TokenId> ids(1 + random() % 40);
      for (TokenId& id : ids) id = static_cast<TokenId>(random() % static_cast<uint64_t>(limit));
      const bool skips_special = random() % 2 == 0;
      Detokenizer detokenizer(golden.tokenizer, skips_special);
      std::string joined;
      for (const TokenId id : ids) {
        const std::string text = detokenizer.push(id);
        EXPECT_FALSE(invalid_utf8_at(text)) << name;
        joined += text;
      }
      joined += detokenizer.finish();
      EXPECT_EQ(joined, golden.tokenizer.decode(ids, skips_special)) << name;
    }
  }
}

TEST(Detokenizer, HoldsTheBytesOfACharacterUntilItIsWhole) {
  const GoldenTokenizer golden = golden_tokenizer("gguf_gpt-2");
  Detokenizer detokenizer(golden.tokenizer);
  const auto push = [&](std::string_view byte_text) {
    return detokenizer.push(*golden.tokenizer.token_id(byte_text));
  };
  EXPECT_EQ(push("a"), "a");
  EXPECT_EQ(push("Ã"), "");   // byte C3
  EXPECT_EQ(push("©"), "é");  // byte A9
  EXPECT_EQ(push("ð"), "");   // byte F0, never finished
  EXPECT_EQ(push("b"), "\uFFFDb");
  EXPECT_EQ(push("â"), "");  // byte E2
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
}

TEST(Detokenizer, StripsTheFirstBlankOfSentencePieceOnly) {
  const GoldenTokenizer golden = golden_tokenizer("sentencepiece_0");
  const auto ids = golden.tokenizer.encode("Hello, world! Hello, world!");
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(golden.tokenizer.decode(*ids), "Hello, world! Hello, world!");
}

TEST(Detokenizer, GivesTheBytesOfSingleTokens) {
  const GoldenTokenizer bytes = golden_tokenizer("gguf_gpt-2");
  EXPECT_EQ(bytes.tokenizer.token_bytes(*bytes.tokenizer.token_id("Ġ")), " ");
  EXPECT_EQ(bytes.tokenizer.token_bytes(*bytes.tokenizer.token_id("Ã")), "\xC3");
  EXPECT_EQ(bytes.tokenizer.token_bytes(*bytes.tokenizer.token_id("<|end|>")), "<|end|>");
  EXPECT_EQ(bytes.tokenizer.token_bytes(-1), "");
  EXPECT_EQ(bytes.tokenizer.token_bytes(INT32_MAX), "");
  const GoldenTokenizer pieces = golden_tokenizer("sentencepiece_0");
  EXPECT_EQ(pieces.tokenizer.token_bytes(*pieces.tokenizer.token_id("<0xC3>")), "\xC3");
  EXPECT_EQ(pieces.tokenizer.token_bytes(*pieces.tokenizer.token_id("▁")), " ");
}

}  // namespace
}  // namespace espalier::text
