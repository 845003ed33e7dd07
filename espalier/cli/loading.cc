#include "espalier/cli/loading.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "espalier/base/clock.h"
#include "espalier/base/mapped_file.h"
#include "espalier/base/threads.h"
#include "espalier/cli/terminal.h"

namespace espalier::cli {
namespace {

units::WeightMode weight_mode(const std::string& name) {
  if (name == "keep") return units::WeightMode::kKeep;
  return name == "int8g64" ? units::WeightMode::kInt8Group64 : units::WeightMode::kInt8;
}

// A value of --set: JSON where it is JSON, else the string itself.
OrderedJson variable_value(const std::string& text) {
  auto parsed = parse_ordered_json(text, "--set");
  return parsed.ok() ? std::move(parsed).value() : OrderedJson(text);
}

Error not_tools(const std::string& source, const OrderedJson& tools) {
  return Error{.what = source + " holds no tools",
               .expected = "a JSON list of tool descriptions",
               .actual = tools.type_name(),
               .fix = "Put the descriptions between [ and ]."};
}

Result<OrderedJson> read_tools(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, read_text_file(path));
  ASSIGN_OR_RETURN(OrderedJson tools, parse_ordered_json(content, path));
  if (tools.is_null()) return not_tools(path, tools);
  RETURN_IF_ERROR(check_tools(tools, path));
  return tools;
}

engine::EngineOptions engine_options(const Options& options) {
  if (options.threads > physical_core_count()) {
    note(fmt::format("{} threads on {} physical cores: they will wait for each other",
                     options.threads, physical_core_count()));
  }
  return engine::EngineOptions{
      .unit = options.unit,
      .window = options.window,
      .context = options.context,
      .compile = {.threads = static_cast<int>(options.threads),
                  .weights = weight_mode(options.weights),
                  .activation_planes = options.activations == 8 ? 1 : 2,
                  .kv_bits = static_cast<int>(options.kv_bits),
                  .kernels = options.kernels,
                  .packed_cache = {.folder = packed_cache_folder(options)}},
      .drafter = options.drafter};
}

}  // namespace

Status check_tools(const OrderedJson& tools, const std::string& source) {
  if (tools.is_null() || tools.is_array()) return Ok{};
  return not_tools(source, tools);
}

std::string packed_cache_folder(const Options& options) {
  if (options.packed_cache) return *options.packed_cache == "off" ? "" : *options.packed_cache;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string folder = variable("ESPALIER_CACHE"); !folder.empty()) {
    return folder + "/packed";
  }
  if (const std::string folder = variable("XDG_CACHE_HOME"); !folder.empty()) {
    return folder + "/espalier/packed";
  }
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/espalier/packed";
}

Result<formats::Checkpoint> open_model(const Options& options) {
  return formats::open_checkpoint(options.model);
}

Result<text::Tokenizer> take_tokenizer(formats::Checkpoint& checkpoint) {
  if (!checkpoint.tokenizer) {
    return Error{.what = checkpoint.path + " has no tokenizer",
                 .expected = "tokenizer.json beside the weights, or a tokenizer in the GGUF file",
                 .actual = "none",
                 .fix = "Put the model's tokenizer.json there."};
  }
  // What is left behind keeps its ids (eos_id), which the engine reads.
  auto tokenizer = text::Tokenizer::make(std::move(*checkpoint.tokenizer));
  if (!tokenizer.ok()) return tokenizer.error().with_context(checkpoint.path);
  return tokenizer;
}

Result<ChatFormat> make_chat_format(const formats::Checkpoint& checkpoint, const Options& options) {
  if (!checkpoint.chat_template) {
    return Error{.what = checkpoint.path + " has no chat template",
                 .expected = "chat_template in tokenizer_config.json or in the GGUF file",
                 .actual = "none",
                 .fix = "It may be a base model: use 'espalier run --raw' to continue a text."};
  }
  auto parsed = text::ChatTemplate::parse(*checkpoint.chat_template);
  if (!parsed.ok()) return parsed.error().with_context(checkpoint.path);
  text::RenderOptions render{.bos_token = checkpoint.bos_token, .eos_token = checkpoint.eos_token};
  if (options.tools_file) {
    ASSIGN_OR_RETURN(render.tools, read_tools(*options.tools_file));
  }
  if (!options.variables.empty()) render.variables = OrderedJson::object();
  for (const auto& [name, value] : options.variables) {
    render.variables[name] = variable_value(value);
  }
  return ChatFormat{std::move(parsed).value(), std::move(render)};
}

Result<std::unique_ptr<const engine::Engine>> load_engine(formats::Checkpoint checkpoint,
                                                          const Options& options) {
  ASSIGN_OR_RETURN(auto engine,
                   engine::Engine::load(std::move(checkpoint), engine_options(options)));
  for (const std::string& text : engine->executable().packed_report().notes) note(text);
  return engine;
}

Result<LoadedModel> load_model(const Options& options) {
  const Stopwatch watch;
  ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, open_model(options));
  ASSIGN_OR_RETURN(text::Tokenizer tokenizer, take_tokenizer(checkpoint));
  ASSIGN_OR_RETURN(auto engine, load_engine(std::move(checkpoint), options));
  return LoadedModel{std::move(tokenizer), std::move(engine), watch.elapsed_ms()};
}

}  // namespace espalier::cli
