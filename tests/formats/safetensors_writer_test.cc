#include "espalier/formats/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <random>

#include "espalier/formats/safetensors.h"
#include "tests/support/temporary_directory.h"

namespace espalier::formats {
namespace {

using Metadata = std::map<std::string, std::string>;

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const TemporaryDirectory directory;
  std::mt19937 random(3);
  std::vector<TensorDeclaration> declarations;
  std::vector<std::vector<float>> contents;
  for (int i = 0; i < 40; ++i) {
    const int64_t rows = random() % 5;
    const int64_t columns = random() % 300;
    declarations.push_back({"tensor " + std::to_string(random()) + "ß", {rows, columns}});
    auto& values = contents.emplace_back(static_cast<size_t>(rows * columns));
    for (float& value : values) value = static_cast<float>(random());
  }
  auto writer =
      SafetensorsWriter::create(directory / "out", declarations, Metadata{{"format", "pt"}});
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  for (const auto& values : contents) {
    const size_t half = values.size() / 2;  // in pieces of any size
    ASSERT_TRUE(writer->append(std::as_bytes(std::span(values).first(half))).ok());
    ASSERT_TRUE(writer->append(std::as_bytes(std::span(values).subspan(half))).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  const auto file = open_safetensors(directory / "out");
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->metadata, (Metadata{{"format", "pt"}}));
  ASSERT_EQ(file->tensors.size(), declarations.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    const TensorView& view = file->tensors.at(declarations[i].name);
    EXPECT_EQ(view.shape, declarations[i].shape);
    EXPECT_TRUE(std::ranges::equal(view.bytes, std::as_bytes(std::span(contents[i]))));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.bytes.data()) % alignof(float), 0u);
  }
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(SafetensorsWriter, WritesEveryDtypeOfTheFormat) {
  const TemporaryDirectory directory;
  const std::vector<TensorDeclaration> declarations = {{"bf16", {3}, Encoding::kBF16},
                                                       {"f8", {2}, Encoding::kF8E4M3},
                                                       {"scalar", {}, Encoding::kI64}};
  auto writer = SafetensorsWriter::create(directory / "out", declarations, {});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->append(std::vector<std::byte>(6 + 2 + 8)).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto file = open_safetensors(directory / "out");
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->tensors.at("bf16").encoding, Encoding::kBF16);
  EXPECT_EQ(file->tensors.at("f8").encoding, Encoding::kF8E4M3);
  EXPECT_EQ(file->tensors.at("scalar").element_count(), 1);
}

TEST(SafetensorsWriter, LeavesNothingBehindUnlessFinished) {
  const TemporaryDirectory directory;
  directory.write("out", "old content");
  {
    auto writer = SafetensorsWriter::create(directory / "out",
                                            std::vector<TensorDeclaration>{{"a", {4}}}, {});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->append(std::vector<std::byte>(8)).ok());
    EXPECT_EQ(directory.file_count(), 2u);
  }
  EXPECT_EQ(directory.file_count(), 1u);
  std::string content;
  std::getline(std::ifstream(directory / "out"), content);
  EXPECT_EQ(content, "old content");
}

// A limit on the size of files, for as long as it lives: the nearest thing to a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

TEST(SafetensorsWriter, AFullDiskIsAnErrorAndLeavesNothing) {
  const TemporaryDirectory directory;
  constexpr int64_t kRows = 64;
  constexpr size_t kRowBytes = 1u << 18;
  const std::vector<TensorDeclaration> declarations = {{"a", {kRows, kRowBytes}, Encoding::kU8}};
  bool failed = false;
  {
    const FileSizeLimit limit(3u << 20);
    auto writer = SafetensorsWriter::create(directory / "out", declarations, {});
    ASSERT_TRUE(writer.ok());
    for (int64_t row = 0; row < kRows; ++row)
      failed |= !writer->append(std::vector<std::byte>(kRowBytes)).ok();
    const auto finished = writer->finish();
    ASSERT_FALSE(finished.ok());
    EXPECT_THAT(finished.error().message(), testing::HasSubstr("free space"));
  }
  EXPECT_TRUE(failed);
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(SafetensorsWriter, SaysWhereItCannotWrite) {
  const TemporaryDirectory directory;
  const auto writer = SafetensorsWriter::create(directory / "absent/out", {}, {});
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.error().message(), testing::HasSubstr("absent/out"));
  std::filesystem::create_directory(directory / "folder");
  EXPECT_FALSE(SafetensorsWriter::create(directory / "folder", {}, {}).ok());
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(SafetensorsWriter, RefusesNamesThatAreNotUtf8) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(SafetensorsWriter::create(directory / "out",
                                         std::vector<TensorDeclaration>{{"\xff", {1}}}, {})
                   .ok());
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(SafetensorsWriterDeathTest, AppendingMoreOrLessThanDeclaredIsABug) {
  const TemporaryDirectory directory;
  const std::vector<TensorDeclaration> declarations = {{"a", {2}}};
  auto writer = SafetensorsWriter::create(directory / "out", declarations, {});
  EXPECT_DEATH((void)writer->append(std::vector<std::byte>(9)), "CHECK");
  EXPECT_DEATH((void)writer->finish(), "CHECK");
}

}  // namespace
}  // namespace espalier::formats
