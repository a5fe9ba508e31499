"""Speech to text: audio in, Whisper's front end, voice activity, transcriptions and their files."""
