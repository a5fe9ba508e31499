"""The tests of the C library share its fixture."""

from c_library import library

__all__ = ["library"]
