"""Audio from files and microphones."""
