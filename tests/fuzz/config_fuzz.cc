// Any config.json over a checkpoint of zeros: refused, or a model whose programs are valid. The
// bytes up to the first NUL are the configuration, the rest is a tensor of rope frequencies.
#include <cstdint>
#include <string_view>

#include "espalier/base/check.h"
#include "espalier/models/model.h"
#include "espalier/program/validate.h"
#include "tests/models/shapes.h"

namespace espalier::models {
namespace {

FakeCheckpoint checkpoint_for(const Json& config) {
  const Json* type = json_find(config, "model_type");
  if (type != nullptr && *type == "lfm2") return fake_lfm2();
  if (type != nullptr && *type == "qwen2") return fake_qwen2();
  if (type != nullptr && *type == "qwen3") return fake_qwen3();
  return fake_llama();
}

void exercise(const Json& config, std::span<const std::byte> frequencies) {
  const FakeCheckpoint fake = checkpoint_for(config);
  auto tensors = fake.weights().all();
  const size_t count = frequencies.size() / sizeof(float);
  if (count > 0) {
    tensors["rope_freqs.weight"] = {
        Encoding::kF32, {static_cast<int64_t>(count)}, frequencies.first(count * sizeof(float))};
  }
  const auto model = make_model(config, Weights(tensors, {}));
  if (!model.ok()) return;
  CHECK_GE(model->context_length, 1);
  for (const auto head : {program::Head::kArgmax, program::Head::kLogits}) {
    const auto program = model->build({.rows = 3, .kv_rows = 8, .selected = 2, .head = head});
    CHECK(program::validate(program).ok());
  }
}

}  // namespace
}  // namespace espalier::models

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), size);
  const auto config = espalier::parse_json(input.substr(0, end), "config.json");
  if (!config.ok()) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  espalier::models::exercise(*config, bytes.subspan(end == size ? end : end + 1));
  return 0;
}
