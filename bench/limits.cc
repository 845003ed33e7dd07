// Linear kernels against the limit of this machine: for every kernel set, encoding and number of
// rows, the time of one pass over a stack of matrices that no cache holds, in turns with the two
// floors of such a pass: reading the same bytes, and the set's own instruction on registers. Medians
// of the rounds; fraction = max(bytes / read rate, products / peak) / time. docs/performance.md
// explains both. For a cell alone: --kernels, --encoding, --rows, --planes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "bench/command.h"
#include "bench/peak.h"
#include "espalier/measure/read_loops.h"
#include "espalier/measure/statistics.h"
#include "espalier/units/cpu/kernels.h"

namespace espalier::bench {
namespace {

using units::cpu::Activations;
using units::cpu::FloatMode;
using units::cpu::KernelSet;
using units::cpu::PackedLinear;

// The feed-forward block of a 2.7 B model.
constexpr int64_t kHidden = 2048, kInner = 10752;
constexpr int64_t kMaxRows = 1024;

struct Options {
  int64_t threads = physical_core_count(), megabytes = 512, rounds = 7, cpu_time = 0;
  std::string kernels, encoding;
  std::vector<int64_t> rows = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 128};
  std::vector<int64_t> planes = {2, 1};
};

struct Form {
  std::string_view name;
  Encoding encoding;
  FloatMode floats;
  Encoding scales = Encoding::kBF16;  // where they lie beside
};
constexpr Form kForms[] = {
    {"int8", Encoding::kBF16, FloatMode::kInt8Channel},
    {"q8_0", Encoding::kQ8_0, FloatMode::kInt8Channel},
    {"q4_0", Encoding::kQ4_0, FloatMode::kInt8Channel},
    {"q4_1", Encoding::kQ4_1, FloatMode::kInt8Channel},
    {"q4_k", Encoding::kQ4_K, FloatMode::kInt8Channel},
    {"q6_k", Encoding::kQ6_K, FloatMode::kInt8Channel},
    {"int8g64", Encoding::kBF16, FloatMode::kInt8Groups},
    {"affine4 g64", Encoding::kAffine4G64, FloatMode::kInt8Channel},
    {"affine8 g64", Encoding::kAffine8G64, FloatMode::kInt8Channel},
    {"bf16", Encoding::kBF16, FloatMode::kKeep},
    {"f16", Encoding::kF16, FloatMode::kKeep},
    {"f32", Encoding::kF32, FloatMode::kKeep},
};

// Bytes 0x21..0x3f: finite small numbers in every encoding, and no two lines alike.
std::vector<std::byte> random_weights(Encoding encoding) {
  const EncodingInfo& info = encoding_info(encoding);
  std::vector<std::byte> bytes(
      static_cast<size_t>(kInner * kHidden / info.block_elements * info.block_bytes));
  std::minstd_rand random(1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(0x21 + (random() >> 8) % 0x1f);
  return bytes;
}

// Up and down projections in turns, `bytes` of them or a little more.
Result<std::vector<PackedLinear>> pack_stack(const Form& form, int64_t bytes) {
  const auto stored = random_weights(form.encoding);
  TensorView up{form.encoding, {kInner, kHidden}, stored};
  const EncodingInfo& info = encoding_info(form.encoding);
  if (info.scales_beside) {
    const auto scales = std::span(stored).first(static_cast<size_t>(
        up.element_count() / info.block_elements * encoding_info(form.scales).block_bytes));
    up.beside = {form.scales, scales, scales};
  }
  TensorView down = up;
  down.shape = {kHidden, kInner};
  std::vector<PackedLinear> stack;
  for (int64_t packed = 0; packed < bytes; packed += stack.back().byte_count()) {
    const TensorView& view = stack.size() % 2 == 0 ? up : down;
    ASSIGN_OR_RETURN(PackedLinear matrix, PackedLinear::pack(view, 0, view.rows(), form.floats));
    stack.push_back(std::move(matrix));
  }
  return stack;
}

// The operands of one number of rows: activations for both widths of the stack.
struct Operands {
  Activations hidden, inner;
  std::vector<float> y;

  static Result<Operands> create(const KernelSet& set, int64_t rows, int planes) {
    ASSIGN_OR_RETURN(Activations hidden, Activations::create(rows, kHidden, planes));
    ASSIGN_OR_RETURN(Activations inner, Activations::create(rows, kInner, planes));
    std::vector<float> x(static_cast<size_t>(rows * kInner));
    std::mt19937_64 random(2);
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(random);
    set.quantize_rows(x.data(), kHidden, 0, rows, hidden);
    set.quantize_rows(x.data(), kInner, 0, rows, inner);
    return Operands{std::move(hidden), std::move(inner), std::move(x)};
  }
};

struct Samples {
  std::vector<double> ms, read_bytes_s, products_s;
};

class Limits {
 public:
  Limits(const Options& options, std::unique_ptr<ThreadPool> pool)
      : options_(options),
        clock_(options.cpu_time != 0 ? thread_cpu_ms : now_ms),
        pool_(std::move(pool)) {}

  Status run_form(const Form& form) {
    ASSIGN_OR_RETURN(stack_, pack_stack(form, options_.megabytes << 20));
    parts_.clear();
    for (const PackedLinear& weights : stack_) {
      const auto& layout = weights.layout();
      parts_.push_back({layout.panels, static_cast<size_t>(weights.panel_count()) *
                                           static_cast<size_t>(layout.panel_bytes)});
    }
    std::vector<int64_t> planes = options_.planes;
    if (form.floats == FloatMode::kKeep) planes = {0};
    for (const KernelSet* set : units::cpu::all_kernel_sets()) {
      if (!chosen(*set)) continue;
      for (const int64_t count : planes) {
        for (const int64_t rows : options_.rows) {
          RETURN_IF_ERROR(measure_cell(form, *set, static_cast<int>(count), rows));
        }
      }
    }
    return Ok{};
  }

  OrderedJson take_rows() { return std::move(rows_); }

 private:
  // The portable set defines results and is far from any limit: only by name.
  bool chosen(const KernelSet& set) const {
    return set.supported() &&
           (options_.kernels.empty() ? set.name != "portable" : set.name == options_.kernels);
  }

  Status measure_cell(const Form& form, const KernelSet& set, int planes, int64_t rows) {
    ASSIGN_OR_RETURN(Operands operands, Operands::create(set, rows, planes));
    const PeakLoop* peak = peak_loop(set.name, planes > 0);
    multiply_all(set, operands, rows);  // touches what is new
    Samples samples;
    for (int64_t round = 0; round < options_.rounds; ++round) {
      samples.read_bytes_s.push_back(measure::read_bytes_per_s(*pool_, parts_, clock_));
      if (peak != nullptr) samples.products_s.push_back(products_per_s(*pool_, *peak, clock_));
      const double start_ms = clock_();
      multiply_all(set, operands, rows);
      samples.ms.push_back(clock_() - start_ms);
    }
    report(form, set, planes, rows, peak, samples);
    return Ok{};
  }

  void multiply_all(const KernelSet& set, Operands& operands, int64_t rows) {
    pool_->run([&](int thread) {
      for (const PackedLinear& weights : stack_) {
        const int64_t panels = weights.panel_count();
        const int64_t first = panels * thread / options_.threads;
        const int64_t last = panels * (thread + 1) / options_.threads;
        const Activations& x = weights.columns() == kHidden ? operands.hidden : operands.inner;
        set.linear(weights, x, rows, first, last, operands.y.data(), weights.rows());
      }
    });
  }

  void report(const Form& form, const KernelSet& set, int planes, int64_t rows,
              const PeakLoop* peak, const Samples& samples) {
    double bytes = 0;
    for (const auto part : parts_) bytes += static_cast<double>(part.size());
    const measure::Summary ms = measure::summarize(samples.ms);
    const double read = measure::summarize(samples.read_bytes_s).median;
    const double products =
        static_cast<double>(stack_.size()) * kInner * kHidden * static_cast<double>(rows);
    double floor_ms = bytes / read * 1e3, peak_products_s = 0;
    if (peak != nullptr) {
      peak_products_s = measure::summarize(samples.products_s).median;
      const int times = std::max(1, planes / peak->planes_at_once);
      floor_ms = std::max(floor_ms, products * times / peak_products_s * 1e3);
    }
    rows_.push_back({{"kernel", set.name},
                     {"encoding", form.name},
                     {"planes", planes},
                     {"rows", rows},
                     {"ms", ms.median},
                     {"floor_ms", floor_ms},
                     {"fraction", floor_ms / ms.median},
                     {"ms_p10", ms.p10},
                     {"ms_p90", ms.p90},
                     {"samples", ms.count},
                     {"threads", options_.threads},
                     {"bytes", bytes},
                     {"read_gb_s", read * 1e-9},
                     {"peak_gmac_s", peak_products_s * 1e-9},
                     {"gmac_s", products / ms.median * 1e-6},
                     {"instruction", peak == nullptr ? "" : peak->instruction}});
    fmt::print(
        "{:10} {:11} planes {}  rows {:3}  {:8.2f} ms ({:.2f} - {:.2f})  floor {:8.2f} ms  {:5.1f} "
        "%"
        "  read {:5.1f} GB/s  peak {:6.0f} Gmac/s\n",
        set.name, form.name, planes, rows, ms.median, ms.p10, ms.p90, floor_ms,
        floor_ms / ms.median * 100, read * 1e-9, peak_products_s * 1e-9);
    std::fflush(stdout);
  }

  const Options& options_;
  const MillisecondClock clock_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<PackedLinear> stack_;
  std::vector<std::span<const std::byte>> parts_;  // the packed bytes of the stack
  OrderedJson rows_ = OrderedJson::array();
};

Result<OrderedJson> measure_limits(const Options& options) {
  if (options.cpu_time != 0 && options.threads != 1) {
    return Error{.what = "--cpu-time counts one thread",
                 .expected = "--threads 1",
                 .actual = fmt::format("{} threads", options.threads),
                 .fix = "Add --threads 1."};
  }
  ASSIGN_OR_RETURN(auto pool, ThreadPool::create(static_cast<int>(options.threads)));
  Limits limits(options, std::move(pool));
  for (const Form& form : kForms) {
    if (!options.encoding.empty() && options.encoding != form.name) continue;
    RETURN_IF_ERROR(limits.run_form(form));
  }
  return limits.take_rows();
}

std::vector<std::string_view> supported_sets() {
  std::vector<std::string_view> names;
  for (const KernelSet* set : units::cpu::all_kernel_sets()) {
    if (set->supported()) names.push_back(set->name);
  }
  return names;
}

int run(std::span<char* const> words) {
  Options options;
  std::vector<std::string_view> forms;
  for (const Form& form : kForms) forms.push_back(form.name);
  return run_command(
      words, "limits: the linear kernels against the floor of this machine",
      {{"--kernels", "NAME", "one kernel set (all but the portable one)",
        one_of(options.kernels, supported_sets())},
       {"--encoding", "NAME", "one encoding", one_of(options.encoding, forms)},
       {"--planes", "LIST", "of activations: 2 are 16 bits, 1 is 8 (2,1)",
        integers(options.planes, 1, 2)},
       {"--rows", "LIST", "rows of a pass (1,2,...,128)", integers(options.rows, 1, kMaxRows)},
       {"--rounds", "N", "measure each cell N times (7)", integer(options.rounds, 1, 1000)},
       {"--megabytes", "N", "of packed weights; caches must not hold them (512)",
        integer(options.megabytes, 1, 1 << 20)},
       {"--threads", "N", "by default the number of physical cores",
        integer(options.threads, 1, kMaxThreads)},
       {"--cpu-time", "0|1", "count the thread's CPU time, on a busy machine (0)",
        integer(options.cpu_time, 0, 1)}},
      [&] { return measure_limits(options); });
}

}  // namespace
}  // namespace espalier::bench

int main(int count, char** arguments) {
  return espalier::bench::run({arguments, static_cast<size_t>(count)});
}
