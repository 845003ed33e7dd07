// nano, the model of this repository, against what transformers answers with the same weights.
#include <gtest/gtest.h>

#include <vector>

#include "espalier/base/mapped_file.h"
#include "tests/cli/espalier_process.h"
#include "tests/support/temporary_directory.h"

namespace espalier::cli {
namespace {

constexpr const char* kNano = ESPALIER_SOURCE_DIR "/models/nano";

Json cases() {
  const std::string path = ESPALIER_SOURCE_DIR "/tests/golden/nano.json";
  return parse_json(read_text_file(path).value(), path).value();
}

// What espalier answers to a golden prompt.
Json answer(const Json& golden, const std::string& unit) {
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = {"run",          "-m", kNano,    "--greedy", "--json",
                                        "--max-tokens", "96", "--unit", unit,       golden["user"]};
  if (golden["tools"] != "") {
    const std::string tools = directory.write("tools.json", golden["tools"].get<std::string>());
    arguments.insert(arguments.end(), {"--tools", tools});
  }
  return json_of(arguments);
}

TEST(Nano, AnswersWithTheTokensOfTransformers) {
  for (const Json& golden : cases()) {
    const Json report = answer(golden, "cpu");
    EXPECT_EQ(report["prompt_token_ids"], golden["prompt_token_ids"]) << golden["user"];
    EXPECT_EQ(report["token_ids"], golden["token_ids"]) << golden["user"];
  }
}

TEST(Nano, AnswersTheSameOnTheReferenceUnit) {
  const Json golden = cases();
  for (size_t i = 0; i < golden.size(); i += 12) {
    EXPECT_EQ(answer(golden[i], "reference")["token_ids"], golden[i]["token_ids"]);
  }
}

}  // namespace
}  // namespace espalier::cli
