// Any bytes as a safetensors file, also as that of an MLX checkpoint of every affine encoding: refused, or views that can
// be read.
#include "espalier/formats/mlx_checkpoint.h"
#include "espalier/formats/safetensors.h"
#include "tests/fuzz/touch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      espalier::formats::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok()) return 0;
  espalier::touch(file->tensors);
  for (const int bits : {4, 8}) {
    for (const int group_size : {32, 64, 128}) {
      const espalier::Json quantization = {{"bits", bits}, {"group_size", group_size}};
      const auto tensors = espalier::formats::from_mlx(quantization, file->tensors);
      if (tensors.ok()) espalier::touch(*tensors);
    }
  }
  return 0;
}
