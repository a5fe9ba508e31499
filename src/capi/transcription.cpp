// The C API's speech: a file, samples, or samples as they come become segments of text.
#include <atomic>
#include <cmath>

#include "capi/border.h"
#include "capi/handles.h"
#include "capi/objects.h"
#include "files/mapped_file.h"
#include "files/printable.h"
#include "speech/wav.h"
#include "text/chat_writer.h"
#include "transcription/transcriber.h"

namespace akunu::capi {

std::shared_ptr<const SpeechModel> ModelObject::speech() {
  const std::shared_ptr<const Tokenizer> words = tokenizer();
  const std::lock_guard lock(mutex_);
  if (!speech_)
    speech_ = std::make_shared<const SpeechModel>(read_speech_model(path, *engine->model, words));
  return speech_;
}

namespace {

constexpr uint32_t kMostDrawn = 64;  // texts of a window

TranscribeOptions options_of(const akunu_transcribe_options& given, const SpeechModel& model) {
  TranscribeOptions options;
  if (given.language != nullptr) options.language = given.language;
  const std::string task = given.task == nullptr ? "transcribe" : given.task;
  if (task != "transcribe" && task != "translate")
    throw ArgumentError("options.task is '" + printable(task) +
                        R"('; it is "transcribe" or "translate")");
  options.translates = task == "translate";
  if (given.n_temperatures > 0) {
    need(given.temperatures, "options.temperatures");
    options.temperatures.assign(given.temperatures, given.temperatures + given.n_temperatures);
  }
  for (const float temperature : options.temperatures)
    if (!(temperature >= 0 && temperature <= 100))  // NaN is refused too
      throw ArgumentError("options.temperatures has " + std::to_string(temperature) +
                          ", expected 0 to 100");
  if (given.best_of > kMostDrawn)
    throw ArgumentError("options.best_of is " + std::to_string(given.best_of) + ", at most " +
                        std::to_string(kMostDrawn) + " texts are drawn");
  if (given.best_of != 0) options.best_of = given.best_of;
  options.has_timestamps = !given.no_timestamps;
  options.conditions_on_previous = !given.no_previous_text;
  options.seed = given.seed;
  if (given.prompt == nullptr) return options;
  if (const std::string_view prompt = stripped(given.prompt); !prompt.empty())
    options.prompt = model.words.encode(" " + std::string(prompt));
  const size_t most = model.context / 2 - 1;
  if (options.prompt.size() > most)
    throw ArgumentError("options.prompt has " + std::to_string(options.prompt.size()) +
                        " tokens; there is room for " + std::to_string(most));
  return options;
}

}  // namespace

struct TranscriptionObject {
  std::shared_ptr<Engine> engine;  // before what runs on it
  std::shared_ptr<const SpeechModel> model;
  akunu_segment_callback callback;
  void* user_data;
  Running running = {};
  Transcriber transcriber;
  uint64_t n_samples = 0;
  std::atomic<bool> is_used = false;  // by a call
  std::atomic<bool> is_cancelled = false;
  bool is_finished = false;

  TranscriptionObject(ModelObject& of, const akunu_transcribe_options* options,
                      akunu_segment_callback told, void* data)
      : engine(of.engine),
        model(of.speech()),
        callback(told),
        user_data(data),
        transcriber(*engine->scheduler, *model, options_of(taken(options, "options"), *model),
                    running, [this](const Segment& segment) { return tell(segment); }) {
    if (callback == nullptr) throw ArgumentError("callback is null: segments are told by it");
  }

  // What `work` does, unless it is cancelled meanwhile.
  template <class Work>
  void run(const Work& work) {
    try {
      work();
    } catch (const CancelledError&) {
      is_cancelled = true;
    }
  }

  void fill_stats(akunu_transcription_stats* stats) const {
    if (stats == nullptr) return;
    const TranscriptionCounts& counts = transcriber.counts();
    akunu_transcription_stats known{};
    known.finish =
        is_cancelled || transcriber.is_over() ? AKUNU_FINISH_CANCELLED : AKUNU_FINISH_STOP;
    transcriber.language().copy(known.language, sizeof known.language - 1);
    known.language_probability = transcriber.language_probability();
    known.audio_seconds = static_cast<double>(n_samples) / speech::kSampleRate;
    known.n_segments = transcriber.n_segments();
    known.n_windows = counts.n_windows;
    known.n_failed_windows = counts.n_failed;
    known.n_tokens = counts.n_tokens;
    fill(stats, known, "stats");
  }

