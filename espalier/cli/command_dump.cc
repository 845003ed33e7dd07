// espalier dump: the weights that are computed with, as one safetensors file.
#include <fmt/format.h>

#include <filesystem>

#include "espalier/cli/commands.h"
#include "espalier/cli/interrupt.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/terminal.h"
#include "espalier/engine/dump.h"

namespace espalier::cli {
namespace {

// A dump is not the model that it was made of: fp32, without the rest of a GGUF file.
Status check_replaces_no_source(const formats::Checkpoint& checkpoint, const std::string& output) {
  for (const std::string& file : checkpoint.files) {
    std::error_code problem;  // where either is not there, they are not the same
    if (!std::filesystem::equivalent(file, output, problem)) continue;
    return Error{.what = fmt::format("'{}' is a file of the model", output),
                 .expected = "another file to write to",
                 .actual = "one that is read",
                 .fix = "Choose another --output."};
  }
  return Ok{};
}

}  // namespace

Status check_dump(const Options& options) {
  if (!options.output) {
    return Error{.what = "nowhere to write to",
                 .expected = "--output PATH (-o)",
                 .actual = "",
                 .fix = "Name a .safetensors file."};
  }
  return Ok{};
}

Result<Exit> command_dump(const Options& options) {
  ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, open_model(options));
  RETURN_IF_ERROR(check_replaces_no_source(checkpoint, *options.output));
  ASSIGN_OR_RETURN(const auto engine, load_engine(std::move(checkpoint), options));
  const StopGuard guard;
  RETURN_IF_ERROR(engine::dump_weights(*engine, *options.output, &guard.stopped()));
  note(fmt::format("{} tensors written to {}", engine->tensors().size(), *options.output));
  return Exit::kDone;
}

}  // namespace espalier::cli
