#include "quantize/quantize.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"
#include "files/gguf/gguf.h"
#include "files/printable.h"
#include "quantize/rows.h"

namespace akunu::quantize {

namespace avx2 {
const RowCoder* find_coder(uint32_t type);  // of rows.cpp's other copy
}

namespace {

constexpr uint64_t kNumbersAtOnce = 1 << 16;  // of a thread, before it asks for more
constexpr auto kBetweenChecks = std::chrono::milliseconds(50);

// Of the best copy of the arithmetic that this CPU can run.
const RowCoder* find_coder(uint32_t type) {
#if AKUNU_QUANTIZE_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return avx2::find_coder(type);
#endif
  return portable::find_coder(type);
}

const RowCoder& coder_of(uint32_t type) {
  if (const RowCoder* coder = find_coder(type)) return *coder;
  const std::string_view name = gguf_type_name(type);
  throw ArgumentError("tensors in " + (name.empty() ? std::to_string(type) : std::string(name)) +
                      " can be neither read nor written here");
}

uint64_t bytes_of_row(uint32_t type, uint64_t k) {
  const GgufBlock block = gguf_block(type).value();
  return k / block.block_size * block.block_bytes;
}

void check_sizes(const Tensor& tensor, uint32_t type) {
  const auto refuse = [&](const std::string& why) {
    throw ArgumentError(printable(tensor.name, kNameLimit) + ": " + why);
  };
  for (const uint32_t each : {tensor.type, type}) {
    coder_of(each);
    if (tensor.k == 0 || tensor.k % gguf_block(each)->block_size != 0)
      refuse("rows of " + std::to_string(tensor.k) + " numbers are no whole blocks of " +
             std::string(gguf_type_name(each)));
  }
  if (tensor.bytes.size() != tensor.n_rows * bytes_of_row(tensor.type, tensor.k))
    refuse(std::to_string(tensor.bytes.size()) + " bytes are not its " +
           std::to_string(tensor.n_rows) + " rows");
  const uint64_t n = tensor.importance.size();
  if (n % tensor.k != 0 || (n > 0 && tensor.n_rows % (n / tensor.k) != 0))
    refuse("its importance has " + std::to_string(n) + " numbers, its rows " +
           std::to_string(tensor.k));
  for (const float each : tensor.importance)
    if (!(each >= 0.0f) || !std::isfinite(each))
      refuse("its importance has a number that is negative, infinite or none");
}

// Rows of a tensor, one at a time.
class Reader {
 public:
  explicit Reader(const Tensor& tensor)
      : tensor_(tensor),
        coder_(coder_of(tensor.type)),
        row_bytes_(bytes_of_row(tensor.type, tensor.k)),
        rows_per_matrix_(
            tensor.importance.empty() ? 0 : tensor.n_rows / (tensor.importance.size() / tensor.k)) {
  }

