#include "espalier/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/support/temporary_directory.h"

namespace espalier {
namespace {

using testing::HasSubstr;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(MappedFile, ShowsTheContentForAsLongAsItLives) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("file", "some content");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path);
  EXPECT_EQ(text_of((*file)->bytes()), "some content");
  EXPECT_EQ((*file)->path(), path);
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryDirectory directory;
  const auto file = MappedFile::open(directory.write("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST(MappedFile, HasAnotherIdentityOnceItIsWrittenToOrReplaced) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("file", "old");
  const auto identity = [&] { return MappedFile::open(path).value()->identity(); };
  const std::string first = identity();
  EXPECT_EQ(identity(), first);
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(100));
  const std::string second = identity();
  EXPECT_NE(second, first);
  const auto time = std::filesystem::last_write_time(path);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(20));  // beyond the clock of the file system
  directory.write("file", "wOw");
  std::filesystem::last_write_time(path, time);  // set back
  const std::string third = identity();
  EXPECT_NE(third, second);
  directory.write("other", "new");
  std::filesystem::last_write_time(directory / "other", time);
  std::filesystem::rename(directory / "other", path);
  EXPECT_NE(identity(), third);
}

TEST(MappedFile, SaysWhyAFileCannotBeOpened) {
  const TemporaryDirectory directory;
  EXPECT_THAT(MappedFile::open(directory / "absent").error().message(), HasSubstr("No such file"));
  EXPECT_THAT(MappedFile::open(directory.path()).error().message(), HasSubstr("a directory"));
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(directory / "fifo").error().message(), HasSubstr("a special file"));
  EXPECT_THAT(read_text_file(directory / "fifo").error().message(), HasSubstr("a special file"));
}

TEST(TextFile, IsReadWholeWithinItsLimit) {
  const TemporaryDirectory directory;
  const std::string content("zero \0 byte\n", 12);
  const std::string path = directory.write("file", content);
  EXPECT_EQ(*read_text_file(path), content);
  EXPECT_EQ(*read_text_file(path, 12), content);
  EXPECT_THAT(read_text_file(path, 11).error().message(),
              HasSubstr("at most 11 bytes, got 12 bytes"));
  EXPECT_FALSE(read_text_file(directory / "absent").ok());
  EXPECT_FALSE(read_text_file(directory.path()).ok());
}

}  // namespace
}  // namespace espalier
