// What "espalier --version" prints: the version, the commit where it was known when the build was
// configured, and the kernel sets that this machine can run, best first.
#pragma once

#include <string>

namespace espalier::cli {

std::string version_text();

}  // namespace espalier::cli
