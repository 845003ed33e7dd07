#include "espalier/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace espalier {

void check_failed(const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "%s:%d: %.*s\n", file, line, static_cast<int>(message.size()),
               message.data());
  std::abort();
}

}  // namespace espalier
