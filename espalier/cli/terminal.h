// stdout and stderr. stdout is data: when its reader goes away (a broken pipe) the rest is not
// wanted, which is no error. stderr is talk, coloured only on a terminal that wants it (NO_COLOR,
// TERM=dumb). One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "espalier/base/result.h"

namespace espalier::cli {

// Writes and flushes. False: nobody reads any more, or (see output_status) the write failed.
bool write_stdout(std::string_view text);
// Whether all of stdout arrived or was not wanted; an error for a full disk and the like.
Status output_status();

bool stdin_is_terminal();
bool stdout_is_terminal();

// "note: ..." and "error: ..." on stderr, a line each, as printable() spells it.
void note(std::string_view text);
void complain(std::string_view text);
// Dim text, for what may be overlooked; only on a terminal.
void remark(std::string_view text);
// A prompt for input, only on a terminal.
void ask(std::string_view text);

// A line of standard input without its end; absent at its end. Interrupted by a signal: an empty
// line and `interrupted` set.
std::optional<std::string> read_line(bool& interrupted);

}  // namespace espalier::cli
