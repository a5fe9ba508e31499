"""How models mark their thoughts, and how they are told whether to think."""
