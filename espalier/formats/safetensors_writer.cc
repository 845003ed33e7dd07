#include "espalier/formats/safetensors_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "espalier/base/json.h"
#include "espalier/base/weights.h"
#include "espalier/formats/safetensors.h"
#include "espalier/formats/shape.h"

namespace espalier::formats {
namespace {

constexpr size_t kBufferBytes = 1u << 20;  // rows are small, system calls are not free

Error write_error(const std::string& path) {
  return Error{.what = fmt::format("cannot write '{}'", path),
               .expected = {},
               .actual = std::strerror(errno),
               .fix = "Check free space and permissions; a file of this name is unchanged."};
}

struct Layout {
  std::string header;  // padded with blanks so that the data begins at a multiple of 8 bytes
  uint64_t data_bytes = 0;
};

Result<Layout> lay_out(std::span<const TensorDeclaration> tensors,
                       const std::map<std::string, std::string>& metadata) {
  Layout layout;
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const TensorDeclaration& tensor : tensors) {
    const auto dtype = safetensors_dtype(tensor.encoding);
    const auto bytes = tensor_bytes(tensor.encoding, tensor.shape);
    CHECK(!dtype.empty());
    CHECK(bytes.has_value());
    const uint64_t begin = layout.data_bytes;
    layout.data_bytes += static_cast<uint64_t>(*bytes);
    const bool is_new =
        header
            .emplace(tensor.name, Json{{"dtype", dtype},
                                       {"shape", tensor.shape},
                                       {"data_offsets", {begin, layout.data_bytes}}})
            .second;
    CHECK(is_new);
  }
  try {
    layout.header = header.dump();
  } catch (const Json::exception& exception) {  // a name from a file that is not UTF-8
    return Error{.what = "cannot write the safetensors header",
                 .expected = "names in UTF-8",
                 .actual = exception.what(),
                 .fix = "Rename the tensors."};
  }
  layout.header.resize((layout.header.size() + 7) / 8 * 8, ' ');
  return layout;
}

}  // namespace

// A file under construction; removed on destruction unless it was renamed.
class SafetensorsWriter::TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : name_(path + ".XXXXXX") {
    const int descriptor = ::mkstemp(name_.data());
    if (descriptor < 0) return;
    ::fchmod(descriptor, 0644);
    stream_ = ::fdopen(descriptor, "wb");
    if (stream_ == nullptr) ::close(descriptor);
    if (stream_ != nullptr) std::setvbuf(stream_, nullptr, _IOFBF, kBufferBytes);
    exists_ = true;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (stream_ != nullptr) std::fclose(stream_);
    if (exists_) ::unlink(name_.c_str());
  }

  bool is_open() const { return stream_ != nullptr; }

  bool write(std::span<const std::byte> bytes) {
    return bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), stream_) == bytes.size();
  }

  bool rename_to(const std::string& path) {
    if (std::ferror(stream_) != 0 || std::fflush(stream_) != 0) return false;
    if (::fsync(::fileno(stream_)) != 0) return false;
    if (std::fclose(std::exchange(stream_, nullptr)) != 0) return false;
    if (::rename(name_.c_str(), path.c_str()) != 0) return false;
    exists_ = false;
    return true;
  }

 private:
  std::string name_;
  std::FILE* stream_ = nullptr;
  bool exists_ = false;
};

SafetensorsWriter::SafetensorsWriter(std::string path, std::unique_ptr<TemporaryFile> file,
                                     uint64_t data_bytes)
    : path_(std::move(path)), file_(std::move(file)), bytes_left_(data_bytes) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(
    const std::string& path, std::span<const TensorDeclaration> tensors,
    const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(const Layout layout, lay_out(tensors, metadata));
  auto file = std::make_unique<TemporaryFile>(path);
  if (!file->is_open()) return write_error(path);
  const uint64_t header_bytes = layout.header.size();
  if (!file->write(std::as_bytes(std::span(&header_bytes, 1))) ||
      !file->write(std::as_bytes(std::span(layout.header)))) {
    return write_error(path);
  }
  return SafetensorsWriter(path, std::move(file), layout.data_bytes);
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  CHECK(file_ != nullptr);
  CHECK_LE(bytes.size(), bytes_left_);
  bytes_left_ -= bytes.size();
  if (!file_->write(bytes)) return write_error(path_);
  return Ok{};
}

Status SafetensorsWriter::finish() {
  CHECK(file_ != nullptr);
  CHECK_EQ(bytes_left_, uint64_t{0});
  const auto file = std::move(file_);
  if (!file->rename_to(path_)) return write_error(path_);
  return Ok{};
}

}  // namespace espalier::formats
