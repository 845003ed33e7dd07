// MappedFile: a whole file mapped read-only. Pages are read when touched; the mapping lives as long
// as the object. Immutable; safe to read from any thread. A file that another process truncates
// while it is mapped raises SIGBUS on access, as with every mmap reader: replace model files by
// rename.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "espalier/base/result.h"

namespace espalier {

class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  // Size, times, device and number of the file that was opened, as text: another one where it was
  // written to or replaced, without reading it.
  const std::string& identity() const { return identity_; }

 private:
  MappedFile(std::string path, std::string identity, std::span<const std::byte> bytes)
      : path_(std::move(path)), identity_(std::move(identity)), bytes_(bytes) {}
  std::string path_;
  std::string identity_;
  std::span<const std::byte> bytes_;
};

// Hints for bytes of a mapping that will be read soon: read_ahead() lets the system begin to read
// them and returns; map_pages() waits until they are there, which is much less work than a fault
// for each page. Of no effect on other memory.
void read_ahead(std::span<const std::byte> bytes);
void map_pages(std::span<const std::byte> bytes);

// A small text file (configuration, template, prompt), read whole; refuses more than `limit_bytes`.
Result<std::string> read_text_file(const std::string& path, size_t limit_bytes = 256u << 20);

}  // namespace espalier
