"""The tests of the C library share its fixture."""

import sys
from pathlib import Path

from c_library import library

sys.path.append(str(Path(__file__).parents[1] / "models"))  # random_models
sys.path.append(str(Path(__file__).parents[1] / "unit"))  # added_tokens

__all__ = ["library"]
