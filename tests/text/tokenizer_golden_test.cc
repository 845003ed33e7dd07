// Ids and texts against the libraries of the formats' authors:
// python/espalier_tools/golden/tokenizer.py.
#include <gtest/gtest.h>

#include "espalier/text/detokenizer.h"
#include "tests/text/golden_tokenizers.h"

namespace espalier::text {
namespace {

class TokenizerGolden : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerGolden, EncodesAsTheLibraryDoes) {
  const GoldenTokenizer golden = golden_tokenizer(GetParam());
  ASSERT_GT(golden.cases.at("encode").size(), 20u);
  for (const Json& test : golden.cases.at("encode")) {
    const auto text = test.at("text").get<std::string>();
    const auto ids = golden.tokenizer.encode(text, {.add_special_tokens = test.at("add")});
    ASSERT_TRUE(ids.ok()) << ids.error().message();
    EXPECT_EQ(*ids, test.at("ids").get<std::vector<TokenId>>()) << text;
  }
}

TEST_P(TokenizerGolden, DecodesAsTheLibraryDoesWholeAndStreamed) {
  const GoldenTokenizer golden = golden_tokenizer(GetParam());
  for (const Json& test : golden.cases.at("decode")) {
    const auto ids = test.at("ids").get<std::vector<TokenId>>();
    const bool skips_special = test.at("skip");
    EXPECT_EQ(golden.tokenizer.decode(ids, skips_special), test.at("text")) << test;
    Detokenizer detokenizer(golden.tokenizer, skips_special);
    std::string streamed;
    for (const TokenId id : ids) streamed += detokenizer.push(id);
    EXPECT_EQ(streamed + detokenizer.finish(), test.at("text")) << test;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden, testing::ValuesIn(golden_tokenizer_names()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace espalier::text
