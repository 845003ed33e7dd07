// AtomicFile: a file that appears under its name complete or not at all. What is written goes into
// a temporary file beside it, which finish() renames; without that the destructor removes it, so no
// error, full disk or early return leaves a half-written file. A new file gets the permissions that
// any new file gets (the process's umask), one that replaces another those of the other. A link
// stays, and the file behind it is replaced; devices, pipes and folders are refused.
//
// The temporary file is locked as long as it is written, so that one whose process was killed can
// be told from one that is still alive (remove_abandoned). One thread at a time, but for
// write_at().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

// Whether a file that was finished survives a power failure. kWhenWritten leaves the time to the
// system, for files whose damage is noticed and can be undone.
enum class Durability : uint8_t { kAtOnce, kWhenWritten };

class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  // At a place of its own, by any thread. A file is written by write() or by this, not both.
  Status write_at(int64_t offset, std::span<const std::byte> bytes) const;
  // The file takes its name, or is removed; nothing can be written afterwards.
  Status finish(Durability durability = Durability::kAtOnce);

 private:
  AtomicFile(std::string path, std::string temporary, std::FILE* stream)
      : path_(std::move(path)), temporary_(std::move(temporary)), stream_(stream) {}

  std::string path_;
  std::string temporary_;        // its name until it is renamed, then ""
  std::FILE* stream_ = nullptr;  // null after finish()
};

// Removes what processes that were killed left in `folder` of files with names of that kind.
// Temporary files that a living process writes stay; whatever cannot be removed stays too.
void remove_abandoned(const std::string& folder, bool (*is_final_name)(const std::string&));

}  // namespace espalier
