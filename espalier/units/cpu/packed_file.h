// A packed file: the packed matrices of a model as they lie in memory, for the next load to map.
//
//   head     "espalier packed weights", the key, zeros up to a page
//   payload  the blocks, one after the other
//   table    uint64 [blocks]: the checksum of each block
//
// Nothing in it is believed: whoever reads one says what it must hold, the head is compared byte by
// byte, the size is exact and every block is checked. So a file that is half written, damaged or of
// another model is an error, never a wrong weight. Numbers are those of the machine: files are not
// for others. Where files lie and how long they live is the affair of packed_cache.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/threads.h"

namespace espalier::units::cpu {

// A part of the payload that one thread packs and checks; behind it begins the next.
struct PackedBlock {
  int64_t offset = 0;  // in the payload
  int64_t byte_count = 0;
  // Where its middle lies in its matrix, from 0 up to 1. Memory belongs to the node of the thread that touches it first: of
  // n threads the one whose share of every matrix it is, floor(place * n), unless that is busy and another is not.
  double place = 0;
};

// What a payload holds, and how it is made.
struct PackedContent {
  std::string key;  // text: all that the payload depends on
  std::vector<PackedBlock> blocks;
  std::function<Status(size_t block, std::byte* out)> pack;  // writes all bytes; any thread

  int64_t byte_count() const {
    return blocks.empty() ? 0 : blocks.back().offset + blocks.back().byte_count;
  }
};

// A payload in memory. `owner` keeps it there.
struct PackedPayload {
  const std::byte* bytes = nullptr;  // aligned to cache lines
  std::shared_ptr<const void> owner;
};

// All of it in memory of this process.
Result<PackedPayload> pack_into_memory(const PackedContent& content, ThreadPool& pool);

int64_t packed_file_bytes(const PackedContent& content);
// Packs into a file that appears under `path` when it is whole. In memory are a few blocks at most.
Status write_packed_file(const std::string& path, const PackedContent& content, ThreadPool& pool);
// The payload in the bytes of a packed file, after a check of all of them; errors call the file by
// `name`.
Result<const std::byte*> find_payload(const std::string& name, std::span<const std::byte> bytes,
                                      const PackedContent& content, ThreadPool& pool);
// Maps the file and finds the payload in it, which also leaves its pages mapped.
Result<PackedPayload> read_packed_file(const std::string& path, const PackedContent& content,
                                       ThreadPool& pool);

}  // namespace espalier::units::cpu
