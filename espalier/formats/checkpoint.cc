#include "espalier/formats/checkpoint.h"

#include <array>
#include <filesystem>
#include <fstream>

#include "espalier/formats/gguf_checkpoint.h"
#include "espalier/formats/hf_checkpoint.h"

namespace espalier::formats {
namespace {

// The first bytes decide, not the name: models are downloaded under all kinds of names.
bool begins_with_gguf(const std::string& path) {
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path) {
  const std::filesystem::path location(path);
  std::error_code problem;
  if (std::filesystem::is_directory(location, problem)) return open_hf_checkpoint(path, "");
  if (!std::filesystem::exists(location, problem)) {
    return Error{.what = fmt::format("there is no model at '{}'", path),
                 .expected = "a GGUF file, a .safetensors file or a model directory",
                 .actual = problem ? problem.message() : "nothing there",
                 .fix = "Check the path."};
  }
  if (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json")) {
    return open_hf_checkpoint(location.parent_path().string(), path);
  }
  // Only a regular file is looked into: reading a pipe would wait.
  const bool is_file = std::filesystem::is_regular_file(location, problem);
  const bool is_gguf = path.ends_with(".gguf") || (is_file && begins_with_gguf(path));
  if (is_gguf) return open_gguf_checkpoint(path);
  return Error{.what = fmt::format("'{}' is not a model", path),
               .expected = "a GGUF file, a .safetensors file or a model directory",
               .actual = "a file of another kind",
               .fix = "Name the model's file or directory."};
}

}  // namespace espalier::formats
