// Sets of files: "name-00001-of-00003.gguf".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "espalier/formats/gguf.h"
#include "tests/formats/gguf_builder.h"
#include "tests/formats/hostile_bytes.h"
#include "tests/support/temporary_directory.h"

namespace espalier::formats {
namespace {

using testing::HasSubstr;

const std::string kGolden = ESPALIER_SOURCE_DIR "/tests/golden/formats/split/";

TEST(GgufSplit, AnyFileOfASetOpensAll) {
  for (const char* name :
       {"tiny-00001-of-00003.gguf", "tiny-00002-of-00003.gguf", "tiny-00003-of-00003.gguf"}) {
    const auto gguf = open_gguf(kGolden + name);
    ASSERT_TRUE(gguf.ok()) << gguf.error().message();
    EXPECT_EQ(gguf->owners.size(), 3u);
    EXPECT_TRUE(gguf->metadata.contains("general.architecture"));
    ASSERT_EQ(gguf->tensors.size(), 5u);
    for (int i = 0; i < 5; ++i) {
      std::vector<float> values(6);
      dequantize(Encoding::kF32, gguf->tensors.at("tensor " + std::to_string(i)).bytes, values);
      EXPECT_THAT(values, testing::Each(static_cast<float>(i)));
    }
  }
}

class GgufSet : public testing::Test {
 protected:
  void write(int number, const GgufBuilder& part) {
    directory_.write(fmt::format("m-{:05}-of-00002.gguf", number), part.build());
  }
  static GgufBuilder part(int number, int count, const std::string& tensor) {
    return GgufBuilder()
        .entry("split.no", GgufType::kUint16, static_cast<uint16_t>(number))
        .entry("split.count", GgufType::kUint16, static_cast<uint16_t>(count))
        .entry("split.tensors.count", GgufType::kInt32, int32_t{2})
        .floats(tensor, {8});
  }
  std::string open(const std::string& name = "m-00001-of-00002.gguf") {
    const auto gguf = open_gguf(directory_ / name);
    return gguf.ok() ? "" : gguf.error().message();
  }
  TemporaryDirectory directory_;
};

TEST_F(GgufSet, SaysWhichFileIsMissing) {
  write(1, part(0, 2, "a"));
  EXPECT_THAT(open(), HasSubstr("m-00002-of-00002.gguf"));
  write(2, part(1, 2, "b"));
  EXPECT_EQ(open(), "");
}

TEST_F(GgufSet, RejectsFilesOfAnotherSet) {
  write(1, part(0, 2, "a"));
  write(2, part(2, 3, "b"));
  EXPECT_THAT(open(), HasSubstr("expected file 2 of 2, got file 3 of 3"));
  write(2, part(1, 2, "a"));
  EXPECT_THAT(open(), HasSubstr("repeats tensor 'a'"));
  write(2, part(1, 2, "b").floats("c", {8}));
  EXPECT_THAT(open(), HasSubstr("expected 2 tensors, got 3"));
}

TEST_F(GgufSet, RejectsNumbersThatMakeNoSense) {
  write(1, part(2, 2, "a"));
  EXPECT_THAT(open(), HasSubstr("wrong split number"));
  directory_.write("whole.gguf", part(0, 0, "a").build());  // as written where nothing was split
  EXPECT_EQ(open("whole.gguf"), "");
  const GgufBuilder negative = GgufBuilder().entry("split.no", GgufType::kInt32, int32_t{-1});
  directory_.write("negative.gguf", negative.build());
  EXPECT_THAT(open("negative.gguf"), HasSubstr("wrong split number"));
  const GgufBuilder huge = GgufBuilder().entry("split.count", GgufType::kInt64, INT64_MAX);
  directory_.write("huge.gguf", huge.build());
  EXPECT_THAT(open("huge.gguf"), HasSubstr("wrong split number"));
}

TEST_F(GgufSet, SaysHowAFileOfASetMustBeCalled) {
  directory_.write("renamed.gguf", part(0, 2, "a").build());
  EXPECT_THAT(open("renamed.gguf"), HasSubstr("a name that ends with '-00001-of-00002.gguf'"));
}

}  // namespace
}  // namespace espalier::formats
