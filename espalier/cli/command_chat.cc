// espalier chat: a conversation, line by line.
#include <fmt/format.h>

#include "espalier/cli/commands.h"
#include "espalier/cli/cost_profile.h"
#include "espalier/cli/input.h"
#include "espalier/cli/interrupt.h"
#include "espalier/cli/json_output.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/sampling_choice.h"
#include "espalier/cli/terminal.h"
#include "espalier/cli/text_answer.h"

namespace espalier::cli {
namespace {

// One conversation. The session keeps the KV of what was said, so a turn costs its own tokens only.
class Chat {
 public:
  Chat(const LoadedModel& model, ChatFormat format, engine::GenerateOptions generate,
       std::vector<std::string> stops, engine::Session& session)
      : model_(model),
        format_(std::move(format)),
        generate_(std::move(generate)),
        stops_(std::move(stops)),
        session_(session) {}

  // Answers; an error leaves the conversation as it was before the message, unless it came in the
  // middle of an answer: then what was said stands.
  Status say(const std::string& line);
  void set_system(const std::string& text);
  void clear();
  void undo();
  void print_history() const;

 private:
  Result<std::vector<TokenId>> encode() const;
  Status check_fits(size_t tokens) const;
  OrderedJson all_messages() const;

  const LoadedModel& model_;
  ChatFormat format_;
  engine::GenerateOptions generate_;
  std::vector<std::string> stops_;
  engine::Session& session_;
  std::string system_;
  OrderedJson messages_ = OrderedJson::array();  // user and assistant in turns
};

OrderedJson Chat::all_messages() const {
  OrderedJson messages = OrderedJson::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  messages.insert(messages.end(), messages_.begin(), messages_.end());
  return messages;
}

Result<std::vector<TokenId>> Chat::encode() const {
  ASSIGN_OR_RETURN(const auto segments,
                   format_.chat_template.render(all_messages(), format_.render_options));
  return text::encode_segments(model_.tokenizer, segments);
}

Status Chat::check_fits(size_t tokens) const {
  const int64_t context = model_.engine->options().context;
  if (static_cast<int64_t>(tokens) <= context) return Ok{};
  return Error{.what = "the conversation is longer than the context",
               .expected = fmt::format("at most {} tokens", context),
               .actual = fmt::format("{} with this message, which was left out", tokens),
               .fix = "/clear begins anew, /undo takes the last turn back."};
}

Status Chat::say(const std::string& line) {
  RETURN_IF_ERROR(check_utf8(line, "message"));
  messages_.push_back({{"role", "user"}, {"content", line}});
  auto answer_text = [&]() -> Result<std::string> {
    ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, encode());
    RETURN_IF_ERROR(check_fits(tokens.size()));
    TextAnswer text(model_.tokenizer, stops_, true);
    const InterruptGuard guard(&session_);
    ASSIGN_OR_RETURN(const engine::Answer answer,
                     session_.generate(tokens, generate_, [&](const engine::AnswerToken& token) {
                       return text.push(token.id);
                     }));
    text.finish();
    write_stdout("\n");
    if (answer.finish_reason == decode::FinishReason::kCancelled) note("interrupted");
    note_limits(answer);
    const bool is_full = answer.clipped || !generate_.max_tokens;
    if (answer.finish_reason == decode::FinishReason::kLength && is_full) {
      note("the context is full; /clear begins anew, /undo takes the last turn back");
    }
    remark(fmt::format("{} tokens, {:.1f} tokens/s; {} of {} prompt tokens were there",
                       answer.tokens.size(), answer.timings.decode_tok_s(), answer.reused_tokens,
                       tokens.size()));
    return text.text();
  }();
  if (!answer_text.ok()) {
    messages_.erase(messages_.size() - 1);
    return answer_text.error();
  }
  messages_.push_back({{"role", "assistant"}, {"content", *answer_text}});
  return Ok{};
}

void Chat::set_system(const std::string& text) {
  const Status valid = check_utf8(text, "system message");
  if (!valid.ok()) return complain(valid.error().message());
  system_ = text;
}

void Chat::clear() { messages_ = OrderedJson::array(); }

void Chat::undo() {
  for (int i = 0; i < 2 && !messages_.empty(); ++i) messages_.erase(messages_.size() - 1);
}

void Chat::print_history() const {
  for (const OrderedJson& message : all_messages()) {
    write_stdout(fmt::format("{}: {}\n", message["role"].get<std::string>(),
                             message["content"].get<std::string>()));
  }
}

// A word that begins with a slash. `argument` is what stands after it.
struct ChatCommand {
  std::string_view name;
  std::string_view help;
  void (*run)(Chat& chat, const std::string& argument);  // null: leaves the chat
};

void print_help(Chat& chat, const std::string& argument);

constexpr ChatCommand kChatCommands[] = {
    {"/help", "this list", print_help},
    {"/system", "TEXT: set the system message, nothing: remove it",
     [](Chat& chat, const std::string& argument) { chat.set_system(argument); }},
    {"/clear", "forget the conversation", [](Chat& chat, const std::string&) { chat.clear(); }},
    {"/undo", "take the last turn back", [](Chat& chat, const std::string&) { chat.undo(); }},
    {"/history", "print the conversation",
     [](Chat& chat, const std::string&) { chat.print_history(); }},
    {"/quit", "leave (also Ctrl-D)", nullptr},
};

void print_help(Chat&, const std::string&) {
  for (const ChatCommand& command : kChatCommands) {
    note(fmt::format("{:<9} {}", command.name, command.help));
  }
  note("Ctrl-C ends an answer; a line is a message");
}

// Whether to go on.
bool handle(Chat& chat, const std::string& line) {
  if (line.empty()) return true;
  if (line[0] != '/') {
    const Status status = chat.say(line);
    if (!status.ok()) complain(status.error().message());
    return output_status().ok();
  }
  const std::string name = line.substr(0, line.find(' '));
  for (const ChatCommand& command : kChatCommands) {
    if (command.name != name) continue;
    if (command.run == nullptr) return false;
    command.run(chat, name.size() == line.size() ? "" : line.substr(name.size() + 1));
    return true;
  }
  complain(fmt::format("no command '{}'; /help lists them", name));
  return true;
}

void converse(Chat& chat) {
  bool warned = false;
  for (bool goes_on = true; goes_on;) {
    ask("> ");
    bool interrupted = false;
    std::optional<std::string> line;
    {
      const InterruptGuard guard(nullptr);
      line = read_line(interrupted);
    }
    if (interrupted) ask("\n");  // off the line where ^C stands
    if (interrupted && !warned) note("Ctrl-C again or Ctrl-D leaves");
    if (!line || (interrupted && warned)) return;
    if (line->ends_with('\r')) line->pop_back();  // of an end of line from Windows
    warned = interrupted;
    goes_on = handle(chat, *line);
  }
}

}  // namespace

Result<Exit> command_chat(const Options& options) {
  ASSIGN_OR_RETURN(const LoadedModel model, load_model(options));
  ASSIGN_OR_RETURN(ChatFormat format, make_chat_format(model.engine->checkpoint(), options));
  engine::GenerateOptions generate{.max_tokens = options.max_tokens,
                                   .speculation = options.speculation};
  ASSIGN_OR_RETURN(generate.sampling, choose_sampling(options, model.engine->checkpoint()));
  RETURN_IF_ERROR(decode::check(generate.sampling, model.engine->model().vocab_size));
  ASSIGN_OR_RETURN(const auto session, engine::Session::create(*model.engine));
  const CostProfile profile(model, options);
  profile.load(*session);
  Chat chat(model, std::move(format), std::move(generate), options.stops, *session);
  if (options.system) chat.set_system(*options.system);
  remark(fmt::format("{} is ready; /help lists commands", model.engine->checkpoint().name));
  converse(chat);
  profile.save(*session);
  return Exit::kDone;
}

}  // namespace espalier::cli
