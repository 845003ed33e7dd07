#include "espalier/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace espalier {
namespace {

Error file_error(const std::string& what, const std::string& path) {
  return Error{.what = fmt::format("{} '{}'", what, path),
               .expected = {},
               .actual = std::strerror(errno),
               .fix = "Check the path and its permissions."};
}

// Closes on every way out. Opened with O_NONBLOCK: a pipe is refused instead of waited for.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Result<struct stat> examine_regular_file(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return file_error("cannot examine", path);
  if (!S_ISREG(info.st_mode)) {
    return Error{.what = fmt::format("'{}' cannot be read as a file", path),
                 .expected = "a regular file",
                 .actual = S_ISDIR(info.st_mode) ? "a directory" : "a special file",
                 .fix = "Name the file itself."};
  }
  return info;
}

// The time of the last change of anything (ctime) cannot be set back, as that of the content can.
std::string identity_of(const struct stat& info) {
#ifdef __APPLE__
  const timespec &written = info.st_mtimespec, &changed = info.st_ctimespec;
#else
  const timespec &written = info.st_mtim, &changed = info.st_ctim;
#endif
  return fmt::format("{} bytes, written at {}.{:09}, changed at {}.{:09}, device {}, inode {}",
                     info.st_size, written.tv_sec, written.tv_nsec, changed.tv_sec, changed.tv_nsec,
                     info.st_dev, info.st_ino);
}

void advise(std::span<const std::byte> bytes, int advice) {
  const auto page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = at / page_bytes * page_bytes;
  ::madvise(reinterpret_cast<void*>(first), at + bytes.size() - first, advice);
}

}  // namespace

void read_ahead(std::span<const std::byte> bytes) { advise(bytes, MADV_WILLNEED); }

#ifdef MADV_POPULATE_READ
void map_pages(std::span<const std::byte> bytes) { advise(bytes, MADV_POPULATE_READ); }
#else
void map_pages(std::span<const std::byte> bytes) { read_ahead(bytes); }
#endif

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return file_error("cannot open", path);
  ASSIGN_OR_RETURN(const struct stat info, examine_regular_file(file.fd, path));
  const auto size = static_cast<size_t>(info.st_size);
  std::string identity = identity_of(info);
  if (size == 0) {
    return std::shared_ptr<const MappedFile>(new MappedFile(path, std::move(identity), {}));
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) return file_error("cannot map", path);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, std::move(identity), {static_cast<const std::byte*>(address), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Result<std::string> read_text_file(const std::string& path, size_t limit_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return file_error("cannot open", path);
  ASSIGN_OR_RETURN(const struct stat info, examine_regular_file(file.fd, path));
  const auto size = static_cast<size_t>(info.st_size);
  if (size > limit_bytes) {
    return Error{.what = fmt::format("'{}' is too large", path),
                 .expected = fmt::format("at most {} bytes", limit_bytes),
                 .actual = fmt::format("{} bytes", size),
                 .fix = "Check that this is the right file."};
  }
  std::string text(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const ssize_t count = ::read(file.fd, text.data() + filled, size - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("cannot read", path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  text.resize(filled);
  return text;
}

}  // namespace espalier
