#include "espalier/units/cpu/state_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "espalier/base/check.h"
#include "espalier/units/cpu/state.h"

namespace espalier::units::cpu {
namespace {

constexpr char kMagic[8] = {'E', 'S', 'P', 'S', 'T', 'A', 'T', 'E'};
constexpr uint32_t kVersion = 1;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t state_count;
  int64_t committed;
};

struct StateRecord {
  uint32_t kind;
  uint32_t element_bytes;
  int64_t channels, kv_heads, head_dim, rows;
};

StateRecord record_of(const StateLayout& layout, const StateShape& shape) {
  const bool is_kv = shape.kind == program::StateKind::kKeyValue;
  return {
      .kind = static_cast<uint32_t>(shape.kind),
      .element_bytes = is_kv ? static_cast<uint32_t>(layout.kv_bits / 8) : uint32_t{sizeof(float)},
      .channels = shape.channels,
      .kv_heads = shape.kv_heads,
      .head_dim = shape.head_dim,
      .rows = shape.rows};
}

// Bytes of content that one committed position needs, and that the convolutions need.
struct ContentSize {
  int64_t bytes_per_position = 0;
  int64_t fixed_bytes = 0;
};

ContentSize content_size(const StateLayout& layout) {
  ContentSize size;
  for (const StateShape& shape : layout.states) {
    if (shape.kind == program::StateKind::kKeyValue) {
      size.bytes_per_position += layout.kv_bits == 8 ? Int8KeyValueRows::position_bytes(shape)
                                                     : KeyValueRows::position_bytes(shape);
    } else {
      size.fixed_bytes += shape.rows * shape.channels * static_cast<int64_t>(sizeof(float));
    }
  }
  return size;
}

Error mismatch(std::string what, std::string expected, std::string actual) {
  return Error{.what = std::move(what),
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "Export the state again with this model and this version."};
}

std::string text_of(const StateRecord& record) {
  return fmt::format("kind {}, {} bytes an element, {} channels, {} heads of {}, {} rows",
                     record.kind, record.element_bytes, record.channels, record.kv_heads,
                     record.head_dim, record.rows);
}

template <typename T>
T take(std::span<const std::byte>& bytes) {
  T value;
  CHECK_GE(bytes.size(), sizeof(T));
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return value;
}

Status check_header(const Header& header, const StateLayout& layout) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return mismatch("these bytes are no saved state", "\"ESPSTATE\" at the start", "other bytes");
  }
  if (header.version != kVersion) {
    return mismatch("the saved state has another version", std::to_string(kVersion),
                    std::to_string(header.version));
  }
  if (header.state_count != layout.states.size()) {
    return mismatch("the saved state belongs to another model",
                    fmt::format("{} states", layout.states.size()),
                    std::to_string(header.state_count));
  }
  if (header.committed < 0 || header.committed > layout.buckets.back()) {
    return mismatch("the saved state has a length that this model cannot hold",
                    fmt::format("0 to {} positions", layout.buckets.back()),
                    std::to_string(header.committed));
  }
  return Ok{};
}

}  // namespace

StateBytesWriter::StateBytesWriter(const StateLayout& layout, int64_t committed) {
  const ContentSize size = content_size(layout);
  bytes_.resize(sizeof(Header) + layout.states.size() * sizeof(StateRecord) +
                static_cast<size_t>(size.fixed_bytes + committed * size.bytes_per_position));
  Header header{.magic = {},
                .version = kVersion,
                .state_count = static_cast<uint32_t>(layout.states.size()),
                .committed = committed};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  append(std::as_bytes(std::span(&header, 1)));
  for (const StateShape& shape : layout.states) {
    const StateRecord record = record_of(layout, shape);
    append(std::as_bytes(std::span(&record, 1)));
  }
}

void StateBytesWriter::append(std::span<const std::byte> bytes) {
  CHECK_LE(bytes.size(), bytes_.size() - written_);
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(written_));
  written_ += bytes.size();
}

Result<StateBytesReader> StateBytesReader::open(const StateLayout& layout,
                                                std::span<const std::byte> bytes) {
  const size_t head_bytes = sizeof(Header) + layout.states.size() * sizeof(StateRecord);
  if (bytes.size() < head_bytes) {
    return mismatch("the saved state is truncated", fmt::format("at least {} bytes", head_bytes),
                    std::to_string(bytes.size()));
  }
  const auto header = take<Header>(bytes);
  RETURN_IF_ERROR(check_header(header, layout));
  for (size_t id = 0; id < layout.states.size(); ++id) {
    const auto actual = take<StateRecord>(bytes);
    const StateRecord expected = record_of(layout, layout.states[id]);
    if (std::memcmp(&actual, &expected, sizeof(actual)) != 0) {
      return mismatch(fmt::format("state {} of the saved state has another shape", id),
                      text_of(expected), text_of(actual));
    }
  }
  const ContentSize size = content_size(layout);
  const int64_t content_bytes = size.fixed_bytes + header.committed * size.bytes_per_position;
  if (static_cast<int64_t>(bytes.size()) != content_bytes) {
    return mismatch("the saved state has the wrong size",
                    fmt::format("{} bytes of content", content_bytes),
                    std::to_string(bytes.size()));
  }
  return StateBytesReader(bytes, header.committed);
}

void StateBytesReader::read(std::span<std::byte> out) {
  CHECK_LE(out.size(), content_.size());
  std::copy_n(content_.begin(), out.size(), out.begin());
  content_ = content_.subspan(out.size());
}

}  // namespace espalier::units::cpu
