#include "espalier/cli/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "espalier/units/registry.h"

namespace espalier::cli {

std::string version_text() {
  constexpr std::string_view kCommit = ESPALIER_COMMIT;
  const auto unit = units::make_unit(units::unit_names().front());
  return fmt::format("espalier {}{}\nkernels: {}\n", ESPALIER_VERSION,
                     kCommit.empty() ? "" : fmt::format(" ({})", kCommit),
                     fmt::join(unit.value()->kernel_names(), " "));
}

}  // namespace espalier::cli
