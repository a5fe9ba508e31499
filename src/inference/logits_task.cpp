#include "inference/logits_task.h"

namespace akunu {
namespace {

TaskRows rows_of(LogitsRequest& request) {
  TaskRows rows;
  rows.tokens = std::move(request.tokens);
  rows.first_output = request.first;
  rows.chunks = std::move(request.chunks);
  rows.generated = request.generated;
  rows.adapters = std::move(request.adapters);
  rows.window = std::move(request.window);
  rows.images = std::move(request.images);
  rows.aligns = request.aligns;
  rows.behind = request.behind;
  return rows;
}

uint32_t pool_of(Pooling pooling) {
  switch (pooling) {
    case Pooling::none:
    case Pooling::last:
      return kPoolOwn;
    case Pooling::first:
      return kPoolFirst;
    case Pooling::mean:
      return kPoolMean;
    case Pooling::max:
      return kPoolMax;
  }
  __builtin_unreachable();
}

// What is pooled is the last row's output.
TaskRows rows_of(EncodeRequest& request) {
  TaskRows rows;
  rows.tokens = std::move(request.tokens);
  rows.whole = true;
  rows.pool = pool_of(request.pooling);
  rows.second_segment = request.second_segment;
  if (request.pooling != Pooling::none)
    rows.first_output = static_cast<uint32_t>(rows.tokens.size()) - 1;
  return rows;
}

}  // namespace

LogitsTask::LogitsTask(LogitsRequest request, uint32_t width)
    : LogitsTask(rows_of(request), request.priority, width) {}

LogitsTask::LogitsTask(EncodeRequest request, uint32_t width)
    : LogitsTask(rows_of(request), request.priority, width) {}

LogitsTask::LogitsTask(TaskRows rows, int32_t priority, uint32_t width)
    : Task(std::move(rows), Choosing{}, priority),
      width_(width),
      logits_(std::make_unique_for_overwrite<float[]>(n_outputs() * size_t{width})) {}

bool LogitsTask::wait(std::chrono::milliseconds timeout) { return wait_for_end(timeout); }

std::span<float> LogitsTask::logits_of(uint32_t first_row, uint32_t n_rows) {
  return {logits_.get() + size_t{first_row - rows().first_output} * width_,
          size_t{n_rows} * width_};
}

}  // namespace akunu
