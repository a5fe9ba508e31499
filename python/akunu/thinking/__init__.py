"""How models mark their thinking, and how it is turned on and off."""
