// espalier info: what a model is, what it costs in memory and work, and the program it becomes.
#include <fmt/format.h>

#include <map>

#include "espalier/base/utf8.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/json_output.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/terminal.h"
#include "espalier/engine/session.h"
#include "espalier/program/text.h"
#include "espalier/program/work.h"

namespace espalier::cli {
namespace {

struct EncodingUse {
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
};

OrderedJson encodings_json(const engine::Engine& engine, int64_t& parameters) {
  std::map<std::string_view, EncodingUse> uses;
  for (const engine::TensorInfo& tensor : engine.tensors()) {
    EncodingUse& use = uses[espalier::name_of(tensor.encoding)];
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    ++use.tensors;
    use.parameters += count;
    use.bytes += tensor.byte_count;
    parameters += count;
  }
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, use] : uses) {
    json[std::string(name)] = {
        {"tensors", use.tensors}, {"parameters", use.parameters}, {"bytes", use.bytes}};
  }
  return json;
}

// Of one call on an empty state, with the head on every row.
OrderedJson work_json(const engine::Engine& engine, const program::Program& program, int64_t rows) {
  program::WorkOptions options;
  options.rows = rows;
  options.kv_element_bytes = engine.executable().capabilities().kv_element_bytes;
  options.weight_bytes = [&engine](const program::Weight& weight) {
    const auto found =
        std::ranges::find(engine.tensors(), weight.tensor, &engine::TensorInfo::name);
    CHECK(found != engine.tensors().end());
    return found->byte_count / weight.tensor_rows * weight.rows;
  };
  const program::Work work = program::count_work(program, options).total;
  return {{"rows", rows},
          {"flops", work.flops},
          {"weight_bytes", work.weight_bytes},
          {"kv_bytes", work.kv_bytes},
          {"activation_bytes", work.activation_bytes}};
}

Result<OrderedJson> info_json(const engine::Engine& engine) {
  const formats::Checkpoint& checkpoint = engine.checkpoint();
  const program::Program program = engine.program(0, program::Head::kArgmax);
  const models::Model& model = engine.model();
  ASSIGN_OR_RETURN(const auto session, engine::Session::create(engine));
  int64_t parameters = 0;
  OrderedJson encodings = encodings_json(engine, parameters);
  const units::Capabilities capabilities = engine.executable().capabilities();
  return OrderedJson{
      {"name", checkpoint.name},
      {"path", checkpoint.path},
      {"format", checkpoint.format},
      {"architecture", model.architecture},
      {"parameters", parameters},
      {"layers", model.layer_count},
      {"hidden_size", model.hidden_size},
      {"vocab_size", model.vocab_size},
      {"context", engine.options().context},
      {"tied_head", model.head_tensor == model.embedding_tensor},
      {"tokenizer", checkpoint.tokenizer.has_value()},
      {"chat_template", checkpoint.chat_template.has_value()},
      {"end_tokens", engine.end_tokens()},
      {"encodings", std::move(encodings)},
      {"unit", engine.options().unit},
      {"window", engine.options().window},
      {"buckets", engine.buckets()},
      {"kv_bytes_per_position",
       program::kv_elements_per_position(program) * capabilities.kv_element_bytes +
           capabilities.kv_scale_bytes},
      {"work", OrderedJson::array({work_json(engine, program, 1),
                                   work_json(engine, program, engine.options().window)})},
      {"placement", engine.executable().placement_report()},
      {"packed", packed_json(engine)},
      {"memory", memory_json(engine, session->kv_bytes())}};
}

// The JSON form as lines of text: one form, two spellings.
void print_lines(const OrderedJson& json, const std::string& indent) {
  for (const auto& [key, value] : json.items()) {
    const std::string label = json.is_array() ? "-" : key;
    if (value.is_structured() && !value.empty()) {
      const bool flat =
          value.is_array() && !value.front().is_structured() && !value.front().is_string();
      if (flat) {
        write_stdout(fmt::format("{}{}: {}\n", indent, label, value.dump()));
        continue;
      }
      write_stdout(fmt::format("{}{}:\n", indent, label));
      print_lines(value, indent + "  ");
    } else {
      write_stdout(
          fmt::format("{}{}{} {}\n", indent, label, json.is_array() ? "" : ":",
                      value.is_string() ? printable(value.get<std::string>()) : value.dump()));
    }
  }
}

}  // namespace

Result<Exit> command_info(const Options& options) {
  ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, open_model(options));
  ASSIGN_OR_RETURN(const auto engine, load_engine(std::move(checkpoint), options));
  if (options.program) {
    const std::string text = program::print(engine->program(0, program::Head::kArgmax));
    if (options.json) {
      print_json({{"program", text}});
    } else {
      write_stdout(text);
    }
    return Exit::kDone;
  }
  ASSIGN_OR_RETURN(const OrderedJson info, info_json(*engine));
  if (options.json) {
    print_json(info);
  } else {
    print_lines(info, "");
  }
  return Exit::kDone;
}

}  // namespace espalier::cli
