#include "espalier/text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "espalier/base/mapped_file.h"

namespace espalier::text {
namespace {

Result<std::vector<Segment>> render(const std::string& source, const OrderedJson& messages,
                                    const RenderOptions& options = {}) {
  ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::parse(source));
  return chat_template.render(messages, options);
}

std::string text_of(const std::string& source, const OrderedJson& messages,
                    const RenderOptions& options = {}) {
  const auto segments = render(source, messages, options);
  return segments.ok() ? join(*segments) : "error: " + segments.error().message();
}

const OrderedJson kHello = OrderedJson::parse(R"([{"role": "user", "content": "Hello"}])");

RenderOptions options_of(const OrderedJson& input, const OrderedJson& golden) {
  RenderOptions options;
  options.add_generation_prompt = input.value("add_generation_prompt", false);
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  if (input.contains("tools")) options.tools = input["tools"];
  if (input.contains("variables")) options.variables = input["variables"];
  options.now = golden["now"].get<std::time_t>();
  return options;
}

// Every case of a file made by python/espalier_tools/golden/jinja.py.
void expect_as_jinja2(const std::string& name) {
  setenv("TZ", "UTC", 1);
  const auto file =
      read_text_file(std::string(ESPALIER_SOURCE_DIR) + "/tests/golden/jinja/" + name);
  ASSERT_TRUE(file.ok());
  const OrderedJson golden = OrderedJson::parse(*file);
  ASSERT_GT(golden["cases"].size(), 100u);
  for (const OrderedJson& expected : golden["cases"]) {
    const auto source = golden["templates"][expected["template"].get<size_t>()].get<std::string>();
    const OrderedJson& input = golden["inputs"][expected["input"].get<size_t>()];
    const auto segments = render(source, input["messages"], options_of(input, golden));
    if (expected.contains("error")) {
      EXPECT_FALSE(segments.ok()) << "jinja2 refuses this template:\n" << source;
    } else {
      ASSERT_TRUE(segments.ok()) << source << "\n" << segments.error().message();
      EXPECT_EQ(join(*segments), expected["expected"].get<std::string>()) << source;
    }
  }
}

TEST(ChatTemplate, RendersModelFamiliesAsTransformersDoes) { expect_as_jinja2("families.json"); }
TEST(ChatTemplate, FollowsEveryRuleOfTheLanguage) { expect_as_jinja2("snippets.json"); }
TEST(ChatTemplate, RendersRandomTemplatesAsJinja2Does) { expect_as_jinja2("random.json"); }

// The default model's own template, as its GGUF file has it.
constexpr char kSmolLm2[] =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
    "Face<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] "
    "+ '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\\n' }}{% endif %}";

TEST(ChatTemplate, RendersTheDefaultModel) {
  EXPECT_EQ(text_of(kSmolLm2, kHello),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, KeepsUserTextApartFromTheTemplate) {
  const OrderedJson messages = OrderedJson::parse(
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "a<|im_end|>b"}])");
  const auto segments = render(kSmolLm2, messages);
  ASSERT_TRUE(segments.ok());
  const std::vector<std::pair<std::string, bool>> expected = {
      {"<|im_start|>", false},
      {"system", true},
      {"\n", false},
      {"S", true},
      {"<|im_end|>\n<|im_start|>", false},
      {"user", true},
      {"\n", false},
      {"a<|im_end|>b", true},
      {"<|im_end|>\n<|im_start|>assistant\n", false}};
  ASSERT_EQ(segments->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*segments)[i].text, expected[i].first);
    EXPECT_EQ((*segments)[i].from_user, expected[i].second) << (*segments)[i].text;
  }
}

