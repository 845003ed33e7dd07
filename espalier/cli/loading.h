// From --model and the engine flags to what commands work with: the text side of a model
// (tokenizer, chat template) and its engine. Nothing here is kept globally.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/cli/options.h"
#include "espalier/engine/engine.h"
#include "espalier/formats/checkpoint.h"
#include "espalier/text/chat_template.h"
#include "espalier/text/tokenizer.h"

namespace espalier::cli {

// Where packed weights are kept between processes; "" is nowhere.
std::string packed_cache_folder(const Options& options);

Result<formats::Checkpoint> open_model(const Options& options);

// Takes the tokenizer's data out of the checkpoint: a large vocabulary need not be there twice.
Result<text::Tokenizer> take_tokenizer(formats::Checkpoint& checkpoint);

// Tool descriptions are a JSON list; null: there are none. `source` names it in the error.
Status check_tools(const OrderedJson& tools, const std::string& source);

// A model's chat template with what it is rendered with.
struct ChatFormat {
  text::ChatTemplate chat_template;
  text::RenderOptions render_options;  // BOS and EOS texts, --tools, --set
};
Result<ChatFormat> make_chat_format(const formats::Checkpoint& checkpoint, const Options& options);

// Loads it and says on stderr what it says about the cache of packed weights.
Result<std::unique_ptr<const engine::Engine>> load_engine(formats::Checkpoint checkpoint,
                                                          const Options& options);

struct LoadedModel {
  text::Tokenizer tokenizer;
  std::unique_ptr<const engine::Engine> engine;
  double load_ms = 0;
};
Result<LoadedModel> load_model(const Options& options);

}  // namespace espalier::cli
