// AtomicFile: a file that appears under its name complete or not at all. What is written goes into
// a temporary file beside it, which finish() renames; without that the destructor removes it, so no
// error, full disk or early return leaves a half-written file. A new file gets the permissions that
// any new file gets (the process's umask), one that replaces another those of the other. A link
// stays, and the file behind it is replaced; devices, pipes and folders are refused. One thread at
// a time.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  // The file takes its name, or is removed; nothing can be written afterwards.
  Status finish();

 private:
  AtomicFile(std::string path, std::string temporary, std::FILE* stream)
      : path_(std::move(path)), temporary_(std::move(temporary)), stream_(stream) {}

  std::string path_;
  std::string temporary_;        // its name until it is renamed, then ""
  std::FILE* stream_ = nullptr;  // null after finish()
};

}  // namespace espalier
