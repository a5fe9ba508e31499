"""OpenAI's routes: chat completions, completions, responses, audio, embeddings."""
