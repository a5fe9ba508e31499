"""A reply as it is shown while it comes."""
