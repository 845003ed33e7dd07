// Any tokenizer.json and any text: the bytes up to the first NUL are the file, the rest is the
// text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "espalier/base/check.h"
#include "espalier/base/json.h"
#include "espalier/base/utf8.h"
#include "espalier/formats/tokenizer_json.h"
#include "espalier/text/detokenizer.h"
#include "espalier/text/tokenizer.h"

namespace espalier {
namespace {

void exercise(const text::Tokenizer& tokenizer, std::string_view input) {
  for (const bool parses_special : {true, false}) {
    const auto ids = tokenizer.encode(
        replace_invalid_utf8(input), {.add_special_tokens = true, .parse_special = parses_special});
    if (!ids.ok()) continue;
    text::Detokenizer detokenizer(tokenizer, parses_special);
    std::string streamed;
    for (const TokenId id : *ids) {
      CHECK_LT(id, tokenizer.vocab_size());
      streamed += detokenizer.push(id);
    }
    streamed += detokenizer.finish();
    CHECK(!invalid_utf8_at(streamed).has_value());
    CHECK(streamed == tokenizer.decode(*ids, parses_special));
  }
}

void run(std::string_view input) {
  const size_t end = std::min(input.find('\0'), input.size());
  const auto json = parse_json(input.substr(0, end), "tokenizer.json");
  if (!json.ok()) return;
  auto data = formats::read_tokenizer_json(*json, *json);
  if (!data.ok()) return;
  const auto tokenizer = text::Tokenizer::make(std::move(data).value());
  if (tokenizer.ok()) exercise(*tokenizer, input.substr(end == input.size() ? end : end + 1));
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  espalier::run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
