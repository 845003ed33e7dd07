#include "espalier/units/cpu/packed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "espalier/base/atomic_file.h"
#include "espalier/base/checksum.h"
#include "espalier/base/mapped_file.h"
#include "espalier/units/cpu/linear.h"

namespace espalier::units::cpu {
namespace {

constexpr std::string_view kTitle = "espalier packed weights\n";
constexpr int64_t kPageBytes = 4096;

int64_t head_bytes(const PackedContent& content) {
  const auto text_bytes = static_cast<int64_t>(kTitle.size() + content.key.size());
  return (text_bytes / kPageBytes + 1) * kPageBytes;
}

std::string head_of(const PackedContent& content) {
  std::string head = std::string(kTitle) + content.key;
  head.resize(static_cast<size_t>(head_bytes(content)));
  return head;
}

// The blocks of a content on their way through the threads, each to its own thread first.
class BlockQueue {
 public:
  BlockQueue(const PackedContent& content, int thread_count)
      : content_(content), thread_count_(thread_count), taken_(content.blocks.size()) {}

  // A block in front of the first one that failed; nothing where there is none. `next` is where the thread looks from: it
  // passes all blocks twice.
  std::optional<size_t> take(int thread, size_t& next) {
    const size_t count = taken_.size();
    for (; next < 2 * count; ++next) {
      const size_t block = next % count;
      const bool own = owner(content_.blocks[block]) == thread || next >= count;
      if (own && block < first_failed_ && !taken_[block].exchange(true)) return block;
    }
    return std::nullopt;
  }
  // All in front of it are still done, so that the first error is the same whatever the threads do.
  void fail(size_t block) {
    size_t first = first_failed_;
    while (block < first && !first_failed_.compare_exchange_weak(first, block)) {
    }
  }

 private:
  int owner(const PackedBlock& block) const {
    return static_cast<int>(block.place * thread_count_);
  }

  const PackedContent& content_;
  const int thread_count_;
  std::vector<std::atomic<bool>> taken_;
  std::atomic<size_t> first_failed_{std::numeric_limits<size_t>::max()};
};

// Calls work(thread, block) for all blocks on all threads; the error is that of the first block that has one.
template <typename Work>
Status for_each_block(const PackedContent& content, ThreadPool& pool, Work&& work) {
  std::vector<std::optional<Error>> errors(content.blocks.size());
  BlockQueue queue(content, pool.thread_count());
  std::atomic<bool> has_no_memory{false};
  pool.run([&](int thread) {
    try {
      size_t next = 0;
      while (const std::optional<size_t> block = queue.take(thread, next)) {
        const Status status = work(thread, *block);
        if (status.ok()) continue;
        errors[*block] = status.error();
        queue.fail(*block);
      }
    } catch (const std::bad_alloc&) {  // not even for the error
      has_no_memory = true;
      queue.fail(0);
    }
  });
  if (has_no_memory) {
    return out_of_memory_error("no memory to pack the weights", {},
                               "Use a smaller model or a smaller encoding.");
  }
  const auto first = std::ranges::find_if(errors, [](const auto& e) { return e.has_value(); });
  return first == errors.end() ? Status(Ok{}) : Status(**first);
}

std::span<const std::byte> bytes_of(const PackedBlock& block, const std::byte* payload) {
  return {payload + block.offset, static_cast<size_t>(block.byte_count)};
}

Error unusable(const std::string& name, std::string expected, std::string actual) {
  return Error{.what = fmt::format("'{}' does not hold the packed weights", name),
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "It is made anew."};
}

// Size and head; then the payload can be looked at.
Status check_shape(const std::string& name, std::span<const std::byte> bytes,
                   const PackedContent& content) {
  const int64_t expected_bytes = packed_file_bytes(content);
  if (static_cast<int64_t>(bytes.size()) != expected_bytes) {
    return unusable(name, fmt::format("{} bytes", expected_bytes),
                    fmt::format("{} bytes", bytes.size()));
  }
  const std::string head = head_of(content);
  if (std::memcmp(bytes.data(), head.data(), head.size()) != 0) {
    return unusable(name, "the head of this model", "another one");
  }
  return Ok{};
}

}  // namespace

int64_t packed_file_bytes(const PackedContent& content) {
  return head_bytes(content) + content.byte_count() +
         static_cast<int64_t>(content.blocks.size() * sizeof(uint64_t));
}

Result<PackedPayload> pack_into_memory(const PackedContent& content, ThreadPool& pool) {
  ASSIGN_OR_RETURN(AlignedBytes bytes, AlignedBytes::allocate_unfilled(content.byte_count()));
  std::byte* payload = bytes.data();
  RETURN_IF_ERROR(for_each_block(content, pool, [&](int, size_t block) {
    return content.pack(block, payload + content.blocks[block].offset);
  }));
  return PackedPayload{payload, std::make_shared<const AlignedBytes>(std::move(bytes))};
}

Status write_packed_file(const std::string& path, const PackedContent& content, ThreadPool& pool) {
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  const std::string head = head_of(content);
  const auto payload_at = static_cast<int64_t>(head.size());
  RETURN_IF_ERROR(file.write_at(0, std::as_bytes(std::span(head))));
  std::vector<uint64_t> table(content.blocks.size());
  std::vector<std::vector<std::byte>> buffers(static_cast<size_t>(pool.thread_count()));
  RETURN_IF_ERROR(for_each_block(content, pool, [&](int thread, size_t index) -> Status {
    const PackedBlock& block = content.blocks[index];
    std::vector<std::byte>& buffer = buffers[static_cast<size_t>(thread)];
    buffer.resize(static_cast<size_t>(block.byte_count));
    RETURN_IF_ERROR(content.pack(index, buffer.data()));
    table[index] = checksum(buffer);
    return file.write_at(payload_at + block.offset, buffer);
  }));
  RETURN_IF_ERROR(
      file.write_at(payload_at + content.byte_count(), std::as_bytes(std::span(table))));
  // A power failure may leave anything in it, which the checksums notice.
  return file.finish(Durability::kWhenWritten);
}

Result<const std::byte*> find_payload(const std::string& name, std::span<const std::byte> bytes,
                                      const PackedContent& content, ThreadPool& pool) {
  RETURN_IF_ERROR(check_shape(name, bytes, content));
  const std::byte* payload = bytes.data() + head_bytes(content);
  const std::byte* table = payload + content.byte_count();
  read_ahead(bytes);
  RETURN_IF_ERROR(for_each_block(content, pool, [&](int, size_t index) -> Status {
    const auto block = bytes_of(content.blocks[index], payload);
    uint64_t expected;
    std::memcpy(&expected, table + index * sizeof(expected), sizeof(expected));
    map_pages(block);
    const uint64_t actual = checksum(block);
    if (actual == expected) return Ok{};
    return unusable(name, fmt::format("block {} with checksum {:016x}", index, expected),
                    fmt::format("{:016x}", actual));
  }));
  return payload;
}

Result<PackedPayload> read_packed_file(const std::string& path, const PackedContent& content,
                                       ThreadPool& pool) {
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  ASSIGN_OR_RETURN(const std::byte* payload, find_payload(path, file->bytes(), content, pool));
  return PackedPayload{payload, std::move(file)};
}

}  // namespace espalier::units::cpu
