// Any bytes as a GGUF file: refused, or metadata that can be looked up and views that can be read.
#include "espalier/formats/gguf.h"
#include "espalier/formats/gguf_config.h"
#include "espalier/formats/gguf_names.h"
#include "tests/fuzz/touch.h"

namespace espalier::formats {
namespace {

void read_all(std::span<const std::byte> bytes) {
  const auto file = parse_gguf(bytes, "fuzz");
  if (!file.ok()) return;
  touch(file->tensors);
  for (const auto& [name, view] : file->tensors)
    hugging_face_name(*gguf_architecture("lfm2"), name);
  for (const auto& [key, value] : file->metadata.entries()) {
    (void)file->metadata.strings(key).ok();
    (void)file->metadata.floats(key).ok();
    (void)file->metadata.integers(key).ok();
  }
  (void)gguf_config(file->metadata).ok();
  (void)gguf_generation_config(file->metadata).ok();
}

}  // namespace
}  // namespace espalier::formats

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  espalier::formats::read_all(std::as_bytes(std::span(data, size)));
  return 0;
}
