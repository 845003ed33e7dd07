#include "espalier/formats/checkpoint.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "espalier/formats/gguf_checkpoint.h"
#include "espalier/formats/hf_checkpoint.h"

namespace espalier::formats {
namespace {

enum class Kind : uint8_t { kGguf, kSafetensors, kIndex, kUnknown };

// The first bytes, which decide: models are downloaded under all kinds of names.
Kind kind_by_bytes(const std::filesystem::path& path) {
  std::error_code problem;
  // Only a regular file is looked into: reading a pipe would wait.
  if (!std::filesystem::is_regular_file(path, problem)) return Kind::kUnknown;
  std::array<char, 9> bytes{};
  std::ifstream(path, std::ios::binary).read(bytes.data(), bytes.size());
  if (std::string_view(bytes.data(), 4) == "GGUF") return Kind::kGguf;
  // safetensors: the length of a header, and the object that it begins with.
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const auto file_bytes = std::filesystem::file_size(path, problem);
  const bool fits = !problem && header_bytes > 0 && header_bytes < file_bytes;
  return fits && bytes.back() == '{' ? Kind::kSafetensors : Kind::kUnknown;
}

// The name, where the bytes say nothing: an index is JSON, and a damaged file is to be told what is
// wrong with it.
Kind kind_by_name(const std::string& path) {
  if (path.ends_with(".gguf")) return Kind::kGguf;
  if (path.ends_with(".safetensors")) return Kind::kSafetensors;
  return path.ends_with(".safetensors.index.json") ? Kind::kIndex : Kind::kUnknown;
}

// A row without a token is padding; a token without a row has no embedding. Added tokens may be
// beyond the rows: those are named where they are used.
Status check_vocabulary(const Checkpoint& checkpoint) {
  const auto& tensors = checkpoint.weights.all();
  const auto embedding = tensors.find("model.embed_tokens.weight");
  if (!checkpoint.tokenizer || embedding == tensors.end()) return Ok{};
  const auto tokens = static_cast<int64_t>(checkpoint.tokenizer->tokens.size());
  const int64_t rows = embedding->second.rows();
  if (tokens <= rows) return Ok{};
  return Error{.what = checkpoint.path + ": the tokenizer has tokens that the weights lack",
               .expected = fmt::format("at most {}, the rows of '{}'", rows, embedding->first),
               .actual = fmt::format("{} tokens", tokens),
               .fix = "The tokenizer and the weights do not belong together."};
}

Result<Checkpoint> open(const std::string& path) {
  const std::filesystem::path location(path);
  std::error_code problem;
  if (std::filesystem::is_directory(location, problem)) return open_hf_checkpoint(path, "");
  if (!std::filesystem::exists(location, problem)) {
    return Error{.what = fmt::format("there is no model at '{}'", path),
                 .expected = "a GGUF file, a .safetensors file or a model directory",
                 .actual = problem ? problem.message() : "nothing there",
                 .fix = "Check the path."};
  }
  const Kind by_bytes = kind_by_bytes(location);
  switch (by_bytes == Kind::kUnknown ? kind_by_name(path) : by_bytes) {
    case Kind::kGguf:
      return open_gguf_checkpoint(path);
    case Kind::kSafetensors:
    case Kind::kIndex:
      return open_hf_checkpoint(location.parent_path().string(), path);
    case Kind::kUnknown:
      break;
  }
  return Error{.what = fmt::format("'{}' is not a model", path),
               .expected = "a GGUF file, a .safetensors file or a model directory",
               .actual = "a file of another kind",
               .fix = "Name the model's file or directory."};
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path) {
  ASSIGN_OR_RETURN(Checkpoint checkpoint, open(path));
  RETURN_IF_ERROR(check_vocabulary(checkpoint));
  return checkpoint;
}

}  // namespace espalier::formats
