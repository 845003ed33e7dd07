#include "espalier/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/formats/byte_reader.h"
#include "espalier/formats/safetensors_header.h"
#include "espalier/formats/shape.h"

namespace espalier::formats {
namespace {

constexpr uint64_t kHeaderBytesLimit = 100'000'000;  // of the reference implementation
constexpr size_t kIndexBytesLimit = 64u << 20;

struct Dtype {
  std::string_view name;
  Encoding encoding;
};
constexpr std::array kDtypes = {
    Dtype{"F64", Encoding::kF64},        Dtype{"F32", Encoding::kF32},
    Dtype{"F16", Encoding::kF16},        Dtype{"BF16", Encoding::kBF16},
    Dtype{"F8_E4M3", Encoding::kF8E4M3}, Dtype{"F8_E5M2", Encoding::kF8E5M2},
    Dtype{"I64", Encoding::kI64},        Dtype{"I32", Encoding::kI32},
    Dtype{"I16", Encoding::kI16},        Dtype{"I8", Encoding::kI8},
    Dtype{"U32", Encoding::kU32},        Dtype{"U16", Encoding::kU16},
    Dtype{"U8", Encoding::kU8},          Dtype{"BOOL", Encoding::kBool},
};

using HeaderTensor = SafetensorsHeader::Tensor;

Error damaged(const std::string& what, const std::string& expected, const std::string& actual) {
  return Error{.what = what,
               .expected = expected,
               .actual = actual,
               .fix = "The file is damaged or incomplete: download or convert it again."};
}

Result<Encoding> encoding_of(const HeaderTensor& tensor) {
  for (const Dtype& row : kDtypes) {
    if (row.name == tensor.dtype) return row.encoding;
  }
  std::string known;
  for (const Dtype& row : kDtypes) known += (known.empty() ? "" : ", ") + std::string(row.name);
  return Error{.what = fmt::format("tensor '{}' has a dtype that is not supported", tensor.name),
               .expected = "one of " + known,
               .actual = fmt::format("'{}'", tensor.dtype),
               .fix = "Convert the checkpoint to one of these types."};
}

// The view of a tensor whose data begins at `begin`, the end of its predecessor.
Result<TensorView> view_of(const HeaderTensor& tensor, uint64_t begin,
                           std::span<const std::byte> data) {
  TensorView view;
  ASSIGN_OR_RETURN(view.encoding, encoding_of(tensor));
  view.shape.reserve(tensor.shape.size());
  for (const uint64_t extent : tensor.shape) {
    view.shape.push_back(static_cast<int64_t>(std::min<uint64_t>(extent, INT64_MAX)));
  }
  const auto bytes = tensor_bytes(view.encoding, view.shape);
  if (!bytes) {
    return damaged(fmt::format("the size of tensor '{}' overflows", tensor.name),
                   "fewer than 2^63 bytes",
                   fmt::format("{} {}", tensor.dtype, shape_text(view.shape)));
  }
  const uint64_t end = tensor.offsets[1];
  if (tensor.offsets[0] != begin || end < begin || end > data.size()) {
    return damaged(
        fmt::format("the data of tensor '{}' is in the wrong place", tensor.name),
        fmt::format("to begin at {} and to end within {} bytes of data", begin, data.size()),
        fmt::format("[{}, {}]", tensor.offsets[0], end));
  }
  if (end - begin != static_cast<uint64_t>(*bytes)) {
    return damaged(fmt::format("tensor '{}' has the wrong size", tensor.name),
                   fmt::format("{} bytes for {} {}", *bytes, tensor.dtype, shape_text(view.shape)),
                   fmt::format("{} bytes", end - begin));
  }
  view.bytes = data.subspan(begin, end - begin);
  return view;
}

Result<std::map<std::string, TensorView>> place_tensors(std::vector<HeaderTensor> tensors,
                                                        std::span<const std::byte> data) {
  std::sort(tensors.begin(), tensors.end(),
            [](const HeaderTensor& a, const HeaderTensor& b) { return a.offsets < b.offsets; });
  std::map<std::string, TensorView> views;
  uint64_t end = 0;
  for (HeaderTensor& tensor : tensors) {
    ASSIGN_OR_RETURN(TensorView view, view_of(tensor, end, data));
    end = tensor.offsets[1];
    views.emplace(std::move(tensor.name), std::move(view));
  }
  if (end != data.size()) {
    return damaged("the tensors do not cover the file", fmt::format("{} bytes of tensor data", end),
                   fmt::format("{} bytes", data.size()));
  }
  return views;
}

// The files beside an index, opened when the first of their tensors is asked for.
class Shards {
 public:
  explicit Shards(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<TensorView> find(const std::string& tensor, const Json& file) {
    ASSIGN_OR_RETURN(const Safetensors* shard, open(tensor, file));
    const auto view = shard->tensors.find(tensor);
    if (view != shard->tensors.end()) return view->second;
    return damaged(fmt::format("tensor '{}' is not where the index says", tensor),
                   fmt::format("a tensor in {}", file.dump()), "no tensor of this name there");
  }

  // Hands the files over to the set.
  void move_to(Safetensors& set) {
    set.owners = std::move(owners_);
    for (const auto& [name, shard] : shards_) set.files.push_back((folder_ / name).string());
  }

 private:
  Result<const Safetensors*> open(const std::string& tensor, const Json& file) {
    // The name of a file beside the index and nothing else: an index must not open files elsewhere.
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    const std::filesystem::path relative(name);
    if (name.empty() || relative.filename() != relative || name.find('\0') != name.npos) {
      return damaged(fmt::format("the file of tensor '{}' is not valid", tensor),
                     "the name of a file beside the index", file.dump());
    }
    const auto found = shards_.find(name);
    if (found != shards_.end()) return &found->second;
    const std::string path = (folder_ / relative).string();
    ASSIGN_OR_RETURN(Safetensors content, open_safetensors(path));
    owners_.push_back(std::move(content.owners.front()));
    return &shards_.emplace(name, std::move(content)).first->second;
  }

  std::filesystem::path folder_;
  std::map<std::string, Safetensors> shards_;  // by file name
  std::vector<std::shared_ptr<const MappedFile>> owners_;
};

}  // namespace

Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& source) {
  ByteReader reader(bytes);
  uint64_t header_bytes = 0;
  if (!reader.read(header_bytes)) {
    return damaged(source + ": not a safetensors file", "at least 8 bytes",
                   fmt::format("{} bytes", bytes.size()));
  }
  std::span<const std::byte> text;
  if (header_bytes > kHeaderBytesLimit || !reader.take(header_bytes, text)) {
    return damaged(
        source + ": the safetensors header does not fit",
        fmt::format("at most {} bytes", std::min<uint64_t>(kHeaderBytesLimit, bytes.size() - 8)),
        fmt::format("{} bytes", header_bytes));
  }
  const std::string_view json(reinterpret_cast<const char*>(text.data()), text.size());
  ASSIGN_OR_RETURN(SafetensorsHeader header, parse_safetensors_header(json, source));
  auto tensors = place_tensors(std::move(header.tensors), bytes.subspan(reader.offset()));
  if (!tensors.ok()) return tensors.error().with_context(source);
  return Safetensors{std::move(tensors).value(), std::move(header.metadata), {}, {}};
}

Result<Safetensors> open_safetensors(const std::string& path) {
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  ASSIGN_OR_RETURN(Safetensors content, parse_safetensors(file->bytes(), path));
  content.owners.push_back(std::move(file));
  content.files.push_back(path);
  return content;
}

Result<Safetensors> open_sharded_safetensors(const std::string& index_path) {
  ASSIGN_OR_RETURN(const std::string text, read_text_file(index_path, kIndexBytesLimit));
  ASSIGN_OR_RETURN(const Json index, parse_json(text, index_path));
  const Json* weight_map = json_find(index, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object()) {
    return damaged(index_path + ": no weight map", "an object 'weight_map'", "none");
  }
  Shards shards(std::filesystem::path(index_path).parent_path());
  Safetensors set;
  for (const auto& [tensor, file] : weight_map->items()) {
    auto view = shards.find(tensor, file);
    if (!view.ok()) return view.error().with_context(index_path);
    set.tensors.emplace(tensor, std::move(view).value());
  }
  shards.move_to(set);
  set.files.push_back(index_path);
  return set;
}

std::string_view safetensors_dtype(Encoding encoding) {
  for (const Dtype& row : kDtypes) {
    if (row.encoding == encoding) return row.name;
  }
  return {};
}

}  // namespace espalier::formats
