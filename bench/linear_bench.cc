// Linear kernels against the floor of this machine: for every kernel set, encoding and number of
// rows, the time of a stack of matrices that no cache holds, beside a plain read of the same bytes
// in the same process, interleaved because bandwidth moves from one minute to the next. Medians of
// the rounds; "of floor" is read time / time.
//
// On a busy machine: --threads 1 --cpu-time 1 counts the CPU time of the thread, which other
// processes do not add to.
//
//   linear_bench [--threads N] [--megabytes N] [--kernels NAME] [--encoding NAME] [--rows 1,4,64]
//   [--planes 2] [--cpu-time 0]
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/dequantize.h"
#include "espalier/base/threads.h"
#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kColumns = 2048, kOutputs = 2048;
constexpr int kRounds = 7;

struct Options {
  int threads = physical_core_count();
  int64_t megabytes = 256;
  std::string kernels, encoding;
  std::vector<int64_t> rows = {1, 2, 4, 8, 16, 32, 64};
  int planes = 2;
  bool cpu_time = false;
};

struct Form {
  std::string_view name;
  Encoding encoding;
  bool keep_floats;
};
constexpr Form kForms[] = {
    {"q4_0", Encoding::kQ4_0, false}, {"q4_1", Encoding::kQ4_1, false},
    {"q8_0", Encoding::kQ8_0, false}, {"q4_k", Encoding::kQ4_K, false},
    {"q6_k", Encoding::kQ6_K, false}, {"int8", Encoding::kBF16, false},
    {"bf16", Encoding::kBF16, true},  {"f32", Encoding::kF32, true},
};

