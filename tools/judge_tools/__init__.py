"""Judges calls of tools by the Berkeley Function Calling Leaderboard."""
