// Options: what the command line said, flag by flag, before anybody asks whether it makes sense
// together. The table in flags.cc writes it, commands read it. Plain data; what was not given is
// absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "espalier/decode/sampling.h"
#include "espalier/decode/speculation.h"

namespace espalier::cli {

struct Options {
  std::vector<std::string> arguments;  // what is not a flag, after the command

  bool help = false;
  bool json = false;

  // Where text comes from and what is done to it.
  std::optional<std::string> file, ids_file, system, tools_file, output;
  std::vector<std::pair<std::string, std::string>> variables;  // of a template
  bool raw = false;
  bool no_special = false;
  bool decode = false;
  bool no_generation_prompt = false;

  // The engine.
  std::string model, drafter, unit, kernels, weights = "int8";
  std::optional<std::string> packed_cache;  // a folder, or "off"
  int64_t window = 64, threads = 0, activations = 16, kv_bits = 16, context = 0;

  // The answer.
  bool greedy = false;
  std::optional<double> temperature, top_p, min_p;
  std::optional<double> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int64_t> top_k, max_tokens, seed, logprobs;
  std::vector<decode::LogitBias> logit_bias;
  std::vector<std::string> stops;
  decode::SpeculationOptions speculation = {.mode = decode::SpeculationMode::kAuto};
  bool explain = false;

  // Reports.
  bool program = false;
  int64_t rounds = 5;
};

}  // namespace espalier::cli
