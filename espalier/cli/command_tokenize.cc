// espalier tokenize: text to token ids, and back with --decode.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "espalier/cli/commands.h"
#include "espalier/cli/input.h"
#include "espalier/cli/json_output.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/terminal.h"

namespace espalier::cli {
namespace {

OrderedJson pieces_of(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  OrderedJson pieces = OrderedJson::array();
  for (const TokenId id : ids) pieces.push_back(tokenizer.piece(id));
  return pieces;
}

// A JSON list, or numbers with blanks or commas between them.
Result<std::vector<TokenId>> parse_ids(std::string text, const text::Tokenizer& tokenizer) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '[') {
    ASSIGN_OR_RETURN(const Json list, parse_json(text, "the list of ids"));
    const size_t last = text.find_last_of(']');
    text = text.substr(first + 1, last - first - 1);  // inner brackets are no ids
  }
  for (char& c : text) {
    if (std::string_view(", \t\r\n").find(c) != std::string_view::npos) c = ' ';
  }
  std::vector<TokenId> ids;
  const char* const end = text.data() + text.size();
  for (const char* place = text.data(); place != end;) {
    if (*place == ' ') {
      ++place;
      continue;
    }
    TokenId id = -1;
    const auto [next, error] = std::from_chars(place, end, id);
    if (error != std::errc() || (next != end && *next != ' ') || id < 0 ||
        id >= tokenizer.vocab_size()) {
      const std::string word(place, std::find(place, end, ' '));
      return Error{.what = "the list of ids holds something else",
                   .expected = fmt::format("numbers from 0 to {}", tokenizer.vocab_size() - 1),
                   .actual = fmt::format("'{}'", word.substr(0, 40)),
                   .fix = "Give a JSON list or numbers with blanks between them."};
    }
    ids.push_back(id);
    place = next;
  }
  return ids;
}

}  // namespace

Result<Exit> command_tokenize(const Options& options) {
  ASSIGN_OR_RETURN(const std::string input, read_input(options, "text"));
  ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, open_model(options));
  ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, take_tokenizer(checkpoint));
  std::vector<TokenId> ids;
  if (options.decode) {
    ASSIGN_OR_RETURN(ids, parse_ids(input, tokenizer));
  } else {
    RETURN_IF_ERROR(check_utf8(input, "text"));
    ASSIGN_OR_RETURN(ids, tokenizer.encode(input, {.add_special_tokens = !options.no_special}));
  }
  if (options.json) {
    OrderedJson report = {{"ids", ids}, {"pieces", pieces_of(tokenizer, ids)}};
    if (options.decode) report["text"] = tokenizer.decode(ids, false);
    print_json(report);
  } else if (options.decode) {
    write_stdout(tokenizer.decode(ids, false));
  } else {
    write_stdout(fmt::format("{}\n", fmt::join(ids, " ")));
  }
  return Exit::kDone;
}

}  // namespace espalier::cli
