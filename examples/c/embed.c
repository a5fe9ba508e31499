/* How alike texts are to the first one: ./embed model.gguf "a cat" "a kitten" "a tractor" */
#include <akunu/akunu.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, akunu_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s MODEL.gguf TEXT TEXT...\n", argv[0]);
    return 2;
  }
  akunu_model model;
  if (akunu_load_model(argv[1], NULL, &model) != AKUNU_OK) return failed(argv[1]);

  const char* const* texts = (const char* const*)argv + 2;
  const size_t n_texts = (size_t)argc - 2;
  size_t n_numbers = 0; /* a null buffer asks for the length */
  if (akunu_embed(model, texts, n_texts, NULL, 0, &n_numbers) != AKUNU_OK) return failed("embedding");
  float* vectors = malloc(n_numbers * sizeof *vectors);
  if (vectors == NULL) return failed("no memory");
  if (akunu_embed(model, texts, n_texts, vectors, n_numbers, &n_numbers) != AKUNU_OK)
    return failed("embedding");

  const size_t dim = n_numbers / n_texts;
  for (size_t i = 1; i < n_texts; ++i) {
    double cosine = 0; /* vectors have length 1 */
    for (size_t j = 0; j < dim; ++j) cosine += (double)vectors[j] * vectors[i * dim + j];
    printf("%.3f  %s\n", cosine, texts[i]);
  }
  free(vectors);
  akunu_close_model(model);
  return 0;
}