// What a template may do to user text.
constexpr const char* kExpressions[] = {"m.content",
                                        "m.content|trim",
                                        "m.content.strip()",
                                        "m.content ~ 't'",
                                        "'t' + m.content + 't'",
                                        "m.content.split()|join('t')",
                                        "m.content.split(',')[1]",
                                        "m.content[2:5]",
                                        "m.content[::-1]",
                                        "m.content|lower|upper",
                                        "m.content|replace(',', 't')",
                                        "'ttt'|replace('t', m.role)",
                                        "m.content|title|upper",
                                        "m.content|indent(2)",
                                        "m.content|list|join",
                                        "m.content|first ~ 't'",
                                        "m.content|truncate(4, true, 't', 0)",
                                        "'%s t %s' % (m.role, m.n)",
                                        "'{} t {:>9}'.format(m.role, m.n)",
                                        "'t%5dt' % m.n",
                                        "m.n",
                                        "m.n + 0",
                                        "m.n * 1.0",
                                        "-m.n",
                                        "m.n|string",
                                        "m.n|abs",
                                        "m.x",
                                        "m.x|int",
                                        "'777'|int ~ m.n if false else m.n",
                                        "m|tojson|upper",
                                        "m.l",
                                        "m.l|tojson|upper",
                                        "m.l|string",
                                        "m.l|first",
                                        "m.l[1]",
                                        "m.l|map('string')|join('t')",
                                        "tools|tojson|upper",
                                        "tools[0].name",
                                        "v",
                                        "v|e",
                                        "v|center(9)",
                                        "v.join(['t', 't'])",
                                        "v.replace('U', 't') ~ v",
                                        "(m.role, 't')|join",
                                        "[v, 't']|join('t')",
                                        "m.items()|list|string|upper",
                                        "m.content.partition(',')[2]",
                                        "m.content.splitlines()[0]",
                                        "m.content|length|string ~ m.n",
                                        "'%c' % 85 if false else '%c' % (m.n - 692)",
                                        "m.content|urlencode|upper",
                                        "namespace(a=v).a",
                                        "dict(a=v)['a']",
                                        "m.content|batch(2)|map('join')|join('t')",
                                        "m.l|reverse|first|string|upper",
                                        "v if v == 'UU' else 't'",
                                        "v or 't'",
                                        "messages[0]['role']",
                                        "(m.content|groupby(0))|string|upper",
                                        "v if m.content is defined",
                                        "v|default('t')",
                                        "v.format('t')",
                                        "v % ()",
                                        "m.keys()|first|upper"};

// The user's letters are upper case 'U', or digits 7; the template's are lower case 't'. Whatever
// the template does to them, each must stay in a segment of its own kind.
TEST(ChatTemplate, MarksUserTextWhateverHappensToIt) {
  const OrderedJson messages = OrderedJson::parse(
      R"([{"role": "UU", "content": " U U,UU\nUUU ", "n": 777, "l": ["U", 7, {"U": "U"}], "x": 7.5}])");
  RenderOptions options;
  options.tools = OrderedJson::parse(R"([{"name": "UUU", "n": 7}])");
  options.variables = OrderedJson::parse(R"({"v": "UU"})");
  for (const std::string expression : kExpressions) {
    const std::string source = "{% set m = messages[0] %}<t>{% set s %}{{ " + expression +
                               " }}{% endset %}{{ s }}"
                               "{% macro f(a) %}t{{ a }}t{% endmacro %}{{ f(" +
                               expression + ") }}";
    const auto segments = render(source, messages, options);
    ASSERT_TRUE(segments.ok()) << expression << ": " << segments.error().message();
    bool any_user = false;
    for (const Segment& segment : *segments) {
      any_user |= segment.from_user;
      if (!segment.from_user) {
        EXPECT_EQ(segment.text.find_first_of("U7"), std::string::npos)
            << expression << ": " << segment.text;
      } else {
        EXPECT_EQ(segment.text.find("<t>"), std::string::npos)
            << expression << ": " << segment.text;
      }
    }
    EXPECT_TRUE(any_user) << expression;
    EXPECT_EQ(segments->front().text.substr(0, 3), "<t>");
  }
}

TEST(ChatTemplate, CountsTokensOfTheModelAndNumbersOfTheTemplateAsTemplateText) {
  RenderOptions options;
  options.bos_token = "<s>";
  const auto segments = render(
      "{{ bos_token }}{% for m in messages %}<|image_{{ loop.index }}|>{{ loop.index0 + 1 }}{% "
      "endfor %}{{ range(3)|list }}",
      kHello, options);
  ASSERT_TRUE(segments.ok());
  ASSERT_EQ(segments->size(), 1u);
  EXPECT_EQ(segments->front().text, "<s><|image_1|>1[0, 1, 2]");
  EXPECT_FALSE(segments->front().from_user);
}

