#include "espalier/base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>

#include "espalier/base/check.h"

namespace espalier {
namespace {

constexpr size_t kBufferBytes = 1u << 20;  // pieces are small, system calls are not free
constexpr int kNames = 100;                // tried before giving up; one is enough

Error write_problem(const std::string& path) {
  return Error{.what = fmt::format("cannot write '{}'", path),
               .expected = {},
               .actual = std::strerror(errno),
               .fix = "Check free space and permissions; a file of this name is unchanged."};
}

// What is there under the name already.
struct Place {
  std::string path;            // behind links, so that these stay
  std::optional<mode_t> mode;  // absent: nothing is there
};

Result<Place> examine(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Place{path, std::nullopt};
    return write_problem(path);
  }
  char target[PATH_MAX];
  if (::realpath(path.c_str(), target) == nullptr || ::stat(target, &info) != 0) {
    return write_problem(path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{.what = fmt::format("'{}' cannot be replaced by a file", path),
                 .expected = "a regular file, or a name that is free",
                 .actual = S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket",
                 .fix = "Choose another name."};
  }
  // A rename asks for the folder only; who may not write the file may not replace it either.
  if (::access(target, W_OK) != 0) return write_problem(path);
  return Place{target, info.st_mode & 07777};
}

constexpr size_t kRandomDigits = 8;  // ".1a2b3c4d" behind the name

bool is_temporary(const std::string& name, bool (*is_final_name)(const std::string&)) {
  if (name.size() < 1 + kRandomDigits) return false;
  const size_t dot = name.size() - kRandomDigits - 1;
  return name[dot] == '.' && name.find_first_not_of("0123456789abcdef", dot + 1) == name.npos &&
         is_final_name(name.substr(0, dot));
}

// False: remove_abandoned() of another process was faster, between open and lock. Where a file
// system knows no locks, nobody removes anything.
bool lock_for_writing(int descriptor) {
  while (::flock(descriptor, LOCK_EX) != 0 && errno == EINTR) {
  }
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 && info.st_nlink > 0;
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  ASSIGN_OR_RETURN(const Place place, examine(path));
  std::random_device random;
  for (int attempt = 0; attempt < kNames; ++attempt) {
    std::string temporary = fmt::format("{}.{:08x}", place.path, random());
    // Not mkstemp, whose files are nobody else's: the umask decides here.
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) break;
    if (!lock_for_writing(descriptor)) {
      ::close(descriptor);
      continue;
    }
    if (place.mode) ::fchmod(descriptor, *place.mode);
    std::FILE* stream = ::fdopen(descriptor, "wb");
    if (stream == nullptr) {
      ::close(descriptor);
      ::unlink(temporary.c_str());
      break;
    }
    std::setvbuf(stream, nullptr, _IOFBF, kBufferBytes);
    return AtomicFile(place.path, std::move(temporary), stream);
  }
  return write_problem(path);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      temporary_(std::exchange(other.temporary_, "")),
      stream_(std::exchange(other.stream_, nullptr)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(stream_, other.stream_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (stream_ != nullptr) std::fclose(stream_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  CHECK(stream_ != nullptr);
  if (bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), stream_) == bytes.size()) {
    return Ok{};
  }
  return write_problem(path_);
}

Status AtomicFile::write_at(int64_t offset, std::span<const std::byte> bytes) const {
  CHECK(stream_ != nullptr);
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(::fileno(stream_), bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return write_problem(path_);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return Ok{};
}

Status AtomicFile::finish(Durability durability) {
  CHECK(stream_ != nullptr);
  AtomicFile file = std::move(*this);  // goes on every way out, unless it has been renamed
  const bool failed = std::ferror(file.stream_) != 0 || std::fflush(file.stream_) != 0 ||
                      (durability == Durability::kAtOnce && ::fsync(::fileno(file.stream_)) != 0);
  if (failed) return write_problem(file.path_);
  // The second descriptor keeps the lock until the file has its name: another process could take it for abandoned.
  const int lock = ::dup(::fileno(file.stream_));
  const bool done = std::fclose(std::exchange(file.stream_, nullptr)) == 0 &&
                    ::rename(file.temporary_.c_str(), file.path_.c_str()) == 0;
  Status status = done ? Status(Ok{}) : Status(write_problem(file.path_));
  if (done) file.temporary_.clear();
  if (lock >= 0) ::close(lock);
  return status;
}

void remove_abandoned(const std::string& folder, bool (*is_final_name)(const std::string&)) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (!is_temporary(at->path().filename().string(), is_final_name)) continue;
    const std::string path = at->path().string();
    // Writable, as network file systems ask for an exclusive lock.
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
    ::close(descriptor);
  }
}

}  // namespace espalier
