// The units of this build, by name. A unit that was not built is absent, not a stub.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/units/unit.h"

namespace espalier::units {

// Default first.
std::vector<std::string> unit_names();
Result<std::unique_ptr<Unit>> make_unit(std::string_view name);

}  // namespace espalier::units
