// Any text as a chat template: refused, or rendered, or an error while rendering; never a crash or
// a hang.
#include "espalier/text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using espalier::OrderedJson;
  const auto chat_template =
      espalier::text::ChatTemplate::parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!chat_template.ok()) return 0;
  static const OrderedJson kMessages = OrderedJson::parse(
      R"([{"role": "user", "content": "Hé <llo>", "n": 7, "l": [1, 2.5, null, {"a": "b"}]}, {"role": "assistant"}])");
  espalier::text::RenderOptions options;
  options.tools = kMessages;
  options.now = 0;
  (void)chat_template->render(kMessages, options);
  return 0;
}
