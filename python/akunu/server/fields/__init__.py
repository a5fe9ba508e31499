"""Fields of requests that several dialects have."""
