#include "espalier/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "espalier/base/mapped_file.h"
#include "tests/support/temporary_directory.h"

namespace espalier {
namespace {

Status write_text(const std::string& path, std::string_view text) {
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  RETURN_IF_ERROR(file.write(std::as_bytes(std::span(text))));
  return file.finish();
}

TEST(AtomicFile, ReplacesTheFileOrLeavesItAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("file", "old");
  ASSERT_TRUE(write_text(path, "new").ok());
  EXPECT_EQ(*read_text_file(path), "new");
  EXPECT_EQ(directory.file_count(), 1u);
  EXPECT_FALSE(write_text(directory / "absent/file", "").ok());
  std::filesystem::create_directory(directory / "folder");
  EXPECT_FALSE(write_text(directory / "folder", "").ok());
  EXPECT_EQ(directory.file_count(), 2u);
}

TEST(AtomicFile, LeavesNothingBehindUnlessFinished) {
  const TemporaryDirectory directory;
  {
    AtomicFile file = AtomicFile::create(directory / "file").value();
    const AtomicFile moved = std::move(file);  // the name goes along
    EXPECT_EQ(directory.file_count(), 1u);
  }
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(AtomicFile, HasThePermissionsOfAnyNewFile) {
  const TemporaryDirectory directory;
  for (const mode_t mask : {022, 077, 027}) {
    const mode_t old = ::umask(mask);
    const Status written = write_text(directory / "file", "x");
    ::umask(old);
    ASSERT_TRUE(written.ok());
    struct stat info {};
    ASSERT_EQ(::stat((directory / "file").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
  }
}

}  // namespace
}  // namespace espalier
