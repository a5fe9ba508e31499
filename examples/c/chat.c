/* A conversation, a line at a time: ./chat model.gguf */
#include <akunu/akunu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMessages = 64, kLine = 1024, kReply = 4096 };

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, akunu_last_error());
  return 1;
}

static char* copy(const char* text) {
  char* made = malloc(strlen(text) + 1);
  return made == NULL ? NULL : strcpy(made, text);
}

/* Shows a reply as it comes, and keeps it for the next turn. */
static bool hear(uint32_t token, const char* text, size_t length, void* user_data) {
  (void)token;
  char* reply = user_data;
  if (strlen(reply) + length >= kReply) return false;
  strncat(reply, text, length);
  fwrite(text, 1, length, stdout);
  fflush(stdout);
  return true;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
    return 2;
  }
  akunu_model model;
  akunu_tokenizer tokenizer;
  if (akunu_load_model(argv[1], NULL, &model) != AKUNU_OK) return failed(argv[1]);
  if (akunu_get_tokenizer(model, &tokenizer) != AKUNU_OK) return failed("the tokenizer");

  akunu_message messages[kMessages];
  size_t n_messages = 0;
  char line[kLine];
  while (n_messages + 2 <= kMessages && printf("> ") > 0 && fgets(line, kLine, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    messages[n_messages++] = (akunu_message){"user", copy(line)};

    size_t n_tokens = 0; /* a null buffer asks for the length */
    if (akunu_encode_chat(tokenizer, messages, n_messages, NULL, NULL, 0, &n_tokens) != AKUNU_OK)
      return failed("the conversation");
    uint32_t* tokens = malloc(n_tokens * sizeof *tokens);
    if (akunu_encode_chat(tokenizer, messages, n_messages, NULL, tokens, n_tokens, &n_tokens) != AKUNU_OK)
      return failed("the conversation");

    char reply[kReply] = "";
    akunu_generate_options options = {.size = sizeof options, .max_tokens = 256};
    if (akunu_generate(model, tokens, n_tokens, &options, hear, reply, NULL) != AKUNU_OK)
      return failed("generating");
    free(tokens);
    printf("\n");
    messages[n_messages++] = (akunu_message){"assistant", copy(reply)};
  }
  while (n_messages > 0) free((char*)messages[--n_messages].content);
  akunu_close_tokenizer(tokenizer);
  akunu_close_model(model);
  return 0;
}
