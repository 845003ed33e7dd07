// Opening GGUF files: one file, or a set that the tools of llama.cpp have split into
// "name-00001-of-00003.gguf" and so on. The first file has the metadata, each has a part of the
// tensors.
#include "espalier/base/mapped_file.h"
#include "espalier/formats/gguf.h"

namespace espalier::formats {
namespace {

constexpr int64_t kSplitFilesLimit = 65535;  // the field has 16 bits

struct Part {
  Gguf gguf;
  int64_t number = 0;  // from 0
  int64_t count = 1;
};

Error not_a_set(const std::string& what, const std::string& expected, const std::string& actual) {
  return Error{.what = what,
               .expected = expected,
               .actual = actual,
               .fix = "Put all files of the set into one folder under their original names."};
}

Result<Part> open_part(const std::string& path) {
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Part part;
  ASSIGN_OR_RETURN(part.gguf, parse_gguf(file->bytes(), path));
  part.gguf.owners.push_back(std::move(file));
  part.gguf.files.push_back(path);
  ASSIGN_OR_RETURN(part.number, part.gguf.metadata.integer_or("split.no", 0));
  ASSIGN_OR_RETURN(part.count, part.gguf.metadata.integer_or("split.count", 1));
  part.count = std::max<int64_t>(part.count, 1);  // 0 is written where nothing was split
  if (part.number < 0 || part.number >= part.count || part.count > kSplitFilesLimit) {
    return not_a_set(fmt::format("'{}' has a wrong split number", path),
                     fmt::format("split.no below split.count, at most {}", kSplitFilesLimit),
                     fmt::format("split.no {} of {}", part.number, part.count));
  }
  return part;
}

std::string suffix(int64_t number, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

Status check_part(const Part& part, int64_t number, int64_t count, const std::string& path) {
  if (part.number == number && part.count == count) return Ok{};
  return not_a_set(fmt::format("'{}' does not belong to the set", path),
                   fmt::format("file {} of {}", number + 1, count),
                   fmt::format("file {} of {}", part.number + 1, part.count));
}

Status add_part(Gguf& set, Part part, const std::string& path) {
  for (auto& [name, view] : part.gguf.tensors) {
    if (!set.tensors.emplace(name, std::move(view)).second) {
      return not_a_set(fmt::format("'{}' repeats tensor '{}' of another file", path, name),
                       "each tensor in one file", "two");
    }
  }
  if (part.number == 0) set.metadata = std::move(part.gguf.metadata);
  set.owners.push_back(std::move(part.gguf.owners.front()));
  set.files.push_back(path);
  return Ok{};
}

}  // namespace

Result<Gguf> open_gguf(const std::string& path) {
  ASSIGN_OR_RETURN(Part given, open_part(path));
  if (given.count == 1) return std::move(given.gguf);
  const int64_t count = given.count;
  const std::string own_suffix = suffix(given.number, count);
  if (!path.ends_with(own_suffix)) {
    return not_a_set(fmt::format("'{}' is one file of a split set", path),
                     fmt::format("a name that ends with '{}'", own_suffix), "another name");
  }
  const std::string stem = path.substr(0, path.size() - own_suffix.size());
  Gguf set;
  for (int64_t number = 0; number < count; ++number) {
    const std::string part_path = stem + suffix(number, count);
    ASSIGN_OR_RETURN(Part part, open_part(part_path));
    RETURN_IF_ERROR(check_part(part, number, count, part_path));
    RETURN_IF_ERROR(add_part(set, std::move(part), part_path));
  }
  const auto tensor_count = static_cast<int64_t>(set.tensors.size());
  ASSIGN_OR_RETURN(const int64_t expected,
                   set.metadata.integer_or("split.tensors.count", tensor_count));
  if (expected != tensor_count) {
    return not_a_set(fmt::format("the set of '{}' is not complete", path),
                     fmt::format("{} tensors", expected), fmt::format("{}", tensor_count));
  }
  return set;
}

}  // namespace espalier::formats
