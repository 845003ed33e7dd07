#include "espalier/formats/gguf.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "espalier/base/mapped_file.h"
#include "espalier/base/utf8.h"
#include "espalier/formats/byte_reader.h"
#include "espalier/formats/gguf_types.h"
#include "espalier/formats/shape.h"

namespace espalier::formats {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr int kArrayDepthLimit = 8;      // nobody writes more than two
constexpr uint32_t kDimensionsLimit = 4;
constexpr int64_t kDefaultAlignment = 32;
constexpr uint64_t kShortestEntryBytes = 8 + 4 + 1;  // empty key, type, one byte
constexpr uint64_t kShortestTensorInfoBytes =
    8 + 4 + 4 + 8;  // empty name, no dimensions, type, offset

Error damaged(const std::string& what, const std::string& expected, const std::string& actual) {
  return Error{.what = what,
               .expected = expected,
               .actual = actual,
               .fix = "The file is damaged or incomplete: download or convert it again."};
}

// A tensor as the file describes it; its place in the data is checked when all are known.
struct TensorInfo {
  std::string name;
  TensorView view;
  uint64_t offset = 0;  // from the beginning of the data
  uint64_t bytes = 0;
};

class Parser {
 public:
  explicit Parser(std::span<const std::byte> file) : file_(file), reader_(file) {}

  Status read_header();
  Result<GgufMetadata::Entries> read_metadata();
  Status read_tensor_infos();
  // Points the tensors' views at their data.
  Result<std::map<std::string, TensorView>> place_tensors(int64_t alignment);

 private:
  Error truncated(const std::string& inside) const {
    return damaged(fmt::format("the file ends inside {}", inside), "more bytes",
                   fmt::format("{} bytes in all", file_.size()));
  }
  Status check_count(uint64_t count, uint64_t shortest_bytes, const std::string& what) const;
  bool take_string(std::span<const std::byte>& out);
  Result<std::string> read_name(const std::string& what);
  Result<GgufValue> read_value(uint32_t type_number, int depth);
  Result<GgufValue> read_array(int depth);
  Result<TensorInfo> read_tensor_info();
  Status read_shape(TensorInfo& tensor);

