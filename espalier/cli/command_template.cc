// espalier template: messages through the model's chat template.
#include "espalier/base/mapped_file.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/input.h"
#include "espalier/cli/json_output.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/terminal.h"

namespace espalier::cli {
namespace {

bool is_json_text(const Options& options) {
  return !options.arguments.empty() && options.arguments[0].find_first_of("[{") == 0;
}

// The argument is JSON or the path of a file with it.
Result<std::string> read_messages(const Options& options) {
  if (options.arguments.empty() || options.file || is_json_text(options) ||
      options.arguments[0] == "-") {
    return read_input(options, "list of messages");
  }
  return read_text_file(options.arguments[0]);
}

// A list of messages, or an object with "messages" and maybe "tools", as in a request.
Status take_request(OrderedJson request, OrderedJson& messages, OrderedJson& tools) {
  if (request.is_object() && request.contains("messages")) {
    if (request.contains("tools") && tools.is_null()) tools = request["tools"];
    RETURN_IF_ERROR(check_tools(tools, "\"tools\" of the request"));
    request = OrderedJson(request["messages"]);
  }
  const auto is_message = [](const OrderedJson& message) {
    return message.is_object() && message.contains("role") && message["role"].is_string();
  };
  if (!request.is_array() || !std::ranges::all_of(request, is_message)) {
    return Error{
        .what = "these are no messages",
        .expected = R"(a list like [{"role": "user", "content": "Hello"}])",
        .actual = request.dump(-1, ' ', true, OrderedJson::error_handler_t::replace).substr(0, 80),
        .fix = "See docs/cli.md."};
  }
  messages = std::move(request);
  return Ok{};
}

}  // namespace

Result<Exit> command_template(const Options& options) {
  ASSIGN_OR_RETURN(const std::string input, read_messages(options));
  RETURN_IF_ERROR(check_utf8(input, "list of messages"));
  ASSIGN_OR_RETURN(OrderedJson request, parse_ordered_json(input, "messages"));
  ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, open_model(options));
  ASSIGN_OR_RETURN(ChatFormat format, make_chat_format(checkpoint, options));
  format.render_options.add_generation_prompt = !options.no_generation_prompt;
  OrderedJson messages;
  RETURN_IF_ERROR(take_request(std::move(request), messages, format.render_options.tools));
  ASSIGN_OR_RETURN(const auto segments,
                   format.chat_template.render(messages, format.render_options));
  if (!options.json) {
    write_stdout(text::join(segments));
    return Exit::kDone;
  }
  ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, take_tokenizer(checkpoint));
  ASSIGN_OR_RETURN(const std::vector<TokenId> ids, text::encode_segments(tokenizer, segments));
  OrderedJson parts = OrderedJson::array();
  for (const text::Segment& segment : segments) {
    parts.push_back({{"text", segment.text}, {"from_user", segment.from_user}});
  }
  print_json({{"text", text::join(segments)}, {"ids", ids}, {"segments", std::move(parts)}});
  return Exit::kDone;
}

}  // namespace espalier::cli
