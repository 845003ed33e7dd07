// espalier info, bench, doctor and dump, as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "espalier/base/mapped_file.h"
#include "espalier/cli/interrupt.h"
#include "tests/cli/espalier_process.h"
#include "tests/support/temporary_directory.h"

namespace espalier::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Info, SaysWhatTheModelIsAndCosts) {
  const Json info = json_of({"info", "-m", tiny_chat(), "--json"});
  EXPECT_EQ(info["architecture"], "llama");
  EXPECT_EQ(info["layers"], 2);
  EXPECT_EQ(info["vocab_size"], 320);
  EXPECT_EQ(info["context"], 256);
  EXPECT_EQ(info["end_tokens"], Json({2}));
  EXPECT_EQ(info["encodings"]["f32"]["parameters"], info["parameters"]);
  EXPECT_EQ(info["work"][0]["rows"], 1);
  // K and V of 2 layers, 2 heads of 8 channels.
  EXPECT_EQ(info["kv_bytes_per_position"], 2 * 2 * 2 * 8 * 2);
  EXPECT_EQ(json_of({"info", "-m", tiny_chat(), "--json", "--unit",
                     "reference"})["kv_bytes_per_position"],
            2 * 2 * 2 * 8 * 4);
  EXPECT_GT(info["work"][1]["flops"], 60 * info["work"][0]["flops"].get<double>());
  EXPECT_GT(info["memory"]["weights_bytes"], 0);
  EXPECT_THAT(run_espalier({"info", "-m", tiny_chat()}).out, HasSubstr("architecture: llama\n"));
}

TEST(Info, PrintsTheProgram) {
  const Outcome outcome = run_espalier({"info", "-m", tiny_chat(), "--program", "--window", "16"});
  EXPECT_THAT(outcome.out, StartsWith("program "));
  EXPECT_THAT(outcome.out, HasSubstr("head_argmax"));
  EXPECT_THAT(outcome.out, HasSubstr("rows=16"));
}

TEST(Bench, MeasuresEveryWindowBesideTheReadFloor) {
  const std::vector<std::string> arguments = {
      "bench", "-m", tiny_chat(), "--rounds", "2", "--window", "8", "-n", "4", "--threads", "1"};
  std::vector<std::string> json_arguments = arguments;
  json_arguments.emplace_back("--json");
  const Json report = json_of(json_arguments);
  ASSERT_EQ(report["calls"].size(), 4U);  // 1, 2, 4, 8
  for (const Json& call : report["calls"]) {
    EXPECT_GT(call["call_ms"]["median"], 0);
    EXPECT_LE(call["call_ms"]["p10"], call["call_ms"]["p90"]);
    EXPECT_EQ(call["call_ms"]["samples"], 6);
    EXPECT_GT(call["of_read_floor"], 0);
  }
  EXPECT_GT(report["read_gb_s"], 0.1);
  EXPECT_GT(report["decode_tok_s"]["median"], 0);
  EXPECT_GT(report["prefill_tok_s"]["median"], 0);
  EXPECT_THAT(run_espalier(arguments).out, HasSubstr("of floor"));
}

TEST(Doctor, SaysWhatThisMachineCanDo) {
  const Json report = json_of({"doctor", "--json"});
  EXPECT_GE(report["physical_cores"], 1);
  EXPECT_GT(report["memory_bytes"], 0);
  EXPECT_EQ(report["units"][0]["name"], "cpu");
  EXPECT_EQ(report["units"][0]["chosen"], report["units"][0]["kernels"][0]);
  EXPECT_THAT(run_espalier({"doctor"}).out, HasSubstr("no --model was given"));
}

TEST(Doctor, TriesTheModel) {
  EXPECT_FALSE(json_of({"doctor", "-m", tiny_chat(), "--json"})["model"]["placement"].empty());
  const Outcome missing = run_espalier({"doctor", "-m", "/no/such/model"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.out, HasSubstr("there is no model at '/no/such/model'"));
}

TEST(Dump, WritesAFileThatScoresAsTheModelDoes) {
  const TemporaryDirectory directory;
  const Outcome dump = run_espalier(
      {"dump", "-m", tiny_chat(), "--weights", "keep", "-o", directory / "model.safetensors"});
  EXPECT_EQ(dump.exit_code, 0) << dump.err;
  EXPECT_EQ(dump.out, "");
  EXPECT_THAT(dump.err, HasSubstr("20 tensors written to "));
  for (const char* name : {"config.json", "tokenizer.json"}) {
    std::filesystem::copy(tiny_chat() + "/" + name, directory / name);
  }
  const auto score = [](const std::string& model) {
    return json_of(
        {"score", "-m", model, "--json", "--weights", "keep", "A tree in a fixed frame."});
  };
  EXPECT_EQ(score(directory.path())["logprobs"], score(tiny_chat())["logprobs"]);
}

TEST(Dump, WritesOverNoFileOfTheModel) {
  const TemporaryDirectory directory;
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    std::filesystem::copy(tiny_chat() + "/" + name, directory / name);
  }
  std::filesystem::create_symlink("model.safetensors", directory / "link");
  std::filesystem::create_hard_link(directory / "model.safetensors", directory / "hard");
  for (const char* output :
       {"config.json", "tokenizer.json", "model.safetensors", "link", "hard"}) {
    const std::string before = read_text_file(directory / output).value();
    const Outcome outcome =
        run_espalier({"dump", "-m", directory.path(), "-o", directory / output});
    EXPECT_EQ(outcome.exit_code, 1) << output;
    EXPECT_THAT(outcome.err, HasSubstr("is a file of the model"));
    EXPECT_EQ(read_text_file(directory / output).value(), before);
  }
  EXPECT_EQ(run_espalier({"dump", "-m", directory.path(), "-o", directory / "new"}).exit_code, 0);
  EXPECT_EQ(run_espalier({"dump", "-m", directory.path(), "-o", directory / "new"}).exit_code, 0);
}

TEST(Dump, SaysThatAFileMayNotBecomeThatLarge) {
  const TemporaryDirectory directory;
  for (const uint64_t limit : {100U, 10000U}) {
    const Outcome outcome =
        run_espalier({"dump", "-m", tiny_chat(), "-o", directory / "x"}, {.file_bytes = limit});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("File too large"));
    EXPECT_EQ(directory.file_count(), 0U);
  }
}

TEST(StopGuard, NotesTheSignalsThatWouldEndTheProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const StopGuard guard;
    EXPECT_FALSE(guard.stopped());
    std::raise(signal);
    EXPECT_TRUE(guard.stopped());
  }
}

TEST(StopGuard, LeavesIgnoredSignalsIgnoredAndOthersAsTheyWere) {
  const auto old = std::signal(SIGHUP, SIG_IGN);
  {
    const StopGuard guard;
    std::raise(SIGHUP);
    EXPECT_FALSE(guard.stopped());
  }
  EXPECT_EQ(std::signal(SIGHUP, old), SIG_IGN);
  EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), SIG_DFL);
}

TEST(Dump, SaysWhyItCannotWrite) {
  const Outcome outcome =
      run_espalier({"dump", "-m", tiny_chat(), "-o", "/no/such/place/x.safetensors"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("/no/such/place"));
}

}  // namespace
}  // namespace espalier::cli
