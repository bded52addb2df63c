"""Wrong arguments are refused with what was expected and what was given, and bad logits are found row by row."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import torch

import outrider_kernels.verify
from outrider_kernels.reference import sample_reference, verify_reference
from outrider_kernels.verify import find_bad_rows, verify


@pytest.fixture(params=[verify, verify_reference], ids=["compiled", "reference"])
def form(request):
    return request.param


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (torch.zeros(3), r"expected logits \[N, V\].*given \[3\]"),
        (torch.zeros(3, 0), r"given \[3, 0\]"),
        (torch.zeros(3, 4, dtype=torch.float64), "given .*float64"),
        (torch.zeros(3, 4, dtype=torch.int64), "given .*int64"),
        (torch.zeros(4, 4), "rising from 0 to 4"),
    ],
)
def test_logits_of_another_shape_or_dtype_are_refused(form, sampling_rows, verify_rows, logits, message) -> None:
    with pytest.raises(ValueError, match=message):
        form(logits, verify_rows([[1], []]), sampling_rows(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"proposed": np.array([4], np.int32)}, r"expected proposed in \[0, 4\), given 4"),
        ({"proposed": np.array([-1], np.int32)}, r"expected proposed in \[0, 4\), given -1"),
        ({"proposed": np.array([1, 1], np.int32)}, r"expected 1 proposed ids, given shape \(2,\)"),
        ({"logit_starts": np.array([1, 2, 3], np.int32)}, "rising from 0 to 3"),
        ({"logit_starts": np.array([0, 3, 3], np.int32)}, "by at least 1"),
        ({"logit_starts": np.array([0, 3], np.int32)}, "of 2 rows"),
        ({"first_position": np.array([0, -1], np.int64)}, "expected first_position >= 0, given -1"),
    ],
)
def test_rows_out_of_range_are_refused(form, sampling_rows, verify_rows, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        form(torch.zeros(3, 4), verify_rows([[1], []])._replace(**change), sampling_rows(2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": np.array([1.0, -0.1])}, "expected temperature finite and >= 0, given -0.1"),
        ({"temperature": np.array([1.0, np.nan])}, "expected temperature finite and >= 0, given nan"),
        ({"temperature": np.array([1.0, np.inf])}, "expected temperature finite and >= 0, given inf"),
        ({"top_k": np.array([0, -1], np.int32)}, "expected top_k >= 0, given -1"),
        ({"top_p": np.array([1.0, 0.0])}, r"expected top_p in \(0, 1\], given 0.0"),
        ({"top_p": np.array([1.0, 1.5])}, r"expected top_p in \(0, 1\], given 1.5"),
        ({"min_p": np.array([0.0, 1.1])}, r"expected min_p in \[0, 1\], given 1.1"),
        ({"seed": np.zeros(3, np.uint64)}, r"expected seed of 2 rows, given shape \(3,\)"),
    ],
)
def test_sampling_out_of_range_is_refused(form, sampling_rows, verify_rows, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        form(torch.zeros(3, 4), verify_rows([[1], []]), sampling_rows(2)._replace(**change))


BAD_LOGITS = [[torch.nan, 0, 0], [0, torch.inf, 0], [-torch.inf] * 3]


@pytest.mark.parametrize("bad", BAD_LOGITS)
@pytest.mark.parametrize("at", [2, 3])
def test_bad_logits_are_refused_with_their_row_named(form, sampling_rows, verify_rows, bad, at) -> None:
    logits = torch.zeros(5, 3)
    logits[at] = torch.tensor(bad)  # row 1 owns logit rows 2 and 3, whether it gets to the second or not
    with pytest.raises(ValueError, match=r"in row 1$"):
        form(logits, verify_rows([[1], [2], []]), sampling_rows(3))


@pytest.mark.parametrize("bad", BAD_LOGITS)
def test_the_reference_for_one_row_refuses_bad_logits(bad) -> None:
    with pytest.raises(ValueError, match="expected logits without NaN"):
        sample_reference(torch.tensor(bad), 0.0, 0, 1.0, 0.0, 1, 1)


def test_every_bad_row_is_found_and_no_other() -> None:
    logits = torch.randn(7, 50)
    logits[1, 3], logits[4, 49], logits[5, :40] = torch.nan, torch.inf, -torch.inf
    starts = np.array([0, 2, 4, 5, 6, 7], np.int32)
    assert find_bad_rows(logits, starts).tolist() == [0, 2]
    logits[6] = -torch.inf
    assert find_bad_rows(logits.bfloat16(), starts).tolist() == [0, 2, 4]
    assert find_bad_rows(torch.zeros(0, 50), np.zeros(1, np.int32)).tolist() == []


def test_extreme_but_finite_logits_are_not_bad() -> None:
    largest = torch.finfo(torch.float32).max
    logits = torch.tensor([[largest, -largest, 0.0, -0.0, 1e-45]])
    assert find_bad_rows(logits, np.array([0, 1], np.int32)).tolist() == []


def test_the_example_of_the_contract_holds() -> None:
    results = doctest.testmod(outrider_kernels.verify)
    assert results.attempted == 4 and results.failed == 0
