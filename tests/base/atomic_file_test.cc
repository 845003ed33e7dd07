#include "espalier/base/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
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
    std::filesystem::remove(directory / "file");  // replaced, it would keep them
  }
}

TEST(AtomicFile, KeepsThePermissionsOfTheFileThatItReplaces) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("file", "old");
  for (const mode_t mode : {0600, 0664, 0755}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    ASSERT_TRUE(write_text(path, "new").ok());
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, mode);
  }
}

TEST(AtomicFile, ReplacesTheFileBehindALinkAndKeepsTheLink) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "folder");
  const std::string target = directory.write("folder/file", "old");
  std::filesystem::create_symlink("folder/file", directory / "link");
  std::filesystem::create_symlink("link", directory / "second");
  ASSERT_TRUE(write_text(directory / "second", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "second"));
  EXPECT_EQ(*read_text_file(target), "new");
  std::filesystem::create_symlink("nowhere", directory / "dangling");
  EXPECT_FALSE(write_text(directory / "dangling", "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "dangling"));
}

int socket_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return descriptor;
}

TEST(AtomicFile, RefusesWhatIsNoRegularFileAndLeavesItThere) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "folder");
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  const int socket = socket_at(directory / "socket");
  std::vector<std::string> names = {"folder", "fifo", "socket"};
  // A private null device, where this process may make one.
  if (::mknod((directory / "device").c_str(), S_IFCHR | 0600, 1 << 8 | 3) == 0) {
    names.emplace_back("device");
  }
  std::filesystem::create_symlink("fifo", directory / "link");
  names.emplace_back("link");
  for (const std::string& name : names) {
    const auto before = std::filesystem::symlink_status(directory / name).type();
    const Status written = write_text(directory / name, "x");
    ASSERT_FALSE(written.ok()) << name;
    EXPECT_THAT(written.error().message(), testing::HasSubstr("cannot be replaced by a file"));
    EXPECT_EQ(std::filesystem::symlink_status(directory / name).type(), before) << name;
  }
  EXPECT_EQ(directory.file_count(), names.size());
  ::close(socket);
}

TEST(AtomicFile, IsWrittenAtPlacesInAnyOrder) {
  const TemporaryDirectory directory;
  AtomicFile file = AtomicFile::create(directory / "file").value();
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  ASSERT_TRUE(file.write_at(6, bytes("world")).ok());
  ASSERT_TRUE(file.write_at(0, bytes("hello ")).ok());
  ASSERT_TRUE(file.finish(Durability::kWhenWritten).ok());
  EXPECT_EQ(*read_text_file(directory / "file"), "hello world");
}

bool is_packed(const std::string& name) { return name.ends_with(".packed"); }

TEST(AtomicFile, OfAKilledProcessIsRemovedAndOfALivingOneIsNot) {
  const TemporaryDirectory directory;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = AtomicFile::create(directory / "a.packed");
    const bool told = ::write(ends[1], "x", 1) == 1;
    while (file.ok() && told) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  directory.write("a.packed", "finished");
  directory.write("a.packed.old", "not a temporary file");
  directory.write("note.1234abcd", "of somebody else");
  ASSERT_EQ(directory.file_count(), 4u);
  remove_abandoned(directory.path(), is_packed);
  EXPECT_EQ(directory.file_count(), 4u);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  remove_abandoned(directory.path(), is_packed);
  EXPECT_EQ(directory.file_count(), 3u);
  remove_abandoned(directory / "absent", is_packed);
}

}  // namespace
}  // namespace espalier