// Bytes 0x21..0x3f: finite small numbers in every encoding, and no two lines alike.
std::vector<std::byte> random_weights(Encoding encoding) {
  const EncodingInfo& info = encoding_info(encoding);
  std::vector<std::byte> bytes(
      static_cast<size_t>(kOutputs * kColumns / info.block_elements * info.block_bytes));
  std::mt19937_64 random(1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(0x21 + random() % 0x1f);
  return bytes;
}

std::vector<PackedLinear> pack_stack(const Form& form, int64_t bytes) {
  const auto stored = random_weights(form.encoding);
  const TensorView view{form.encoding, {kOutputs, kColumns}, stored};
  std::vector<PackedLinear> stack;
  for (int64_t packed = 0; packed < bytes; packed += stack.back().byte_count()) {
    stack.push_back(PackedLinear::pack(view, 0, kOutputs, form.keep_floats).value());
  }
  return stack;
}

double now_milliseconds(bool cpu_time) {
  timespec time;
  clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

template <typename Function>
double milliseconds(bool cpu_time, Function run) {
  const double start = now_milliseconds(cpu_time);
  run();
  return now_milliseconds(cpu_time) - start;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Panels of thread `thread`, of `count`.
std::pair<int64_t, int64_t> share(int64_t count, int thread, int threads) {
  return {count * thread / threads, count * (thread + 1) / threads};
}

uint64_t sum_words(const std::byte* bytes, int64_t count) {
  uint64_t sums[32] = {};
  for (int64_t at = 0; at + 256 <= count; at += 256) {
    uint64_t words[32];
    std::memcpy(words, bytes + at, sizeof(words));
    for (int i = 0; i < 32; ++i) sums[i] += words[i];
  }
  uint64_t sum = 0;
  for (const uint64_t s : sums) sum += s;
  return sum;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), pool_(options.threads) {}

  void run_form(const Form& form) {
    const auto stack = pack_stack(form, options_.megabytes << 20);
    for (const KernelSet* set : all_kernel_sets()) {
      if (!set->supported() || (!options_.kernels.empty() && options_.kernels != set->name))
        continue;
      for (const int64_t rows : options_.rows) measure(form, stack, *set, rows);
    }
  }

 private:
  void measure(const Form& form, const std::vector<PackedLinear>& stack, const KernelSet& set,
               int64_t rows) {
    auto x =
        Activations::create(rows, kColumns, stack[0].activation_planes(options_.planes)).value();
    std::vector<float> input(static_cast<size_t>(rows * kColumns)),
        y(static_cast<size_t>(rows * kOutputs));
    std::mt19937_64 random(2);
    std::normal_distribution<float> normal;
    for (float& v : input) v = normal(random);
    set.quantize_rows(input.data(), kColumns, 0, rows, x);

    std::vector<double> read_ms, kernel_ms;
    for (int round = 0; round < kRounds; ++round) {
      read_ms.push_back(milliseconds(options_.cpu_time, [&] { read_all(stack); }));
      kernel_ms.push_back(
          milliseconds(options_.cpu_time, [&] { multiply_all(stack, set, x, rows, y.data()); }));
    }
    const auto bytes =
        static_cast<double>(stack.size()) * static_cast<double>(stack[0].byte_count());
    const double ms = median(kernel_ms), floor_ms = median(read_ms);
    const double products =
        static_cast<double>(stack.size()) * kOutputs * kColumns * static_cast<double>(rows);
    fmt::print(
        "{:5} {:10} rows {:3}  {:8.2f} ms  {:6.1f} GB/s  read {:6.1f} GB/s  of floor {:4.2f}  "
        "{:7.1f} Gmac/s\n",
        form.name, set.name, rows, ms, bytes / ms * 1e-6, bytes / floor_ms * 1e-6, floor_ms / ms,
        products / ms * 1e-6);
    std::fflush(stdout);
  }

  void read_all(const std::vector<PackedLinear>& stack) {
    pool_.run([&](int thread) {
      uint64_t sum = 0;
      for (const PackedLinear& weights : stack) {
        const LinearLayout& layout = weights.layout();
        const auto [first, last] = share(weights.panel_count(), thread, options_.threads);
        sum += sum_words(layout.panels + first * layout.panel_bytes,
                         (last - first) * layout.panel_bytes);
      }
      checksum_.fetch_add(sum, std::memory_order_relaxed);
    });
  }

  void multiply_all(const std::vector<PackedLinear>& stack, const KernelSet& set,
                    const Activations& x, int64_t rows, float* y) {
    pool_.run([&](int thread) {
      for (const PackedLinear& weights : stack) {
        const auto [first, last] = share(weights.panel_count(), thread, options_.threads);
        set.linear(weights, x, rows, first, last, y, kOutputs);
      }
    });
  }

  Options options_;
  ThreadPool pool_;
  std::atomic<uint64_t> checksum_{0};  // so that the reads cannot be left out
};

std::vector<int64_t> parse_list(const std::string& text) {
  std::vector<int64_t> values;
  for (size_t at = 0; at < text.size();
       at = text.find(',', at) == std::string::npos ? text.size() : text.find(',', at) + 1) {
    values.push_back(std::stoll(text.substr(at)));
  }
  return values;
}

int run(std::span<char*> arguments) {
  Options options;
  for (size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string_view flag = arguments[i];
    const std::string value = arguments[i + 1];
    if (flag == "--threads") options.threads = std::stoi(value);
    if (flag == "--megabytes") options.megabytes = std::stoll(value);
    if (flag == "--kernels") options.kernels = value;
    if (flag == "--encoding") options.encoding = value;
    if (flag == "--rows") options.rows = parse_list(value);
    if (flag == "--cpu-time") options.cpu_time = value != "0";
    if (flag == "--planes") options.planes = std::stoi(value);
  }
  Bench bench(options);
  for (const Form& form : kForms) {
    if (options.encoding.empty() || options.encoding == form.name) bench.run_form(form);
  }
  return 0;
}

}  // namespace
}  // namespace espalier::units::cpu

int main(int count, char** arguments) {
  return espalier::units::cpu::run({arguments, static_cast<size_t>(count)});
}
