// Any bytes as a safetensors file: refused, or views that can be read.
#include "espalier/formats/safetensors.h"
#include "tests/fuzz/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      espalier::formats::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (file.ok()) espalier::touch(file->tensors);
  return 0;
}
