// CallCosts: milliseconds of a call of the target by its rows, learned from the calls themselves.
// Rows that have not run yet are estimated from those that have. One caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace espalier::decode {

class CallCosts {
 public:
  explicit CallCosts(int64_t max_rows);

  void learn(int64_t rows, double elapsed_ms);
  bool is_measured(int64_t rows) const { return costs_[static_cast<size_t>(rows)].count > 0; }
  double call_ms(int64_t rows) const;  // 1 for one row where nothing has been learned

  // By rows, [0] unused; 0: not measured.
  std::vector<double> measured_ms() const;
  // What was measured earlier counts as one call each; other lists than of these rows are left alone.
  void adopt(std::span<const double> measured_ms);

 private:
  struct Cost {
    double ms = 0;
    int64_t count = 0;
  };
  std::vector<Cost> costs_;  // by rows; [0] is not used
};

}  // namespace espalier::decode
