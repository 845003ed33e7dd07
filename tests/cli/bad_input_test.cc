// Broken models: every one gives one line that says what is wrong, and exit code 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <random>

#include "espalier/base/mapped_file.h"
#include "tests/cli/espalier_process.h"
#include "tests/support/temporary_directory.h"

namespace espalier::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A copy of the tiny model, to be broken.
class BrokenModel {
 public:
  BrokenModel() {
    for (const char* name : {"config.json", "generation_config.json", "tokenizer.json",
                             "model.safetensors", "tokenizer_config.json", "chat_template.jinja"}) {
      std::filesystem::copy(tiny_chat() + "/" + name, directory_ / name);
    }
  }
  std::string path() const { return directory_.path(); }
  void remove(const std::string& name) { std::filesystem::remove(directory_ / name); }
  void write(const std::string& name, const std::string& content) {
    directory_.write(name, content);
  }
  std::string read(const std::string& name) const {
    return read_text_file(directory_ / name).value();
  }
  void replace(const std::string& name, const std::string& from, const std::string& to) {
    std::string content = read(name);
    const size_t place = content.find(from);
    ASSERT_NE(place, std::string::npos);
    write(name, content.replace(place, from.size(), to));
  }

 private:
  TemporaryDirectory directory_;
};

std::string random_bytes(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(generator());
  return bytes;
}

void expect_one_line_error(const std::string& model, const std::string& message) {
  const Outcome outcome = run_espalier({"run", "-m", model, "-n", "1", "hello"});
  EXPECT_EQ(outcome.exit_code, 1) << message << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("error: "));
  EXPECT_THAT(outcome.err, HasSubstr(message));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
}

struct Breakage {
  const char* message;
  std::function<void(BrokenModel&)> apply;
};

TEST(BadModel, IsRefusedWithTheReason) {
  const Breakage table[] = {
      {"config.json", [](auto& m) { m.remove("config.json"); }},
      {"config.json", [](auto& m) { m.write("config.json", "{\"model_type\": "); }},
      {"config.json", [](auto& m) { m.write("config.json", "[]"); }},
      {"nested too deeply", [](auto& m) { m.write("config.json", std::string(5000, '[')); }},
      {"abacus",
       [](auto& m) {
         m.replace("config.json", "\"model_type\": \"llama\"", "\"model_type\": \"abacus\"");
       }},
      {"hidden_size", [](auto& m) { m.replace("config.json", "\"hidden_size\": 32,", ""); }},
      {"[",
       [](auto& m) { m.replace("config.json", "\"hidden_size\": 32", "\"hidden_size\": 48"); }},
      {"hidden_size",
       [](auto& m) { m.replace("config.json", "\"hidden_size\": 32", "\"hidden_size\": -1"); }},
      {"layers.2",
       [](auto& m) {
         m.replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
       }},
      {"num_hidden_layers",
       [](auto& m) {
         m.replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 9999999999");
       }},
      {"model.norm.weight",
       [](auto& m) {
         m.replace("model.safetensors", "\"model.norm.weight\"", "\"model.nork.weight\"");
       }},
      {"model.safetensors", [](auto& m) { m.remove("model.safetensors"); }},
      {"model.safetensors", [](auto& m) { m.write("model.safetensors", ""); }},
      {"model.safetensors",
       [](auto& m) { m.write("model.safetensors", m.read("model.safetensors").substr(0, 60000)); }},
      {"model.safetensors",
       [](auto& m) { m.write("model.safetensors", std::string(8, '\xff') + "{}"); }},
      {"model.safetensors", [](auto& m) { m.write("model.safetensors", random_bytes(5000, 1)); }},
      {"tokenizer", [](auto& m) { m.remove("tokenizer.json"); }},
      {"tokenizer.json", [](auto& m) { m.write("tokenizer.json", "{}"); }},
      {"tokenizer.json", [](auto& m) { m.write("tokenizer.json", random_bytes(500, 2)); }},
      {"chat template", [](auto& m) { m.write("chat_template.jinja", "{% if %}"); }},
      {"chat template", [](auto& m) { m.write("chat_template.jinja", "{{ messages"); }},
      {"raise",
       [](auto& m) { m.write("chat_template.jinja", "{{ raise_exception('raised here') }}"); }},
  };
  for (const Breakage& breakage : table) {
    BrokenModel model;
    breakage.apply(model);
    expect_one_line_error(model.path(), breakage.message);
  }
}

