"""What the commands that measure a model share."""
