"""llama.cpp's structs and its quantiser of rows, as the wheel xllamacpp has them."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import EMBER
from tools.compare.quantise import quantise, quantised_rows

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def api() -> Any:
    from tools.compare.workers import xllamacpp_api

    return xllamacpp_api


def test_another_version_is_refused(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2030.1.1")
    with pytest.raises(ImportError, match=rf"xllamacpp 2030\.1\.1 .* known for {api.VERSION} only"):
        api._open()


def test_a_struct_with_a_field_too_many_is_refused(api: Any) -> None:
    known = api.llama_context_params

    class Larger(ctypes.Structure):
        _fields_ = (("first", ctypes.c_uint32), *known._fields_)

    api._DEFAULTS[Larger] = api._DEFAULTS[known]
    with pytest.raises(ImportError, match="first = 512 instead of 0, n_ctx = 2048 instead of 512"):
        api._check_defaults("llama_context_default_params", Larger)


@pytest.mark.skipif("platform.machine() != 'x86_64'", reason="sizes can be seen on x86-64 only")
def test_a_struct_without_its_last_field_is_refused(api: Any) -> None:
    known = api.llama_context_params

    class Smaller(ctypes.Structure):
        _fields_ = known._fields_[:-1]

    api._DEFAULTS[Smaller] = api._DEFAULTS[known]
    with pytest.raises(ImportError, match="returned 8 bytes more"):
        api._check_defaults("llama_context_default_params", Smaller)


@pytest.mark.parametrize("number_format", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "F16"])
def test_rows_are_quantised_as_the_gguf_package_does_it(number_format: str) -> None:
    values = np.random.RandomState(0).standard_normal((5, 256)).astype(np.float32)
    expected = gguf.quants.quantize(values, gguf.GGMLQuantizationType[number_format])
    np.testing.assert_array_equal(
        quantised_rows(values, number_format), expected.view(np.uint8).reshape(5, -1)
    )


@pytest.mark.parametrize(
    ("number_format", "error"),
    # Half a step of a uniform code, in standard deviations of the values, with room for the scales.
    [("Q2_K", 0.35), ("Q3_K", 0.2), ("Q4_K", 0.1), ("Q5_K", 0.05), ("Q6_K", 0.03)],
)
def test_rows_in_k_formats_read_back_near_what_they_were(number_format: str, error: float) -> None:
    values = np.random.RandomState(0).standard_normal((5, 256)).astype(np.float32)
    kind = gguf.GGMLQuantizationType[number_format]
    read = gguf.quants.dequantize(quantised_rows(values, number_format), kind)
    assert np.sqrt(np.mean((read - values) ** 2)) <= error


def test_a_whole_quantiser_is_what_it_lacks(peer: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"xllamacpp .* has no quantiser, llama-cpp-python has"):
        quantise(EMBER, tmp_path / "model.gguf", "Q4_0", peer=peer)
