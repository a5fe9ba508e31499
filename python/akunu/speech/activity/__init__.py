"""Where audio has speech."""
