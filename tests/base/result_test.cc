#include "espalier/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace espalier {
namespace {

Error full_error() {
  return Error{.what = "tensor 'x' is wrong",
               .expected = "[2]",
               .actual = "[3]",
               .fix = "Convert it again."};
}

TEST(Error, MessageLeavesOutWhatIsEmpty) {
  EXPECT_EQ(full_error().message(),
            "tensor 'x' is wrong: expected [2], got [3]. Convert it again.");
  Error error = full_error();
  error.expected.clear();
  EXPECT_EQ(error.message(), "tensor 'x' is wrong: got [3]. Convert it again.");
  error.actual.clear();
  error.fix.clear();
  EXPECT_EQ(error.message(), "tensor 'x' is wrong");
}

TEST(Error, ContextIsSaidOnce) {
  const Error error = full_error().with_context("model.gguf");
  EXPECT_EQ(error.with_context("model.gguf").what, error.what);
  EXPECT_NE(error.with_context("other.gguf").what, error.what);
}

TEST(Error, ContextComesFirstAndKeepsTheRest) {
  const Error error = full_error().with_context("model.gguf");
  EXPECT_EQ(error.what, "model.gguf: tensor 'x' is wrong");
  EXPECT_EQ(error.expected, "[2]");
  EXPECT_EQ(error.fix, "Convert it again.");
}

Result<int> half_of(int number) {
  if (number % 2 != 0) return Error{.what = "odd", .expected = {}, .actual = {}, .fix = {}};
  return number / 2;
}

Result<int> quarter_of(int number) {
  ASSIGN_OR_RETURN(const int half, half_of(number));
  return half_of(half);
}

Status check_twice(int number, int& checks) {
  RETURN_IF_ERROR(half_of(number));
  ++checks;
  RETURN_IF_ERROR(half_of(number / 2));
  ++checks;
  return Ok{};
}

TEST(Result, MacrosReturnTheFirstError) {
  EXPECT_EQ(*quarter_of(12), 3);
  EXPECT_EQ(quarter_of(6).error().what, "odd");
  EXPECT_EQ(quarter_of(3).error().what, "odd");
  int checks = 0;
  EXPECT_TRUE(check_twice(8, checks).ok());
  EXPECT_EQ(checks, 2);
  EXPECT_FALSE(check_twice(2, checks).ok());
  EXPECT_EQ(checks, 3);
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, AnErrorAndAStringAreDifferentContents) {
  const Result<std::string> text = std::string("odd");
  EXPECT_TRUE(text.ok());
  EXPECT_EQ(text->size(), 3u);
}

TEST(ResultDeathTest, TheValueOfAnErrorIsABugThatPrintsTheError) {
  EXPECT_DEATH((void)half_of(1).value(), "value of an error: odd");
  EXPECT_DEATH((void)half_of(2).error(), "CHECK");
}

TEST(CheckDeathTest, ComparisonsPrintBothValues) {
  const int rows = 3;
  EXPECT_DEATH(CHECK_EQ(rows, 4), "rows == 4.*3 against 4");
  EXPECT_DEATH(CHECK_LT(rows, 2), "rows < 2.*3 against 2");
  CHECK_GE(rows, 3);
}

}  // namespace
}  // namespace espalier
