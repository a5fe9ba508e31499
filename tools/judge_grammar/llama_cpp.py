"""Whether llama.cpp accepts a text by a grammar in GBNF, by the library inside the wheel xllamacpp.

The functions are those of its own tool `gbnf-validator`; nothing of them is in a C header, so that
they are found by their C++ names, and are known for one version of the wheel.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_INIT = "_Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim"
_ACCEPT = "_Z20llama_grammar_acceptP13llama_grammarj"
_STACKS = "_Z24llama_grammar_get_stacksP13llama_grammar"
_FREE = "_Z23llama_grammar_free_implP13llama_grammar"


class _Vector(ctypes.Structure):
    """A std::vector: where it begins and ends, and where its memory does."""

    _fields_ = (("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("room", ctypes.c_void_p))


class LlamaCpp:
    """llama.cpp's grammars; raises ImportError where the wheel is not the known one."""

    def __init__(self) -> None:
        sys.path.insert(0, str(Path(__file__).parents[1] / "compare" / "workers"))
        import xllamacpp_api as api

        library = api._library
        self._init, self._accept = library[_INIT], library[_ACCEPT]
        self._stacks, self._free = library[_STACKS], library[_FREE]
        self._init.restype = ctypes.c_void_p
        self._init.argtypes = [
            *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_bool),
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t),
        ]
        self._accept.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
        self._accept.restype = None
        self._stacks.argtypes = [ctypes.c_void_p]
        self._stacks.restype = ctypes.POINTER(_Vector)
        self._free.argtypes = [ctypes.c_void_p]
        self._free.restype = None

    def parses(self, grammar: str) -> bool:
        """Whether llama.cpp can read the grammar, whose first rule must be `root`."""
        pointer = self._init(None, grammar.encode(), b"root", False, None, 0, None, 0)
        if pointer:
            self._free(pointer)
        return bool(pointer)

    def accepts(self, grammar: str, text: str) -> bool:
        """Whether the whole text fits the grammar."""
        pointer = self._init(None, grammar.encode(), b"root", False, None, 0, None, 0)
        if not pointer:
            raise ValueError("llama.cpp cannot read this grammar")
        try:
            for char in text:
                self._accept(pointer, ord(char))
                if not self._open(pointer):
                    return False
            return any(stack.begin == stack.end for stack in self._open(pointer))
        finally:
            self._free(pointer)

    def _open(self, pointer: int) -> list[_Vector]:
        """What may still come: one stack for each way in which the text was read."""
        vector = self._stacks(pointer).contents
        size = ctypes.sizeof(_Vector)
        n = ((vector.end or 0) - (vector.begin or 0)) // size
        return [_Vector.from_address(vector.begin + i * size) for i in range(n)]