TEST(BadModel, WithoutATemplateSaysHowToContinueText) {
  BrokenModel model;
  model.remove("chat_template.jinja");
  expect_one_line_error(model.path(), "has no chat template");
  expect_one_line_error(model.path(), "--raw");
  EXPECT_EQ(run_espalier({"run", "-m", model.path(), "-n", "1", "--raw", "hello"}).exit_code, 0);
}

TEST(BadModel, OfRandomOrTruncatedGgufIsRefused) {
  const TemporaryDirectory directory;
  expect_one_line_error(directory.write("a.gguf", random_bytes(4096, 3)), "a.gguf");
  expect_one_line_error(directory.write("b.gguf", "GGUF"), "b.gguf");
  expect_one_line_error(directory.write("c.gguf", "GGUF" + random_bytes(4096, 4)), "c.gguf");
  // Version 3, a huge count of tensors, a huge count of keys.
  expect_one_line_error(
      directory.write("d.gguf", "GGUF" + std::string("\3\0\0\0", 4) + std::string(16, '\x7f')),
      "d.gguf");
  expect_one_line_error(directory.write("e.txt", "just a text"), "is not a model");
  expect_one_line_error(directory / "nothing", "there is no model at");
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(BadModel, IsNamedOnce) {
  BrokenModel model;
  model.write("chat_template.jinja", "{% if %}");
  const std::string error = run_espalier({"run", "-m", model.path(), "hello"}).err;
  EXPECT_EQ(occurrences(error, model.path()), 1U) << error;
  EXPECT_EQ(occurrences(error, "chat template"), 1U) << error;
  // A GGUF file without anything in it lacks its architecture.
  const TemporaryDirectory directory;
  const std::string path =
      directory.write("a.gguf", "GGUF" + std::string("\3\0\0\0", 4) + std::string(16, '\0'));
  const std::string empty = run_espalier({"run", "-m", path, "hello"}).err;
  EXPECT_EQ(occurrences(empty, path), 1U) << empty;
  EXPECT_THAT(empty, HasSubstr("general.architecture"));
}

TEST(BadModel, OfBrokenJsonSaysWhereItBreaksInPlainWords) {
  BrokenModel model;
  model.write("config.json", "{\"model_type\": ");
  const std::string error = run_espalier({"info", "-m", model.path()}).err;
  EXPECT_THAT(error, HasSubstr("got parse error at line 1, column 16"));
  EXPECT_EQ(error.find("json.exception"), std::string::npos);
}

TEST(BadModel, SendsNoCommandsToTheTerminal) {
  const std::string evil = "\033[31m\u009b2J\r\n\x7f";
  const auto expect_harmless = [](const std::string& text) {
    for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c != '\x7f')) << text;
  };
  BrokenModel model;
  model.write("chat_template.jinja", "{{ raise_exception('\\u001b[31m\\nred\\u009b2J') }}");
  const Outcome raised = run_espalier({"run", "-m", model.path(), "-n", "1", "hello"});
  EXPECT_EQ(std::ranges::count(raised.err, '\n'), 1);
  expect_harmless(raised.err);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{evil},
        {"run", evil},
        {"run", "-" + evil},
        {"run", "-m", evil, "x"},
        {"run", "--temperature", evil},
        {"info", "-m", "\xff\xfe"},
        {"doctor", "-m", evil},
        {"tokenize", "-m", tiny_chat(), "--decode", "--", evil}}) {
    const Outcome outcome = run_espalier(words);
    EXPECT_NE(outcome.exit_code, 0);
    expect_harmless(outcome.out + outcome.err);
    EXPECT_LE(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  BrokenModel named;
  named.replace("config.json", "\"model_type\"",
                R"("_name_or_path": "\u001b[31mred\nname: x\u009b", "model_type")");
  const Outcome info = run_espalier({"info", "-m", named.path()});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  expect_harmless(info.out);
  EXPECT_THAT(info.out, HasSubstr("name: \\x1B[31mred\\nname: x\\xC2\\x9B\n"));
}

TEST(BadModel, EveryTruncationOfItsWeightsIsRefused) {
  BrokenModel model;
  const std::string whole = model.read("model.safetensors");
  std::mt19937 generator(7);
  for (int i = 0; i < 20; ++i) {
    model.write("model.safetensors", whole.substr(0, generator() % whole.size()));
    expect_one_line_error(model.path(), "safetensors");
  }
}

}  // namespace
}  // namespace espalier::cli
