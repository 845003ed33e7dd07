#include "espalier/formats/safetensors_writer.h"

#include "espalier/base/check.h"
#include "espalier/base/json.h"
#include "espalier/base/weights.h"
#include "espalier/formats/safetensors.h"
#include "espalier/formats/shape.h"

namespace espalier::formats {
namespace {

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
                 .actual = json_problem(exception),
                 .fix = "Rename the tensors."};
  }
  layout.header.resize((layout.header.size() + 7) / 8 * 8, ' ');
  return layout;
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(
    const std::string& path, std::span<const TensorDeclaration> tensors,
    const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(const Layout layout, lay_out(tensors, metadata));
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  const uint64_t header_bytes = layout.header.size();
  RETURN_IF_ERROR(file.write(std::as_bytes(std::span(&header_bytes, 1))));
  RETURN_IF_ERROR(file.write(std::as_bytes(std::span(layout.header))));
  return SafetensorsWriter(std::move(file), layout.data_bytes);
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  CHECK_LE(bytes.size(), bytes_left_);
  bytes_left_ -= bytes.size();
  return file_.write(bytes);
}

Status SafetensorsWriter::finish() {
  CHECK_EQ(bytes_left_, uint64_t{0});
  return file_.finish();
}

}  // namespace espalier::formats
