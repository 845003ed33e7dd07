// Renders templates from standard input, one JSON object a line, and prints one JSON object a line:
// {"text": ...} or {"error": ...}. The other side of python/espalier_tools/golden/jinja.py, for
// comparing far more templates with jinja2 than are committed.
#include <iostream>

#include "espalier/text/chat_template.h"

namespace {

using espalier::Json;
using espalier::OrderedJson;
using espalier::text::ChatTemplate;

std::string as_json(const char* key, const std::string& text) {
  return Json{{key, text}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string render(const std::string& line) {
  auto parsed = espalier::parse_ordered_json(line, "request");
  if (!parsed.ok()) return as_json("error", parsed.error().message());
  const OrderedJson& request = *parsed;
  auto chat_template = ChatTemplate::parse(request["template"].get<std::string>());
  if (!chat_template.ok()) return as_json("error", chat_template.error().message());
  espalier::text::RenderOptions options;
  options.add_generation_prompt = request.value("add_generation_prompt", false);
  options.bos_token = request.value("bos_token", "");
  options.eos_token = request.value("eos_token", "");
  if (request.contains("tools")) options.tools = request["tools"];
  if (request.contains("variables")) options.variables = request["variables"];
  if (request.contains("now")) options.now = request["now"].get<std::time_t>();
  const auto segments = chat_template->render(request["messages"], options);
  if (!segments.ok()) return as_json("error", segments.error().message());
  return as_json("text", espalier::text::join(*segments));
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << render(line) << std::endl;
}
