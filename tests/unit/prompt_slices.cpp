// Slices of a prompt's commands: enough of them for many workers, and about as much work in each share.
#include <cstdint>
#include <string>
#include <vector>

#include "core/format.h"
#include "core/kernel_params.h"
#include "cpu/isa_level.h"
#include "cpu/kernels/attention_range.h"
#include "unit/check.h"

namespace akunu::test {
namespace {

using namespace akunu::cpu;

constexpr uint32_t kRows = 512;

void test_narrow_weights_have_slices_for_32_workers() {
  for (const IsaLevel& level : isa_levels()) {
    if (!level.can_run()) continue;
    KernelRequest request{};
    request.operation = Operation::matmul_add;
    request.row_class = RowClass::many;
    request.weights[0] = Format::q4_0;
    request.activation = level.prompts_with_blocks;
    const std::optional<Kernel> kernel = find_kernel(level, request);
    check(kernel.has_value(), "a kernel at level " + std::string(level.name));
    if (!kernel) continue;
    const MatmulParams params{1024, 3072, {}};
    Call call{};
    call.kernel = &*kernel;
    call.params = &params;
    call.n_rows = kRows;
    check(kernel->slices(call) >= 32,
          "1,024 columns and 512 rows are 32 slices at level " + std::string(level.name));
  }
}

// Positions that the rows of slices [begin, end) see, of a text that begins with the first of them.
uint64_t seen(const Call& call, uint32_t block_rows, uint64_t begin, uint64_t end) {
  uint64_t sum = 0;
  for_each_slice<void>(call, block_rows, 1, begin, end,
                       [&](uint32_t first_row, uint32_t n_rows, uint32_t) {
                         for (uint32_t r = first_row; r < first_row + n_rows; ++r) sum += r + 1;
                       });
  return sum;
}

void test_neighbouring_slices_of_attention_see_as_much_as_any_others() {
  for (const uint32_t block_rows : {32u, 64u, 128u}) {
    const Span span{0, 0, kRows, 0};
    Call call{};
    call.spans = &span;
    call.n_spans = 1;
    const uint64_t blocks = attention_slices(call, block_rows, 1);
    for (uint64_t pair = 0; pair < blocks; pair += 2)
      check(seen(call, block_rows, pair, pair + 2) == uint64_t{kRows} * (kRows + 1) / blocks,
            "slices " + std::to_string(pair) + " and the next of " + std::to_string(blocks));
  }
}

void test_every_row_of_attention_is_in_one_slice() {
  for (const uint32_t n_rows : {1u, 31u, 32u, 33u, 97u, 160u}) {
    const Span spans[] = {{0, 0, n_rows, 0}, {1, n_rows, 5, 0}};
    Call call{};
    call.spans = spans;
    call.n_spans = 2;
    std::vector<uint32_t> count(2 * (n_rows + 5));
    for (uint64_t slice = 0; slice < attention_slices(call, 32, 2); ++slice)
      for_each_slice<void>(call, 32, 2, slice, slice + 1,
                           [&](uint32_t first_row, uint32_t n, uint32_t unit) {
                             for (uint32_t r = first_row; r < first_row + n; ++r)
                               ++count.at(unit * (n_rows + 5) + r);
                           });
    check(count == std::vector<uint32_t>(count.size(), 1),
          "rows of a span of " + std::to_string(n_rows) + " are computed once");
  }
}

}  // namespace
}  // namespace akunu::test

int main() {
  using namespace akunu::test;
  test_narrow_weights_have_slices_for_32_workers();
  test_neighbouring_slices_of_attention_see_as_much_as_any_others();
  test_every_row_of_attention_is_in_one_slice();
  return summary();
}
