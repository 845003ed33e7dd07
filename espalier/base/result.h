// Result<T>: a value, or an Error that a person can act on. For the world's faults: a file, a
// request, a device, memory. Our own bugs are CHECKs. No exception of ours exists; a library's
// exception is caught in the file that calls the library and becomes an Error there.
//
//   Result<Checkpoint> open(const std::string& path);
//   ASSIGN_OR_RETURN(Checkpoint checkpoint, open(path));
//   return Error{.what = "tensor 'x' has the wrong shape", .expected = "[576, 576]",
//                .actual = "[576, 64]", .fix = "Convert the checkpoint again."};
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "espalier/base/check.h"

namespace espalier {

struct Error {
  std::string what;      // what went wrong, with the name of the thing: never empty
  std::string expected;  // may be empty where nothing was expected
  std::string actual;    // may be empty
  std::string fix;       // what the user can do

  // "what: expected E, got A. Fix."; empty parts are left out.
  std::string message() const;
  // The same error with "context: " in front of `what` (a file name, a line number), unless that
  // stands there already.
  Error with_context(const std::string& context) const;
};

// The machine has no memory for `what` ("no memory for a session"); `expected` may be empty.
Error out_of_memory_error(std::string what, std::string expected, std::string fix);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(*-explicit-*)
  Result(Error error)
      : content_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  bool ok() const { return content_.index() == 0; }
  T& value() & {
    check_ok();
    return std::get<0>(content_);
  }
  const T& value() const& {
    check_ok();
    return std::get<0>(content_);
  }
  T&& value() && {
    check_ok();
    return std::get<0>(std::move(content_));
  }
  const Error& error() const {
    CHECK(!ok());
    return std::get<1>(content_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void check_ok() const {
    if (!ok()) check_failed(__FILE__, __LINE__, "value of an error: " + error().message());
  }
  std::variant<T, Error> content_;
};

// Status: success, or an Error.
using Ok = std::monostate;
using Status = Result<Ok>;

}  // namespace espalier

#define ESPALIER_CONCAT_(a, b) a##b
#define ESPALIER_CONCAT(a, b) ESPALIER_CONCAT_(a, b)

#define RETURN_IF_ERROR(expression)                                         \
  do {                                                                      \
    if (auto status_ = (expression); !status_.ok()) return status_.error(); \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expression) \
  ESPALIER_ASSIGN_OR_RETURN_(ESPALIER_CONCAT(result_, __LINE__), declaration, expression)

#define ESPALIER_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                       \
  if (!result.ok()) return result.error();                          \
  declaration = std::move(result).value()
