// espalier score: log-probabilities of a text, teacher-forced.
#include <fmt/format.h>

#include "espalier/base/clock.h"
#include "espalier/base/mapped_file.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/input.h"
#include "espalier/cli/interrupt.h"
#include "espalier/cli/json_output.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/terminal.h"

namespace espalier::cli {
namespace {

Result<std::vector<TokenId>> read_ids(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, read_text_file(path));
  ASSIGN_OR_RETURN(const Json document, parse_json(content, path));
  const Json* member = json_find(document, "ids");  // as tokenize --json writes it
  const Json& list = member == nullptr ? document : *member;
  const auto is_id = [](const Json& id) {
    return id.is_number_integer() && id >= 0 && id <= std::numeric_limits<TokenId>::max();
  };
  if (!list.is_array() || !std::ranges::all_of(list, is_id)) {
    return Error{.what = path + " holds no token ids",
                 .expected = R"(a JSON list like [504, 3575], or an object with it as "ids")",
                 .actual = list.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
                 .fix = "Write it with 'espalier tokenize --json'."};
  }
  return list.get<std::vector<TokenId>>();
}

Status check_text(const std::string& input) {
  if (input.empty()) {
    return Error{.what = "the text is empty",
                 .expected = "some text",
                 .actual = "0 bytes",
                 .fix = "Give a text."};
  }
  return check_utf8(input, "text");
}

// The engine and the ids; a tokenizer is needed for text only.
Result<std::unique_ptr<const engine::Engine>> load(const Options& options,
                                                   std::vector<TokenId>& ids) {
  if (options.ids_file) {
    ASSIGN_OR_RETURN(ids, read_ids(*options.ids_file));
    ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, open_model(options));
    return load_engine(std::move(checkpoint), options);
  }
  ASSIGN_OR_RETURN(const std::string input, read_input(options, "text"));
  RETURN_IF_ERROR(check_text(input));
  ASSIGN_OR_RETURN(LoadedModel model, load_model(options));
  ASSIGN_OR_RETURN(ids, model.tokenizer.encode(input, {.add_special_tokens = !options.no_special}));
  return std::move(model.engine);
}

}  // namespace

Status check_score(const Options& options) {
  if (options.ids_file && (options.file || !options.arguments.empty())) {
    return Error{.what = "two things to score",
                 .expected = "ids or a text",
                 .actual = "both",
                 .fix = "Leave one out."};
  }
  return Ok{};
}

Result<Exit> command_score(const Options& options) {
  std::vector<TokenId> ids;
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const auto engine, load(options, ids));
  const double load_ms = watch.elapsed_ms();
  ASSIGN_OR_RETURN(const auto session, engine::Session::create(*engine));
  const InterruptGuard guard(session.get());
  ASSIGN_OR_RETURN(const engine::Score score, session->score(ids));
  if (options.json) {
    print_json({{"ids", ids},
                {"logprobs", score.logprobs},
                {"top1_ids", score.best_tokens},
                {"perplexity", score.perplexity()},
                {"timings", timings_json(score.timings, load_ms)},
                {"memory", memory_json(*engine, session->kv_bytes())}});
  } else {
    write_stdout(fmt::format("perplexity {:.4f} over {} tokens\n", score.perplexity(),
                             score.logprobs.size()));
  }
  return Exit::kDone;
}

}  // namespace espalier::cli
