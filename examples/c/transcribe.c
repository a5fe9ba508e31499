/* What is said in a WAV file at 16 kHz, as it is heard: ./transcribe whisper-tiny speech.wav [LANGUAGE] */
#include <akunu/akunu.h>
#include <stdio.h>

static bool print(const akunu_segment* segment, void* user_data) {
  (void)user_data;
  printf("[%7.2f %7.2f]%s\n", segment->start, segment->end, segment->text);
  return fflush(stdout) == 0;
}

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fprintf(stderr, "usage: %s MODEL SPEECH.wav [LANGUAGE]\n", argv[0]);
    return 2;
  }
  akunu_model model;
  if (akunu_load_model(argv[1], NULL, &model) != AKUNU_OK) {
    fprintf(stderr, "%s\n", akunu_last_error());
    return 1;
  }
  akunu_transcribe_options options = {.size = sizeof options, .language = argc > 3 ? argv[3] : NULL};
  akunu_transcription_stats stats = {.size = sizeof stats};
  const akunu_status status = akunu_transcribe_file(model, argv[2], &options, print, NULL, &stats);
  if (status == AKUNU_OK)
    fprintf(stderr, "%.1f seconds, %s (probability %.2f), %u segments\n", stats.audio_seconds,
            stats.language, stats.language_probability, stats.n_segments);
  else
    fprintf(stderr, "%s\n", akunu_last_error());
  akunu_close_model(model);
  return status == AKUNU_OK ? 0 : 1;
}
