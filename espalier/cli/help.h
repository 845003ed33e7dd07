// Help texts, made from the tables of commands and flags.
#pragma once

#include <string>

#include "espalier/cli/commands.h"

namespace espalier::cli {

std::string help_text();
std::string help_text(const Command& command);

}  // namespace espalier::cli
