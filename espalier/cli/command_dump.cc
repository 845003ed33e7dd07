// espalier dump: the weights that are computed with, as one safetensors file.
#include <fmt/format.h>

#include "espalier/cli/commands.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/terminal.h"
#include "espalier/engine/dump.h"

namespace espalier::cli {

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
  ASSIGN_OR_RETURN(const auto engine,
                   engine::Engine::load(std::move(checkpoint), engine_options(options)));
  RETURN_IF_ERROR(engine::dump_weights(*engine, *options.output));
  note(fmt::format("{} tensors written to {}", engine->tensors().size(), *options.output));
  return Exit::kDone;
}

}  // namespace espalier::cli
