// Templates that want to hang, to crash or to fill the memory end in an error, soon.
#include <gtest/gtest.h>

#include <chrono>

#include "espalier/text/chat_template.h"

namespace espalier::text {
namespace {

std::string repeat(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

std::string outcome(const std::string& source) {
  const auto chat_template = ChatTemplate::parse(source);
  if (!chat_template.ok()) return chat_template.error().message();
  const auto segments =
      chat_template->render(OrderedJson::parse(R"([{"role": "user", "content": "abc"}])"), {});
  return segments.ok() ? "fine" : segments.error().message();
}

// What the error must name, and a template that must end in it.
const std::pair<const char*, std::string> kHostile[] = {
    {"too much work",
     "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"},
    {"too much work", "{{ 'a' * 10000000000 }}"},
    {"too much work", "{{ 'abc' * 9223372036854775807 }}"},
    {"too much work", "{{ [1] * 1000000000 }}"},
    {"too much work",
     "{% set ns = namespace(s='abcdefgh') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s "
     "%}{% endfor %}"},
    {"too much work",
     "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s.replace('a', "
     "ns.s) %}{% endfor %}"},
    {"too much work",
     "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s.join(ns.s) %}{% "
     "endfor %}"},
    {"too much work",
     "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% "
     "endfor %}"},
    {"too much work",
     "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% "
     "endfor %}{{ ns.s }}"},
    {"too much work",
     "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% "
     "endfor %}{{ ns.s|tojson }}"},
    {"too much work",
     "{% set ns = namespace(s=1, t=1) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% "
     "set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}"},
    {"too much work",
     "{% set ns = namespace(s=(1,)) %}{% for i in range(99) %}{% set ns.s = (ns.s, ns.s) %}{% "
     "endfor %}{{ {ns.s: 1} }}"},
    {"too much work", "{{ 'a'.center(9000000000) }}"},
    {"too much work", "{{ 'a'.zfill(9000000000) }}"},
    {"too much work", "{{ '%9000000000d' % 1 }}"},
    {"too much work", "{{ '%*d' % (9000000000, 1) }}"},
    {"too much work", "{{ '{:9000000000}'.format(1) }}"},
    {"too much work", "{{ 'a\tb'.expandtabs(9000000000) }}"},
    {"too much work", "{{ [1]|batch(9000000000, 0)|list }}"},
    {"too much work", "{{ [1]|slice(9000000000)|list }}"},
    {"too much work", "{{ 'a\nb'|indent(9000000000) }}"},
    {"too much work",
     "{% set x %}{% for i in range(100000) %}{{ 'a' * 100000 }}{% endfor %}{% endset %}"},
    {"too much work",
     "{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ s.count('b') }}{% endfor %}"},
    {"too much work",
     "{% set s = 'a ' * 1000000 %}{% for i in range(100000) %}{% set x = s.split() %}{% endfor "
     "%}"},
    {"too much work",
     "{% set l = range(100000)|list %}{% for i in range(100000) %}{% set x = l|sort %}{% endfor "
     "%}"},
    {"too much work",
     "{% set l = range(100000)|list %}{% for i in range(100000) %}{% set x = 'a' in l %}{% "
     "endfor %}"},
    {"too much work", "{% set l = range(1000)|list %}{{ {'a': l}|tojson(indent='x' * 1000000) }}"},
    {"too much work", "{% set s = 'ab' * 10000000 %}{{ s.strip('c' * 10000000 ~ 'ab') }}"},
    {"a range is too long", "{{ range(1000000000)|list }}"},
    {"a range is too long", "{{ range(-9223372036854775807, 9223372036854775807)|length }}"},
    {"too many digits", "{{ '%.999999999f' % 1.5 }}"},
    {"too deeply", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
    {"too deeply", "{% macro m(f) %}{{ f(f) }}{% endmacro %}{{ m(m) }}"},
    {"too deeply", "{% macro m(a=m()) %}{% endmacro %}{{ m() }}"},
    {"too deeply", "{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}"},
    {"too deeply",
     "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{% "
     "call m() %}{% endcall %}"},
    {"nested too deeply",
     "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor "
     "%}"},
    {"nested too deeply",
     "{% set ns = namespace(x=[1]) %}{% for i in range(100000) %}{% set ns.x = [ns.x.index] %}{% "
     "endfor %}"},
    {"nested too deeply",
     "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = cycler(ns.x) %}{% "
     "endfor %}"},
    {"nested too deeply",
     "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = joiner(ns.x) %}{% "
     "endfor %}"},
    {"nested too deeply",
     "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% for y in [ns.x] %}{% set ns.x "
     "= loop %}{% endfor %}{% endfor %}"},
    {"nested too deeply",
     "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = "
     "[ns.x]|map('default') %}{% endfor %}"},
    {"holds itself", "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"},
    {"holds itself", "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns.x }}"},
    {"nested too deeply", "{{ " + repeat("(", 100000) + "1" + repeat(")", 100000) + " }}"},
    {"nested too deeply", "{{ " + repeat("[", 100000) + repeat("]", 100000) + " }}"},
    {"nested too deeply", "{{ " + repeat("-", 100000) + "1 }}"},
    {"nested too deeply", "{{ " + repeat("not ", 100000) + "1 }}"},
    {"nested too deeply", "{{ " + repeat("1 if 1 else ", 100000) + "1 }}"},
    {"nested too deeply", "{% set " + repeat("(", 100000) + "a" + repeat(")", 100000) + " = 1 %}"},
    {"too long", "{{ 1" + repeat(" + 1", 100000) + " }}"},
    {"too long", "{{ a" + repeat(".a", 100000) + " }}"},
    {"too long", "{{ a" + repeat("()", 100000) + " }}"},
    {"too long", "{{ a" + repeat("|upper", 100000) + " }}"},
    {"too long", "{{ 1" + repeat(" and 1", 100000) + " }}"},
    {"too long", "{{ 1" + repeat(" if 1", 100000) + " }}"},
    {"nested too deeply", repeat("{% if 1 %}", 100000)},
    {"nested too deeply", repeat("{% for x in y %}", 100000)},
    {"64 bits", "{{ 9223372036854775807 + 1 }}"},
    {"64 bits", "{{ 10 ** 100 }}"},
    {"64 bits", "{{ -(-9223372036854775807 - 1) }}"},
    {"64 bits", "{{ (-9223372036854775807 - 1) // -1 }}"},
    {"2^63", "{{ 9223372036854775808 }}"},
};

TEST(JinjaLimits, EndHostileTemplatesWithAnError) {
  for (const auto& [limit, source] : kHostile) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string message = outcome(source);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_NE(message.find(limit), std::string::npos) << source.substr(0, 200) << "\n" << message;
    EXPECT_LT(seconds.count(), 30) << source.substr(0, 200);  // about one on an idle machine
  }
}

TEST(JinjaLimits, LeaveRoomForLongChats) {
  OrderedJson messages = OrderedJson::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", repeat("some words ", 200)}});
  }
  const auto chat_template = ChatTemplate::parse(
      "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'user' and m.content is "
      "string %}"
      "{% set ns.n = ns.n + 1 %}{% endif %}{{ '<|im_start|>' + m.role + '\n' + (m.content | trim) "
      "+ '<|im_end|>' }}"
      "{% endfor %}{{ ns.n }}");
  ASSERT_TRUE(chat_template.ok());
  const auto segments = chat_template->render(messages, {});
  ASSERT_TRUE(segments.ok()) << segments.error().message();
  EXPECT_EQ(join(*segments).size(), 2000 * (2199 + 22) + 4 * 1000 + 9 * 1000 + 2000 + 4);
}

TEST(JinjaLimits, LetMacrosCallThemselvesAsDeepAsSchemasAre) {
  OrderedJson schema = {{"type", "string"}};
  for (int i = 0; i < 20; ++i) schema = {{"type", "array"}, {"items", schema}};
  const auto chat_template = ChatTemplate::parse(
      "{% macro type(s) %}{% if s.type == 'array' %}{% for x in [1] %}List[{{ type(s['items']) "
      "}}]{% endfor %}"
      "{% else %}{{ s.type }}{% endif %}{% endmacro %}{{ type(tools[0]) }}");
  ASSERT_TRUE(chat_template.ok());
  RenderOptions options;
  options.tools = OrderedJson::array({schema});
  const auto segments = chat_template->render(OrderedJson::array(), options);
  ASSERT_TRUE(segments.ok()) << segments.error().message();
  EXPECT_EQ(join(*segments), repeat("List[", 20) + "string" + repeat("]", 20));
}

}  // namespace
}  // namespace espalier::text
