#include "espalier/units/cpu/packed_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "espalier/base/atomic_file.h"
#include "espalier/base/checksum.h"
#include "espalier/base/clock.h"

namespace espalier::units::cpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".packed";
constexpr const char* kAnotherFolder = "Choose another folder, or none: see --packed-cache.";

constexpr size_t kNameDigits = 16;

// Whether a file is called as packed_file_path() calls them: nobody else's file is touched.
bool is_packed_file_name(const std::string& name) {
  return name.size() == kNameDigits + std::string_view(kSuffix).size() &&
         name.find_first_not_of("0123456789abcdef") == kNameDigits && name.ends_with(kSuffix);
}

struct StoredFile {
  fs::path path;
  int64_t byte_count = 0;
  fs::file_time_type last_use;
};

// The packed files of a folder but that of `own_path`, the one that was not used for the longest
// time first. Files that vanish meanwhile are of no interest.
std::vector<StoredFile> other_files(const std::string& folder, const std::string& own_path) {
  std::vector<StoredFile> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_packed_file_name(at->path().filename().string()) || at->path() == own_path) continue;
    std::error_code gone;
    StoredFile file = {at->path(), static_cast<int64_t>(at->file_size(gone)), {}};
    if (!gone) file.last_use = at->last_write_time(gone);
    if (!gone) files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &StoredFile::last_use);
  return files;
}

Status make_room(const std::string& folder, const std::string& own_path, int64_t needed_bytes,
                 int64_t limit_bytes) {
  if (needed_bytes > limit_bytes) {
    return Error{.what = "they do not fit into the folder of packed weights",
                 .expected = fmt::format("at most {} bytes", limit_bytes),
                 .actual = fmt::format("{} bytes", needed_bytes),
                 .fix = kAnotherFolder};
  }
  const std::vector<StoredFile> files = other_files(folder, own_path);
  int64_t total_bytes = needed_bytes;
  for (const StoredFile& file : files) total_bytes += file.byte_count;
  for (const StoredFile& file : files) {
    if (total_bytes <= limit_bytes) break;
    std::error_code error;
    if (fs::remove(file.path, error)) total_bytes -= file.byte_count;
  }
  return Ok{};
}

// At most half of what is free is taken: packed weights are a convenience, other files are not.
Status check_free_space(const std::string& folder, int64_t needed_bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available / 2 >= static_cast<uintmax_t>(needed_bytes)) return Ok{};
  return Error{.what = fmt::format("'{}' has too little free space", folder),
               .expected = fmt::format("{} bytes, twice what they take", 2 * needed_bytes),
               .actual = fmt::format("{} bytes", space.available),
               .fix = kAnotherFolder};
}

Status make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return Ok{};
  return Error{.what = fmt::format("the folder '{}' cannot be made", folder),
               .expected = {},
               .actual = error.message(),
               .fix = kAnotherFolder};
}

Status store(const std::string& path, const PackedContent& content, const PackedCache& cache,
             ThreadPool& pool) {
  RETURN_IF_ERROR(make_folder(cache.folder));
  remove_abandoned(cache.folder, is_packed_file_name);
  const int64_t needed_bytes = packed_file_bytes(content);
  RETURN_IF_ERROR(make_room(cache.folder, path, needed_bytes, cache.limit_bytes));
  RETURN_IF_ERROR(check_free_space(cache.folder, needed_bytes));
  return write_packed_file(path, content, pool);
}

// From the folder, packing into it where needed; what is in the way becomes a note. No payload: it
// was of no use.
PackedWeights through_folder(const PackedContent& content, const PackedCache& cache,
                             ThreadPool& pool) {
  PackedWeights weights;
  weights.report.path = packed_file_path(cache.folder, content.key);
  const std::string& path = weights.report.path;
  const auto try_to_read = [&](PackedOrigin origin) {
    auto payload = read_packed_file(path, content, pool);
    if (!payload.ok()) {
      weights.report.notes.push_back(payload.error().message());
      return false;
    }
    weights.payload = std::move(payload).value();
    weights.report.origin = origin;
    return true;
  };
  std::error_code error;
  if (fs::exists(path, error) && try_to_read(PackedOrigin::kCache)) {
    // The time of its last use; where it cannot be written, it need not be.
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return weights;
  }
  const Status stored = store(path, content, cache, pool);
  if (stored.ok()) {
    try_to_read(PackedOrigin::kWritten);
  } else {
    weights.report.notes.push_back("packed weights are not kept: " + stored.error().message());
  }
  return weights;
}

}  // namespace

std::string packed_file_path(const std::string& folder, const std::string& key) {
  const uint64_t name = checksum(std::as_bytes(std::span(key)));
  return (fs::path(folder) / fmt::format("{:016x}{}", name, kSuffix)).string();
}

Result<PackedWeights> obtain_packed_weights(const PackedContent& content, const PackedCache& cache,
                                            ThreadPool& pool) {
  const Stopwatch watch;
  PackedWeights weights;
  if (!cache.folder.empty()) weights = through_folder(content, cache, pool);
  if (weights.report.origin == PackedOrigin::kMemory) {
    weights.report.path.clear();
    ASSIGN_OR_RETURN(weights.payload, pack_into_memory(content, pool));
  }
  weights.report.elapsed_ms = watch.elapsed_ms();
  return weights;
}

}  // namespace espalier::units::cpu
