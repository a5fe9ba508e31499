"""Requests and answers as HTTP has them: bodies, connections, keys, errors."""
