#include "espalier/text/chat_template.h"

#include <fmt/format.h>

#include "espalier/text/jinja/globals.h"
#include "espalier/text/jinja/interpreter.h"
#include "espalier/text/jinja/parser.h"

namespace espalier::text {
namespace {

using jinja::Dict;
using jinja::Value;

// What a caller passes, as values of the template language; all of it is user text.
Result<Value> from_json(jinja::Budget& budget, const OrderedJson& json, int level) {
  if (level > jinja::Budget::kValueDepth) {
    return Error{.what = "the messages are nested too deeply",
                 .expected = fmt::format("at most {} levels", jinja::Budget::kValueDepth),
                 .actual = "more",
                 .fix = "Flatten them."};
  }
  RETURN_IF_ERROR(budget.spend(jinja::Budget::kStepBytes));
  switch (json.type()) {
    case OrderedJson::value_t::boolean:
      return Value::boolean(json.get<bool>(), true);
    case OrderedJson::value_t::number_integer:
      return Value::integer(json.get<int64_t>(), true);
    case OrderedJson::value_t::number_float:
      return Value::real(json.get<double>(), true);
    case OrderedJson::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      if (number > INT64_MAX) return Value::real(static_cast<double>(number), true);
      return Value::integer(static_cast<int64_t>(number), true);
    }
    case OrderedJson::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      RETURN_IF_ERROR(budget.spend(text.size()));
      return Value::string(jinja::Text(text, true));
    }
    case OrderedJson::value_t::array: {
      jinja::Values items;
      for (const OrderedJson& element : json) {
        ASSIGN_OR_RETURN(Value item, from_json(budget, element, level + 1));
        items.push_back(std::move(item));
      }
      return Value::list(std::move(items));
    }
    case OrderedJson::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [name, element] : json.items()) {
        ASSIGN_OR_RETURN(Value item, from_json(budget, element, level + 1));
        RETURN_IF_ERROR(budget.spend(name.size()));
        dict->set_name(name, true, std::move(item));
      }
      return Value::dict(std::move(dict));
    }
    default:
      return Value();
  }
}

// transformers gives the reasoning of a message all the names that templates know it by.
OrderedJson with_reasoning_names(const OrderedJson& messages) {
  OrderedJson result = messages;
  for (OrderedJson& message : result) {
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
      const auto found = message.find(name);
      if (found == message.end() || found->is_null()) continue;
      const OrderedJson reasoning = *found;
      OrderedJson renamed;
      if (!message.contains("thinking")) renamed["thinking"] = reasoning;
      for (const auto& [key, value] : message.items()) renamed[key] = value;
      renamed["reasoning_content"] = reasoning;
      message = std::move(renamed);
      break;
    }
  }
  return result;
}

Status check_messages(const OrderedJson& messages) {
  bool fits = messages.is_array();
  if (fits) {
    for (const OrderedJson& message : messages) fits &= message.is_object();
  }
  if (fits) return Ok{};
  return Error{.what = "the messages have the wrong form",
               .expected = "an array of objects",
               .actual = std::string(messages.is_array() ? "an array of something else"
                                                         : messages.type_name()),
               .fix = R"(Write [{"role": "user", "content": "..."}].)"};
}

// bos_token, eos_token, documents and what the caller adds.
Status add_variables(jinja::Budget& budget, const RenderOptions& options, Dict& globals) {
  globals.set_name("bos_token", false, Value::literal(options.bos_token));
  globals.set_name("eos_token", false, Value::literal(options.eos_token));
  globals.set_name("documents", false, Value());
  if (options.variables.is_null()) return Ok{};
  if (!options.variables.is_object()) {
    return Error{.what = "the template variables have the wrong form",
                 .expected = "an object",
                 .actual = options.variables.type_name(),
                 .fix = R"(Write {"enable_thinking": false}.)"};
  }
  for (const auto& [name, json] : options.variables.items()) {
    if (name == "messages" || name == "tools" || name == "add_generation_prompt") {
      return Error{.what = "a template variable has a name that is taken",
                   .expected = "another name than messages, tools, add_generation_prompt",
                   .actual = name,
                   .fix = "Give it as what it is, not as a variable."};
    }
    ASSIGN_OR_RETURN(Value value, from_json(budget, json, 0));
    globals.set_name(name, false, std::move(value));
  }
  return Ok{};
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::TemplateTree tree;
  Dict builtins;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(const std::string& source) {
  auto impl = std::make_unique<Impl>();
  auto tree = jinja::parse_template(source);
  if (!tree.ok()) return tree.error().with_context("chat template");
  impl->tree = std::move(tree).value();
  jinja::add_builtin_globals(impl->builtins);
  return ChatTemplate(std::move(impl));
}

Result<std::vector<Segment>> ChatTemplate::render(const OrderedJson& messages,
                                                  const RenderOptions& options) const {
  RETURN_IF_ERROR(check_messages(messages));
  jinja::Machine machine(options.now.value_or(std::time(nullptr)));
  Dict globals = impl_->builtins;
  RETURN_IF_ERROR(add_variables(machine.budget, options, globals));
  ASSIGN_OR_RETURN(Value message_list,
                   from_json(machine.budget, with_reasoning_names(messages), 0));
  ASSIGN_OR_RETURN(Value tools, from_json(machine.budget, options.tools, 0));
  globals.set_name("messages", false, std::move(message_list));
  globals.set_name("tools", false, std::move(tools));
  globals.set_name("add_generation_prompt", false, Value::boolean(options.add_generation_prompt));

  auto text = jinja::Interpreter(impl_->tree, machine, globals).run();
  if (!text.ok()) return text.error().with_context("chat template");
  std::vector<Segment> segments;
  text->for_each_run([&](std::string_view run, bool from_user) {
    segments.push_back({std::string(run), from_user});
  });
  return segments;
}

std::string join(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

}  // namespace espalier::text