  void read(uint64_t row, std::span<float> x) const {
    coder_.decode(tensor_.bytes.data() + row * row_bytes_, x);
    uint32_t has_none = 0;  // exponents of ones alone: infinite, or not a number
    for (const float each : x)
      has_none |= (std::bit_cast<uint32_t>(each) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
    if (has_none == 0) return;
    for (size_t i = 0; i < x.size(); ++i)
      if (!std::isfinite(x[i]))
        refuse(row, "column " + std::to_string(i) + " is " +
                        (std::isnan(x[i]) ? "not a number" : "infinite"));
  }
  std::span<const float> importance(uint64_t row) const {
    if (rows_per_matrix_ == 0) return {};
    return tensor_.importance.subspan(row / rows_per_matrix_ * tensor_.k, tensor_.k);
  }
  [[noreturn]] void refuse(uint64_t row, const std::string& why) const {
    throw ArgumentError(printable(tensor_.name, kNameLimit) + ", row " + std::to_string(row) +
                        ": " + why);
  }

 private:
  const Tensor& tensor_;
  const RowCoder& coder_;
  uint64_t row_bytes_;
  uint64_t rows_per_matrix_;
};

// Calls `part(first, end)` for ranges of rows in several threads, until all are done or one throws;
// its error, or that of `work.check`, is thrown here.
void in_threads(uint64_t n_rows, uint64_t k, const Work& work,
                const std::function<void(uint64_t, uint64_t)>& part) {
  const uint64_t rows_at_once = std::max<uint64_t>(1, kNumbersAtOnce / k);
  std::atomic<uint64_t> next{0};
  std::atomic<bool> is_over{false};
  std::mutex mutex;
  std::condition_variable changed;
  std::exception_ptr error;
  size_t n_running = 0;
  const auto run = [&] {
    try {
      while (!is_over.load(std::memory_order_relaxed)) {
        const uint64_t first = next.fetch_add(rows_at_once, std::memory_order_relaxed);
        if (first >= n_rows) break;
        part(first, std::min(first + rows_at_once, n_rows));
      }
    } catch (...) {
      is_over = true;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    --n_running;
    changed.notify_one();
  };
  const uint64_t n_parts = (n_rows + rows_at_once - 1) / rows_at_once;
  const size_t n_threads =
      static_cast<size_t>(std::min<uint64_t>(std::max(work.threads, 1u), n_parts));
  std::vector<std::thread> threads;
  threads.reserve(n_threads);
  std::exception_ptr own_error;
  try {
    for (size_t i = 0; i < n_threads; ++i) {
      {
        const std::lock_guard lock(mutex);
        ++n_running;
      }
      try {
        threads.emplace_back(run);
      } catch (...) {
        const std::lock_guard lock(mutex);
        --n_running;
        throw;
      }
    }
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kBetweenChecks, [&] { return n_running == 0; })) {
      lock.unlock();
      if (work.check) work.check();
      lock.lock();
    }
  } catch (...) {
    is_over = true;
    own_error = std::current_exception();
  }
  for (std::thread& thread : threads) thread.join();
  if (own_error) std::rethrow_exception(own_error);
  if (error) std::rethrow_exception(error);
}

void write_row(const Reader& reader, const RowCoder& to, uint64_t row, std::span<const float> x,
               std::byte* blocks) {
  if (!to.encode(x, reader.importance(row), blocks))
    reader.refuse(row,
                  "it has numbers that are too large for " + std::string(gguf_type_name(to.type)));
}

}  // namespace

bool has_coder(uint32_t type) { return find_coder(type) != nullptr; }

void write_as(const Tensor& tensor, uint32_t type, std::span<std::byte> blocks, const Work& work) {
  const RowCoder& to = coder_of(type);
  check_sizes(tensor, type);
  const Reader reader(tensor);
  const uint64_t row_bytes = bytes_of_row(type, tensor.k);
  if (blocks.size() != tensor.n_rows * row_bytes)
    throw ArgumentError("there is room for " + std::to_string(blocks.size()) + " bytes, not for " +
                        std::to_string(tensor.n_rows * row_bytes));
  in_threads(tensor.n_rows, tensor.k, work, [&](uint64_t first, uint64_t end) {
    std::vector<float> x(tensor.k);
    for (uint64_t row = first; row < end; ++row) {
      reader.read(row, x);
      write_row(reader, to, row, x, blocks.data() + row * row_bytes);
    }
  });
}

Difference measure_as(const Tensor& tensor, uint32_t type, const Work& work) {
  const RowCoder& to = coder_of(type);
  check_sizes(tensor, type);
  const Reader reader(tensor);
  const uint64_t row_bytes = bytes_of_row(type, tensor.k);
  std::vector<Difference> of_rows(tensor.n_rows);  // added in their order: the same every time
  in_threads(tensor.n_rows, tensor.k, work, [&](uint64_t first, uint64_t end) {
    std::vector<float> x(tensor.k), again(tensor.k);
    std::vector<std::byte> blocks(row_bytes);
    for (uint64_t row = first; row < end; ++row) {
      reader.read(row, x);
      write_row(reader, to, row, x, blocks.data());
      to.decode(blocks.data(), again);
      const std::span<const float> importance = reader.importance(row);
      Difference here{0.0, 0.0};
      for (size_t i = 0; i < x.size(); ++i) {
        const double w = importance.empty() ? 1.0 : importance[i];
        const double left = double{x[i]} - double{again[i]};
        here.squares += w * left * left;
        here.of += w * double{x[i]} * double{x[i]};
      }
      of_rows[row] = here;
    }
  });
  Difference sum{0.0, 0.0};
  for (const Difference& row : of_rows) sum.squares += row.squares, sum.of += row.of;
  return sum;
}

void read_as_floats(const Tensor& tensor, std::span<float> numbers, const Work& work) {
  check_sizes(tensor, tensor.type);
  const Reader reader(tensor);
  if (numbers.size() != tensor.n_rows * tensor.k)
    throw ArgumentError("there is room for " + std::to_string(numbers.size()) + " numbers, not " +
                        std::to_string(tensor.n_rows * tensor.k));
  in_threads(tensor.n_rows, tensor.k, work, [&](uint64_t first, uint64_t end) {
    for (uint64_t row = first; row < end; ++row)
      reader.read(row, numbers.subspan(row * tensor.k, tensor.k));
  });
}

}  // namespace akunu::quantize
