// Runs the real espalier binary: arguments and standard input in, exit code, stdout and stderr out.
#pragma once

#include <string>
#include <vector>

#include "espalier/base/json.h"

namespace espalier::cli {

struct Outcome {
  int exit_code = -1;  // minus the signal's number where one ended it
  std::string out, err;
};

struct ProcessOptions {
  std::string input = {};                     // standard input
  bool interrupt_on_output = false;           // Ctrl-C as soon as something is on stdout
  bool close_output = false;                  // nobody reads stdout
  bool output_is_full = false;                // nothing can be written to stdout
  bool terminal = false;                      // stderr is a terminal
  uint64_t address_bytes = 0;                 // of memory that it may map; 0: no limit
  uint64_t file_bytes = 0;                    // the largest file that it may write; 0: no limit
  std::vector<std::string> environment = {};  // "NAME=value", all of it
};

Outcome run_espalier(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

// stdout as JSON, of a run that must succeed and write one line.
Json json_of(const std::vector<std::string>& arguments, const std::string& input = "");

// The committed model directory that talks nonsense, and what transformers says about it.
std::string tiny_chat();
Json expected();
// Flags that make the answer that of transformers in fp32.
std::vector<std::string> exact(std::vector<std::string> arguments);

}  // namespace espalier::cli
