#include "espalier/decode/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChainWindows, MakeEachRowTheParentOfTheNext) {
  const ChainWindows windows(4);
  const std::vector<TokenId> tokens = {7, 8, 9};
  const Window window = windows.chain(tokens, HeadKind::kLogits, 2);
  EXPECT_THAT(window.tokens, ElementsAre(7, 8, 9));
  EXPECT_THAT(window.parents, ElementsAre(-1, 0, 1));
  EXPECT_THAT(window.selected, ElementsAre(1, 2));
  EXPECT_EQ(window.head, HeadKind::kLogits);
  EXPECT_THAT(windows.path(4), ElementsAre(0, 1, 2, 3));
}

TEST(ChainWindows, AskForNoHeadWhereNoRowIsSelected) {
  const ChainWindows windows(1);
  const TokenId token = 3;
  const Window window = windows.chain({&token, 1}, HeadKind::kArgmax, 0);
  EXPECT_EQ(window.head, HeadKind::kNone);
  EXPECT_THAT(window.selected, IsEmpty());
}

TEST(ChainWindowsDeathTest, DieOnMoreTokensThanRows) {
  const ChainWindows windows(2);
  const std::vector<TokenId> tokens = {1, 2, 3};
  EXPECT_DEATH(windows.chain(tokens, HeadKind::kNone, 0), "row_count");
}

}  // namespace
}  // namespace espalier::decode
