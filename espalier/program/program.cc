#include "espalier/program/program.h"

#include "espalier/base/check.h"

namespace espalier::program {
namespace {

template <typename T>
const T& attribute(const Op& op, std::string_view name) {
  for (const auto& entry : op.attributes) {
    if (entry.name != name) continue;
    const T* value = std::get_if<T>(&entry.value);
    if (value == nullptr) check_failed(__FILE__, __LINE__, fmt::format("type of '{}'", name));
    return *value;
  }
  check_failed(__FILE__, __LINE__, fmt::format("op has no attribute '{}'", name));
}

}  // namespace

int64_t Op::integer(std::string_view name) const { return attribute<int64_t>(*this, name); }
double Op::number(std::string_view name) const { return attribute<double>(*this, name); }
const std::string& Op::text(std::string_view name) const {
  return attribute<std::string>(*this, name);
}
const std::vector<double>& Op::list(std::string_view name) const {
  return attribute<std::vector<double>>(*this, name);
}

}  // namespace espalier::program
