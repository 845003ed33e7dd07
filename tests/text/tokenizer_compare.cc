// tokenizer_compare MODEL [CONFIG]: the other half of python/espalier_tools/golden/_tokenizer_compare.py,
// which holds it against the `tokenizers` library. MODEL is a GGUF file or a tokenizer.json, CONFIG a
// tokenizer_config.json. Requests come on standard input as lines of JSON, answers go to standard output:
//   {"text": ..., "special": bool, "add": bool} -> {"ids": [...]} or {"error": ...}
//   {"ids": [...], "skip": bool}                -> {"text": ..., "streamed": ...}
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/formats/gguf.h"
#include "espalier/formats/gguf_tokenizer.h"
#include "espalier/formats/tokenizer_json.h"
#include "espalier/text/detokenizer.h"
#include "espalier/text/tokenizer.h"

namespace espalier {
namespace {

Result<TokenizerData> read_data(const std::string& path, const std::string& config_path) {
  if (path.ends_with(".gguf")) {
    ASSIGN_OR_RETURN(const formats::Gguf gguf, formats::open_gguf(path));
    return formats::read_gguf_tokenizer(gguf.metadata);
  }
  ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  ASSIGN_OR_RETURN(const Json json, parse_json(text, path));
  Json config;
  if (!config_path.empty()) {
    ASSIGN_OR_RETURN(const std::string config_text, read_text_file(config_path));
    ASSIGN_OR_RETURN(config, parse_json(config_text, config_path));
  }
  return formats::read_tokenizer_json(json, config);
}

Json answer(const text::Tokenizer& tokenizer, const Json& request) {
  if (request.contains("text")) {
    const auto ids = tokenizer.encode(request.at("text").get<std::string>(),
                                      {.add_special_tokens = request.value("add", true),
                                       .parse_special = request.value("special", true)});
    if (!ids.ok()) return {{"error", ids.error().message()}};
    return {{"ids", *ids}};
  }
  const auto ids = request.at("ids").get<std::vector<TokenId>>();
  const bool skip = request.value("skip", true);
  text::Detokenizer detokenizer(tokenizer, skip);
  std::string streamed;
  for (const TokenId id : ids) streamed += detokenizer.push(id);
  streamed += detokenizer.finish();
  return {{"text", tokenizer.decode(ids, skip)}, {"streamed", streamed}};
}

int run(int argc, char** argv) {
  if (argc < 2) return 2;
  auto data = read_data(argv[1], argc > 2 ? argv[2] : "");
  auto tokenizer = data.ok() ? text::Tokenizer::make(std::move(data).value())
                             : Result<text::Tokenizer>(data.error());
  if (!tokenizer.ok()) {
    std::cout << Json{{"error", tokenizer.error().message()}}.dump() << "\n";
    return 1;
  }
  std::cout << "{}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    auto request = parse_json(line, "request");
    if (!request.ok()) return 2;
    std::cout << answer(*tokenizer, *request).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace espalier

int main(int argc, char** argv) { return espalier::run(argc, argv); }
