#include "espalier/cli/commands.h"

#include "espalier/cli/flags.h"
#include "espalier/cli/sampling_choice.h"

namespace espalier::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", kRun, "[PROMPT]", 1, "answer one prompt",
     "The prompt is the argument, --file, or standard input. It goes through the model's chat "
     "template unless\n"
     "--raw is given; control tokens in it are plain text. Without sampling flags the model's own "
     "generation\n"
     "configuration is used where it samples, otherwise the answer is greedy.",
     true, check_run, command_run},
    {"chat", kChat, "", 0, "talk with the model",
     "Each line is a message; the conversation is kept. Ctrl-C ends an answer, Ctrl-D the chat; "
     "/help lists more.",
     true, check_sampling, command_chat},
    {"tokenize", kTokenize, "[TEXT]", 1, "token ids of a text",
     "The text is the argument, --file, or standard input, byte for byte. Control tokens in it are "
     "parsed.\n"
     "With --decode the input is a list of ids and the output their text.",
     true, nullptr, command_tokenize},
    {"template", kTemplate, "[MESSAGES]", 1, "render messages with the model's chat template",
     "MESSAGES is a JSON list of {\"role\", \"content\"} objects, or a file with one; also --file "
     "or standard input.",
     true, nullptr, command_template},
    {"score", kScore, "[TEXT]", 1, "log-probabilities of a text",
     "Teacher-forced: how probable the model finds each token after those before it.", true,
     check_score, command_score},
    {"dump", kDump, "", 0, "write the weights that are computed with",
     "fp32 under their checkpoint names, as one safetensors file, for comparison with other "
     "implementations.",
     true, check_dump, command_dump},
    {"info", kInfo, "", 0, "what a model is and what it costs",
     "Architecture, encodings, memory, work of a call; with --program the program itself.", true,
     nullptr, command_info},
    {"bench", kBench, "", 0, "measure a model on this machine",
     "Calls of 1 to --window rows, prefill and decoding, beside the read floor measured in the "
     "same process.",
     true, nullptr, command_bench},
    {"doctor", kDoctor, "", 0, "what this machine can do and what is missing",
     "CPU features, kernel sets and why one was chosen, memory, huge pages, cores; with --model "
     "also the model.",
     false, nullptr, command_doctor},
};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

}  // namespace espalier::cli
