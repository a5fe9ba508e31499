/* Goes on with a text: ./complete model.gguf "The sea is" */
#include <akunu/akunu.h>
#include <stdio.h>

static bool print(uint32_t token, const char* text, size_t length, void* user_data) {
  (void)token;
  fwrite(text, 1, length, user_data);
  fflush(user_data);
  return true; /* false would end the text here */
}

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, akunu_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.gguf TEXT\n", argv[0]);
    return 2;
  }
  akunu_model model;
  if (akunu_load_model(argv[1], NULL, &model) != AKUNU_OK) return failed(argv[1]);

  akunu_sampling sampling = {.size = sizeof sampling, .temperature = 0.7f, .top_p = 0.9f, .seed = 1};
  akunu_generate_options options = {.size = sizeof options, .max_tokens = 64, .sampling = &sampling};
  akunu_generation_stats stats = {.size = sizeof stats};
  if (akunu_generate_text(model, argv[2], &options, print, stdout, &stats) != AKUNU_OK)
    return failed("generating");
  printf("\n");
  fprintf(stderr, "%u tokens, the first after %.3f s\n", stats.completion_tokens, stats.prompt_seconds);
  akunu_close_model(model);
  return 0;
}