  std::span<const std::byte> file_;
  ByteReader reader_;
  uint64_t tensor_count_ = 0;
  uint64_t entry_count_ = 0;
  std::vector<TensorInfo> tensors_;
};

Status Parser::read_header() {
  uint32_t magic = 0;
  uint32_t version = 0;
  if (!reader_.read(magic) || magic != kMagic) {
    return damaged("not a GGUF file", "the letters GGUF at its beginning", "other bytes");
  }
  if (!reader_.read(version)) return truncated("the header");
  if (version != 2 && version != 3) {
    const bool is_big_endian = version != 0 && (version & 0xffff) == 0;
    return Error{.what = "this GGUF file cannot be read",
                 .expected = "version 2 or 3, little endian",
                 .actual = is_big_endian ? "a big-endian file" : fmt::format("version {}", version),
                 .fix = "Convert the model again with current tools."};
  }
  if (!reader_.read(tensor_count_) || !reader_.read(entry_count_)) return truncated("the header");
  RETURN_IF_ERROR(check_count(entry_count_, kShortestEntryBytes, "metadata entries"));
  return check_count(tensor_count_, kShortestTensorInfoBytes, "tensors");
}

// A count is believed only where the rest of the file could hold that many of the shortest things,
// so no allocation is larger than a small multiple of the file.
Status Parser::check_count(uint64_t count, uint64_t shortest_bytes, const std::string& what) const {
  const uint64_t most = reader_.remaining() / shortest_bytes;
  if (count <= most) return Ok{};
  return damaged(fmt::format("the file is too short for its number of {}", what),
                 fmt::format("at most {} in the {} bytes that are left", most, reader_.remaining()),
                 fmt::format("{}", count));
}

bool Parser::take_string(std::span<const std::byte>& out) {
  uint64_t length = 0;
  return reader_.read(length) && reader_.take(length, out);
}

Result<std::string> Parser::read_name(const std::string& what) {
  std::span<const std::byte> bytes;
  if (!take_string(bytes)) return truncated(what);
  std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (invalid_utf8_at(name)) return damaged(what + " is not valid", "UTF-8", "other bytes");
  return name;
}

Result<GgufMetadata::Entries> Parser::read_metadata() {
  GgufMetadata::Entries entries;
  for (uint64_t i = 0; i < entry_count_; ++i) {
    ASSIGN_OR_RETURN(std::string key, read_name("a metadata key"));
    uint32_t type = 0;
    if (!reader_.read(type)) return truncated(fmt::format("metadata '{}'", key));
    auto value = read_value(type, 0);
    if (!value.ok()) return value.error().with_context(fmt::format("metadata '{}'", key));
    const auto [entry, is_new] = entries.emplace(std::move(key), *value);
    if (!is_new) {
      return damaged(fmt::format("metadata '{}' appears twice", entry->first), "one value", "two");
    }
  }
  return entries;
}

Result<GgufValue> Parser::read_value(uint32_t type_number, int depth) {
  const GgufTypeInfo* info = gguf_type_info(type_number);
  if (info == nullptr) {
    return damaged("unknown type of value", "a type from 0 to 12", fmt::format("{}", type_number));
  }
  if (info->type == GgufType::kArray) return read_array(depth + 1);
  const size_t begin = reader_.offset();
  std::span<const std::byte> bytes;
  const bool complete =
      info->type == GgufType::kString ? take_string(bytes) : reader_.take(info->bytes, bytes);
  if (!complete) return truncated("a value");
  return GgufValue{
      .type = info->type, .count = 1, .bytes = file_.subspan(begin, reader_.offset() - begin)};
}

Result<GgufValue> Parser::read_array(int depth) {
  if (depth > kArrayDepthLimit) {
    return damaged("arrays are nested too deeply",
                   fmt::format("at most {} levels", kArrayDepthLimit), "more");
  }
  uint32_t type_number = 0;
  GgufValue array;
  array.type = GgufType::kArray;
  if (!reader_.read(type_number) || !reader_.read(array.count)) return truncated("an array");
  const GgufTypeInfo* element = gguf_type_info(type_number);
  if (element == nullptr) {
    return damaged("unknown type of array", "a type from 0 to 12", fmt::format("{}", type_number));
  }
  array.element_type = element->type;
  RETURN_IF_ERROR(check_count(array.count, element->bytes, "array elements"));
  const size_t begin = reader_.offset();
  if (element->type == GgufType::kString || element->type == GgufType::kArray) {
    for (uint64_t i = 0; i < array.count; ++i) RETURN_IF_ERROR(read_value(type_number, depth));
  } else {
    std::span<const std::byte> elements;
    CHECK(reader_.take(array.count * element->bytes, elements));  // check_count has looked
  }
  array.bytes = file_.subspan(begin, reader_.offset() - begin);
  return array;
}

Status Parser::read_tensor_infos() {
  RETURN_IF_ERROR(check_count(tensor_count_, kShortestTensorInfoBytes, "tensors"));
  tensors_.reserve(tensor_count_);
  for (uint64_t i = 0; i < tensor_count_; ++i) {
    ASSIGN_OR_RETURN(TensorInfo tensor, read_tensor_info());
    tensors_.push_back(std::move(tensor));
  }
  return Ok{};
}

Result<TensorInfo> Parser::read_tensor_info() {
  TensorInfo tensor;
  ASSIGN_OR_RETURN(tensor.name, read_name("a tensor's name"));
  RETURN_IF_ERROR(read_shape(tensor));
  uint32_t type_number = 0;
  if (!reader_.read(type_number) || !reader_.read(tensor.offset)) {
    return truncated(fmt::format("the description of tensor '{}'", tensor.name));
  }
  const GgufTensorType* type = gguf_tensor_type(type_number);
  if (type == nullptr || !type->encoding) {
    return Error{
        .what = fmt::format("tensor '{}' has a type that is not supported", tensor.name),
        .expected =
            "F64, F32, F16, BF16, I8 to I64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL",
        .actual = type != nullptr ? std::string(type->name) : fmt::format("type {}", type_number),
        .fix = "Use a file with another quantisation."};
  }
  tensor.view.encoding = *type->encoding;
  const auto bytes = tensor_bytes(tensor.view.encoding, tensor.view.shape);
  if (!bytes) {
    return damaged(fmt::format("tensor '{}' has an impossible shape", tensor.name),
                   fmt::format("whole blocks of {} elements in a row, and fewer than 2^63 bytes",
                               encoding_info(tensor.view.encoding).block_elements),
                   fmt::format("{} {}", type->name, shape_text(tensor.view.shape)));
  }
  tensor.bytes = static_cast<uint64_t>(*bytes);
  return tensor;
}

// The file has the innermost extent first.
Status Parser::read_shape(TensorInfo& tensor) {
  uint32_t dimensions = 0;
  if (!reader_.read(dimensions))
    return truncated(fmt::format("the shape of tensor '{}'", tensor.name));
  if (dimensions > kDimensionsLimit) {
    return damaged(fmt::format("tensor '{}' has too many dimensions", tensor.name),
                   fmt::format("at most {}", kDimensionsLimit), fmt::format("{}", dimensions));
  }
  for (uint32_t i = 0; i < dimensions; ++i) {
    uint64_t extent = 0;
    if (!reader_.read(extent))
      return truncated(fmt::format("the shape of tensor '{}'", tensor.name));
    tensor.view.shape.insert(tensor.view.shape.begin(),
                             static_cast<int64_t>(std::min<uint64_t>(extent, INT64_MAX)));
  }
  return Ok{};
}

Result<std::map<std::string, TensorView>> Parser::place_tensors(int64_t alignment_bytes) {
  const auto alignment = static_cast<uint64_t>(alignment_bytes);
  const uint64_t data_begin = (reader_.offset() + alignment - 1) / alignment * alignment;
  const auto data = file_.subspan(std::min<uint64_t>(data_begin, file_.size()));
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);  // empty ones first
  });
  std::map<std::string, TensorView> views;
  uint64_t previous_end = 0;
  for (TensorInfo& tensor : tensors_) {
    if (tensor.offset % alignment != 0 || tensor.offset < previous_end) {
      return damaged(fmt::format("the data of tensor '{}' is in the wrong place", tensor.name),
                     fmt::format("a multiple of {}, not below {}", alignment, previous_end),
                     fmt::format("{}", tensor.offset));
    }
    if (tensor.offset > data.size() || tensor.bytes > data.size() - tensor.offset) {
      return damaged(fmt::format("tensor '{}' ends past the end of the file", tensor.name),
                     fmt::format("at most {} bytes of tensor data", data.size()),
                     fmt::format("{} bytes at {}", tensor.bytes, tensor.offset));
    }
    tensor.view.bytes = data.subspan(tensor.offset, tensor.bytes);
    previous_end = tensor.offset + tensor.bytes;
    if (!views.emplace(tensor.name, std::move(tensor.view)).second) {
      return damaged(fmt::format("tensor '{}' appears twice", tensor.name), "one tensor of a name",
                     "two");
    }
  }
  return views;
}

