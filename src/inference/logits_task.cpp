#include "inference/logits_task.h"

namespace akunu {
namespace {

TaskRows rows_of(LogitsRequest& request) {
  TaskRows rows;
  rows.tokens = std::move(request.tokens);
  rows.first_output = request.first;
  rows.chunks = std::move(request.chunks);
  rows.generated = request.generated;
  return rows;
}

}  // namespace

LogitsTask::LogitsTask(LogitsRequest request, uint32_t vocab_size)
    : Task(rows_of(request), Choosing{}, request.priority),
      vocab_size_(vocab_size),
      logits_(std::make_unique_for_overwrite<float[]>((n_given() - rows().first_output) *
                                                      size_t{vocab_size})) {}

bool LogitsTask::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  wait_until(lock, timeout, [] { return false; });
  rethrow_error();
  return reason_ != FinishReason::none;
}

std::span<float> LogitsTask::logits_of(uint32_t first_row, uint32_t n_rows) {
  return {logits_.get() + size_t{first_row - rows().first_output} * vocab_size_,
          size_t{n_rows} * vocab_size_};
}

}  // namespace akunu