 private:
  bool tell(const Segment& segment) const {
    // 100 frames are a second.
    akunu_segment known{};
    known.size = sizeof known;
    known.id = segment.id;
    known.start = static_cast<double>(segment.start) / 100;
    known.end = static_cast<double>(segment.end) / 100;
    known.text = segment.text.c_str();
    known.text_length = segment.text.size();
    known.tokens = segment.tokens.data();
    known.n_tokens = segment.tokens.size();
    known.language = transcriber.language().c_str();
    known.language_probability = transcriber.language_probability();
    known.temperature = double{segment.window.temperature};
    known.avg_logprob = segment.window.avg_logprob;
    known.compression_ratio = segment.window.compression_ratio;
    known.no_speech_prob = segment.window.no_speech_prob;
    return callback(&known, user_data);
  }
};

namespace {

std::span<const float> checked_samples(const float* samples, size_t n_samples) {
  if (n_samples == 0) return {};
  need(samples, "samples");
  const std::span<const float> all(samples, n_samples);
  speech::check_samples(all, "samples");
  return all;
}

akunu_status transcribe(akunu_model model, std::span<const float> samples,
                        const akunu_transcribe_options* options, akunu_segment_callback callback,
                        void* user_data, akunu_transcription_stats* stats) {
  if (stats != nullptr) fill(stats, akunu_transcription_stats{}, "stats");
  if (samples.empty()) throw ArgumentError("there are no samples");
  TranscriptionObject work(*object_of<ModelObject>(model), options, callback, user_data);
  work.n_samples = samples.size();
  work.transcriber.hear_all(samples);
  work.fill_stats(stats);
  return AKUNU_OK;
}

// A transcription in the hands of one call.
class UsedTranscription {
 public:
  explicit UsedTranscription(akunu_transcription handle)
      : object_(object_of<TranscriptionObject>(handle)) {
    object_->engine->scheduler->check_process();
    if (object_->is_used.exchange(true))
      throw BusyError("the transcription is in use by another call; wait until that has returned");
  }
  ~UsedTranscription() { object_->is_used = false; }
  UsedTranscription(const UsedTranscription&) = delete;
  UsedTranscription& operator=(const UsedTranscription&) = delete;

  TranscriptionObject* operator->() const { return object_.get(); }

 private:
  std::shared_ptr<TranscriptionObject> object_;
};

}  // namespace
}  // namespace akunu::capi

using namespace akunu;
using namespace akunu::capi;

akunu_status akunu_transcribe_file(akunu_model model, const char* path,
                                   const akunu_transcribe_options* options,
                                   akunu_segment_callback callback, void* user_data,
                                   akunu_transcription_stats* stats) {
  return guarded([&] {
    need(path, "path");
    object_of<ModelObject>(model);  // before the file is read
    const auto file = MappedFile::open(path);
    const std::vector<float> samples = speech::read_wav(file->bytes(), printable(path, kPathLimit));
    if (const auto damage = file->damage()) throw ModelFormatError(*damage);
    return transcribe(model, samples, options, callback, user_data, stats);
  });
}

akunu_status akunu_transcribe(akunu_model model, const float* samples, size_t n_samples,
                              const akunu_transcribe_options* options,
                              akunu_segment_callback callback, void* user_data,
                              akunu_transcription_stats* stats) {
  return guarded([&] {
    return transcribe(model, checked_samples(samples, n_samples), options, callback, user_data,
                      stats);
  });
}

akunu_status akunu_open_transcription(akunu_model model, const akunu_transcribe_options* options,
                                      akunu_segment_callback callback, void* user_data,
                                      akunu_transcription* transcription) {
  return guarded([&] {
    need(transcription, "transcription");
    *transcription = nullptr;
    *transcription = new_handle<akunu_transcription>(std::make_shared<TranscriptionObject>(
        *object_of<ModelObject>(model), options, callback, user_data));
    return AKUNU_OK;
  });
}

akunu_status akunu_hear(akunu_transcription transcription, const float* samples, size_t n_samples) {
  return guarded([&] {
    const UsedTranscription used(transcription);
    if (used->is_finished || used->is_cancelled || used->transcriber.is_over())
      throw ArgumentError("the transcription is over: open another one for more samples");
    const std::span<const float> heard = checked_samples(samples, n_samples);
    used->n_samples += heard.size();
    used->run([&] { used->transcriber.hear(heard); });
    return AKUNU_OK;
  });
}

akunu_status akunu_finish_transcription(akunu_transcription transcription,
                                        akunu_transcription_stats* stats) {
  return guarded([&] {
    const UsedTranscription used(transcription);
    if (stats != nullptr) fill(stats, akunu_transcription_stats{}, "stats");
    if (!used->is_finished && !used->is_cancelled) used->run([&] { used->transcriber.finish(); });
    used->is_finished = true;
    used->fill_stats(stats);
    return AKUNU_OK;
  });
}

akunu_status akunu_cancel_transcription(akunu_transcription transcription) {
  return guarded([&] {
    const auto object = object_of<TranscriptionObject>(transcription);
    object->engine->scheduler->check_process();
    object->running.cancel();
    return AKUNU_OK;
  });
}

akunu_status akunu_close_transcription(akunu_transcription transcription) {
  return guarded([&] {
    const auto object = take_object<TranscriptionObject>(transcription);
    if (!object->engine->home.is_another()) object->running.cancel();
    return AKUNU_OK;
  });
}

akunu_status akunu_get_languages(akunu_model model, char* buffer, size_t capacity, size_t* length) {
  return guarded([&] {
    const auto speech = object_of<ModelObject>(model)->speech();
    std::string codes;
    for (const auto& [code, token] : speech->words.languages())
      codes += (codes.empty() ? "" : "\n") + code;
    if (!speech->words.is_multilingual()) codes = "en";
    return give_text(codes, buffer, capacity, length);
  });
}