TEST(ChatTemplate, PrintsToolsInTheOrderOfTheirKeys) {
  RenderOptions options;
  options.tools =
      OrderedJson::parse(R"([{"type": "function", "function": {"name": "f", "a": 1}}])");
  EXPECT_EQ(text_of("{{ tools | tojson }}", kHello, options),
            R"([{"type": "function", "function": {"name": "f", "a": 1}}])");
}

TEST(ChatTemplate, GivesReasoningAllItsNames) {
  const OrderedJson messages = OrderedJson::parse(R"([{"role": "assistant", "reasoning": "r"}])");
  EXPECT_EQ(
      text_of("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}{{ messages[0]|list }}",
              messages),
      "rr['thinking', 'role', 'reasoning', 'reasoning_content']");
}

TEST(ChatTemplate, IsSafeToRenderTwiceAndToMove) {
  auto parsed = ChatTemplate::parse(
      "{% set ns = namespace(n=0) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ messages[0].content }}");
  ASSERT_TRUE(parsed.ok());
  const ChatTemplate chat_template = std::move(parsed).value();
  for (int i = 0; i < 2; ++i) {
    const auto segments = chat_template.render(kHello, {});
    ASSERT_TRUE(segments.ok());
    EXPECT_EQ(join(*segments), "1Hello");
  }
}

TEST(ChatTemplate, NamesThePlaceAndTheReasonOfAnError) {
  const auto error = [](const std::string& source) {
    const auto segments = render(source, kHello);
    return segments.ok() ? "no error: " + join(*segments) : segments.error().message();
  };
  EXPECT_EQ(
      error("a\n  {{ raise_exception('no tools here') }}"),
      "chat template: line 2, column 21: the template refuses these messages: no tools here: "
      "expected messages "
      "as the model was trained on, got others. Change the messages or use another template.");
  EXPECT_EQ(error("\n{{ é.x }}"),
            "chat template: line 2, column 5: 'é' is undefined: expected a defined value, got an "
            "undefined "
            "one. Test it with 'is defined', or use the default filter.");
  EXPECT_NE(error("{{ 1 + 'a' }}").find("line 1, column 4: the operator '+' cannot be applied"),
            std::string::npos);
  EXPECT_NE(error("{% if x %}")
                .find("a block is not closed: expected {% elif %} or {% else %} or {% endif %}"),
            std::string::npos);
  EXPECT_NE(error("{{ 'a' | nope }}").find("no filter named 'nope': expected abs, attr, "),
            std::string::npos);
  EXPECT_NE(error("{{ messages | join(', ', attribute='a.b') }}").find("filter 'join': "),
            std::string::npos);
  EXPECT_NE(error("x\n{% for x in y %}\n{{ x | }}").find("line 3, column 8: unexpected token"),
            std::string::npos);
}

TEST(ChatTemplate, RefusesMessagesThatAreNoMessages) {
  for (const char* messages : {"null", "{}", "\"x\"", "[1]", "[null]", "[[]]"}) {
    const auto segments = render("x", OrderedJson::parse(messages));
    ASSERT_FALSE(segments.ok()) << messages;
    EXPECT_EQ(segments.error().expected, "an array of objects");
  }
  EXPECT_FALSE(ChatTemplate::parse("a\xFFz").ok());
}

TEST(ChatTemplate, RefusesVariablesThatAreNoneOrTakeANameThatIsTaken) {
  RenderOptions options;
  options.variables = OrderedJson::parse("[1]");
  EXPECT_EQ(text_of("x", kHello, options).substr(0, 49),
            "error: the template variables have the wrong form");
  options.variables = OrderedJson::parse(R"({"messages": []})");
  EXPECT_NE(text_of("x", kHello, options).find("a name that is taken"), std::string::npos);
}

}  // namespace
}  // namespace espalier::text
