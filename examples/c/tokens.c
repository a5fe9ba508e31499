/* Shows the tokens of a text: ./tokens model.gguf "Hello, world" */
#include <akunu/akunu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, akunu_last_error());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.gguf TEXT\n", argv[0]);
    return 2;
  }
  akunu_tokenizer tokenizer;
  if (akunu_open_tokenizer(argv[1], &tokenizer) != AKUNU_OK) return failed(argv[1]);

  size_t n_tokens = 0; /* a null buffer asks for the length */
  if (akunu_encode(tokenizer, argv[2], strlen(argv[2]), true, false, NULL, 0, &n_tokens) != AKUNU_OK)
    return failed("encoding");
  uint32_t* tokens = malloc(n_tokens * sizeof *tokens);
  if (tokens == NULL) return 1;
  if (akunu_encode(tokenizer, argv[2], strlen(argv[2]), true, false, tokens, n_tokens, &n_tokens) !=
      AKUNU_OK)
    return failed("encoding");
  for (size_t i = 0; i < n_tokens; ++i) {
    char text[256];
    size_t length;
    if (akunu_token_bytes(tokenizer, tokens[i], text, sizeof text, &length) != AKUNU_OK)
      return failed("a token");
    printf("%6u  %s\n", tokens[i], text);
  }
  free(tokens);
  akunu_close_tokenizer(tokenizer);
  return 0;
}