Result<int64_t> alignment_of(const GgufMetadata& metadata) {
  ASSIGN_OR_RETURN(const int64_t alignment,
                   metadata.integer_or("general.alignment", kDefaultAlignment));
  if (alignment > 0 && alignment <= (int64_t{1} << 31) &&
      std::has_single_bit(static_cast<uint64_t>(alignment))) {
    return alignment;
  }
  return damaged("general.alignment is not valid", "a power of two below 2^32",
                 fmt::format("{}", alignment));
}

Result<Gguf> parse(std::span<const std::byte> bytes, const std::string& source) {
  Parser parser(bytes);
  Gguf gguf;
  RETURN_IF_ERROR(parser.read_header());
  ASSIGN_OR_RETURN(GgufMetadata::Entries entries, parser.read_metadata());
  RETURN_IF_ERROR(parser.read_tensor_infos());
  gguf.metadata = GgufMetadata(source, std::move(entries));
  ASSIGN_OR_RETURN(const int64_t alignment, alignment_of(gguf.metadata));
  ASSIGN_OR_RETURN(gguf.tensors, parser.place_tensors(alignment));
  return gguf;
}

}  // namespace

Result<Gguf> parse_gguf(std::span<const std::byte> bytes, const std::string& source) {
  auto gguf = parse(bytes, source);
  if (!gguf.ok()) return gguf.error().with_context(source);
  return gguf;
}

}  // namespace espalier::formats
