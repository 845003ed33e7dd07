// espalier run: one prompt, one answer.
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

Result<std::string> read_prompt(const Options& options) {
  ASSIGN_OR_RETURN(std::string prompt, read_input(options, "prompt"));
  // echo and here-documents end with a newline that nobody meant; a file or --raw is taken as it
  // is.
  const bool piped = options.arguments.empty() && !options.file;
  if (piped && !options.raw && prompt.ends_with('\n')) prompt.pop_back();
  if (prompt.empty()) {
    return Error{.what = "the prompt is empty",
                 .expected = "some text",
                 .actual = "0 bytes",
                 .fix = "Give a question, or a text to continue with --raw."};
  }
  RETURN_IF_ERROR(check_utf8(prompt, "prompt"));
  if (options.system) RETURN_IF_ERROR(check_utf8(*options.system, "system message"));
  return prompt;
}

Result<std::vector<TokenId>> encode_prompt(const LoadedModel& model, const Options& options,
                                           const std::string& prompt) {
  if (options.raw) return model.tokenizer.encode(prompt, {.parse_special = false});
  ASSIGN_OR_RETURN(const ChatFormat format, make_chat_format(model.engine->checkpoint(), options));
  OrderedJson messages = OrderedJson::array();
  if (options.system) messages.push_back({{"role", "system"}, {"content", *options.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  ASSIGN_OR_RETURN(const auto segments,
                   format.chat_template.render(messages, format.render_options));
  return text::encode_segments(model.tokenizer, segments);
}

OrderedJson token_json(const engine::AnswerToken& token) {
  OrderedJson best = OrderedJson::array();
  for (const decode::TokenLogprob& entry : token.best) {
    best.push_back({{"id", entry.id}, {"logprob", entry.logprob}});
  }
  return {{"id", token.id}, {"logprob", *token.logprob}, {"top", std::move(best)}};
}

void print_report(const LoadedModel& model, const engine::Session& session,
                  const engine::Answer& answer, const std::vector<TokenId>& prompt,
                  const std::string& text, uint64_t seed, const OrderedJson& logprobs) {
  OrderedJson report = {{"text", text},
                        {"token_ids", answer.tokens},
                        {"prompt_token_ids", prompt},
                        {"finish_reason", name_of(answer.finish_reason)},
                        {"seed", seed},
                        {"timings", timings_json(answer.timings, model.load_ms)},
                        {"speculation", speculation_json(answer.speculation)},
                        {"packed", packed_json(*model.engine)},
                        {"memory", memory_json(*model.engine, session.kv_bytes())}};
  if (answer.error) report["error"] = answer.error->message();
  if (!logprobs.is_null()) report["logprobs"] = logprobs;
  print_json(report);
}

void print_remarks(const Options& options, const engine::Answer& answer) {
  if (answer.max_tokens == 0 && !options.max_tokens) {
    note("the context has no room for an answer after the prompt");
  }
  note_limits(answer);
  remark(fmt::format("{} tokens, {:.1f} tokens/s, first after {:.0f} ms", answer.tokens.size(),
                     answer.timings.decode_tok_s(), answer.timings.ttft_ms));
}

void explain(const engine::Session& session, const decode::SpeculationStatistics& statistics) {
  note(fmt::format(
      "{} cycles of {:.2f} tokens; {} of {} guesses were right; {:.1f} ms in calls, "
      "{:.1f} ms guessing, {:.1f} ms choosing",
      statistics.cycles, statistics.tokens_per_cycle(), statistics.accepted_nodes,
      statistics.draft_nodes, statistics.verify_ms, statistics.draft_ms, statistics.host_ms));
  note("in the last cycle " + session.explain_speculation());
}

}  // namespace

Status check_run(const Options& options) {
  if (options.raw && (options.system || options.tools_file || !options.variables.empty())) {
    return Error{.what = "--raw leaves the chat template out",
                 .expected = "",
                 .actual = "--system, --tools or --set, which are for the template",
                 .fix = "Leave out --raw or the other."};
  }
  if (options.logprobs && !options.json) {
    return Error{.what = "--logprobs is part of the JSON output",
                 .expected = "--json",
                 .actual = "text output",
                 .fix = "Add --json."};
  }
  return check_sampling(options);
}

Result<Exit> command_run(const Options& options) {
  ASSIGN_OR_RETURN(const std::string prompt, read_prompt(options));
  ASSIGN_OR_RETURN(const LoadedModel model, load_model(options));
  ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, encode_prompt(model, options, prompt));
  engine::GenerateOptions generate{.max_tokens = options.max_tokens,
                                   .speculation = options.speculation};
  ASSIGN_OR_RETURN(generate.sampling, choose_sampling(options, model.engine->checkpoint()));
  OrderedJson logprobs;
  if (options.logprobs) {
    generate.logprobs = static_cast<int>(*options.logprobs);
    logprobs = OrderedJson::array();
  }
  ASSIGN_OR_RETURN(const auto session, engine::Session::create(*model.engine));
  const CostProfile profile(model, options);
  profile.load(*session);
  TextAnswer text(model.tokenizer, options.stops, !options.json);
  const InterruptGuard guard(session.get());
  ASSIGN_OR_RETURN(const engine::Answer answer,
                   session->generate(tokens, generate, [&](const engine::AnswerToken& token) {
                     if (generate.logprobs) logprobs.push_back(token_json(token));
                     return text.push(token.id);
                   }));
  text.finish();
  profile.save(*session);
  if (options.json) {
    print_report(model, *session, answer, tokens, text.text(), generate.sampling.seed, logprobs);
  } else {
    write_stdout("\n");
  }
  print_remarks(options, answer);
  if (options.explain) explain(*session, answer.speculation);
  const bool failed = answer.finish_reason == decode::FinishReason::kCancelled || answer.error;
  return failed ? Exit::kFailed : Exit::kDone;
}

}  // namespace espalier::cli
