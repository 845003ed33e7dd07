// Any bytes as a GGUF file: refused, or metadata that can be looked up and views that can be read.
#include "espalier/formats/gguf.h"
#include "espalier/formats/gguf_config.h"
#include "espalier/formats/gguf_names.h"
#include "tests/fuzz/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier::formats;
  const auto file = parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok()) return 0;
  espalier::touch(file->tensors);
  for (const auto& [name, view] : file->tensors)
    hugging_face_name(*gguf_architecture("lfm2"), name);
  for (const auto& [key, value] : file->metadata.entries()) {
    (void)file->metadata.strings(key).ok();
    (void)file->metadata.floats(key).ok();
    (void)file->metadata.integers(key).ok();
  }
  (void)gguf_config(file->metadata).ok();
  (void)gguf_generation_config(file->metadata).ok();
  return 0;
}
