#include "espalier/units/registry.h"

#include <array>

#include "espalier/units/cpu/cpu_unit.h"
#include "espalier/units/reference/reference_unit.h"

namespace espalier::units {
namespace {

struct UnitRow {
  std::string_view name;
  std::unique_ptr<Unit> (*make)();
};

template <typename T>
std::unique_ptr<Unit> make() {
  return std::make_unique<T>();
}

// Default first.
constexpr std::array kUnits = {
    UnitRow{"cpu", make<cpu::CpuUnit>},
    UnitRow{"reference", make<reference::ReferenceUnit>},
};

}  // namespace

std::vector<std::string> unit_names() {
  std::vector<std::string> names;
  for (const UnitRow& row : kUnits) names.emplace_back(row.name);
  return names;
}

Result<std::unique_ptr<Unit>> make_unit(std::string_view name) {
  for (const UnitRow& row : kUnits) {
    if (row.name == name) return row.make();
  }
  return Error{.what = fmt::format("unit '{}' is unknown", name),
               .expected = fmt::format("{}", fmt::join(unit_names(), ", ")),
               .actual = {},
               .fix = "Choose one of these."};
}

}  // namespace espalier::units
