"""Everything there is to measure about kernels on a GPU, in one command, as Markdown.

python benchmarks/kernels/measure_on_gpu.py

1. Kernels against the CPU: noise, penalties, bias and masks, bad rows, log-probabilities, n-gram lookup, rotary
   positions, cache writes, gated unit, norm. Any difference ends the run, here and below.
2. Ids of every rule against those of the CPU, for every shape and filter; then bandwidth: bytes of logits over the time
   that the device spends on a call, launches and the host left out, against bytes moved by a copy on the device. The
   copy reads and writes, so that it moves each byte twice.
3. Time of the whole call, result on the host, against vLLM's and FlashInfer's samplers where they are installed.
4. The price of invariance: linears, norm and attention whose rows stand alone, against cuBLAS and torch's own, after
   tokens alone have shown the bits that they have in the batch.

Without a GPU it says so and exits with status 2.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import torch

from gpu_decoder_checks import decoder_checks
from gpu_invariance import DECODERS, STEPS, Case, cases, difference, differing_alone, tolerance
from gpu_logit_checks import Check, logit_checks
from gpu_peers import peers
from gpu_rules import COUPLED, RULES, Rule, differing_ids
from gpu_shapes import FILTERINGS, SHAPES, Filtering, Shape, batch
from gpu_timing import device_ms, median_ms

_INVARIANCE_DTYPE = torch.bfloat16


def main() -> None:
    if not torch.cuda.is_available():
        print("No GPU at hand: nothing was measured, and there is nothing to report.", file=sys.stderr)
        sys.exit(2)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}\n")
    for dtype in (torch.bfloat16, torch.float32):
        for vocab_size in (1000, 49152, 151936, 262144):
            _run(logit_checks(20, vocab_size, dtype, "cuda"))
        for decoder in DECODERS:
            _run(decoder_checks(decoder.head_size, decoder.intermediate, dtype, "cuda"))
    print("\n| rule | rows x positions x ids | choice | ms a call | ms on the device | GB/s of logits | of a copy's |")
    print("|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        copied = _copy_bytes_a_ms(shape)
        for filtering in FILTERINGS:
            for rule in RULES:
                print(_line(rule, shape, filtering, copied), flush=True)
    print("\n| rows x positions x ids | by | ms a call |\n|---|---|---|")
    for shape in SHAPES:
        _compare_with_peers(shape)
    print("\n| decoder | rows | kernel | ms on the device | the library's | times as long |\n|---|---|---|---|---|---|")
    for decoder in DECODERS:
        for step in STEPS:
            for case in cases(decoder, step, _INVARIANCE_DTYPE, "cuda"):
                print(f"| {decoder.name} | {step} | {_price(case)} |", flush=True)


def _run(checks: Iterable[Check]) -> None:
    for check in checks:
        differing = check.differing()
        if differing:
            sys.exit(f"{check.name}: {differing} numbers differ from the CPU's, or alone from those in a batch")
        print(f"Equal: {check.name}", flush=True)


def _line(rule: Rule, shape: Shape, filtering: Filtering, copy_bytes_a_ms: float) -> str:
    given = batch(shape, filtering, "cuda")
    differing = differing_ids(rule, given)
    if differing:
        sys.exit(f"{rule.name}, {shape}, {filtering.name}: {differing} numbers differ from the CPU's")
    call_ms, busy_ms = median_ms(lambda: rule.on_gpu(given)), device_ms(lambda: rule.on_gpu(given))
    rate = given.logits.nbytes / busy_ms
    figures = f"{call_ms:.3f} | {busy_ms:.3f} | {rate / 1e6:.0f} | {rate / copy_bytes_a_ms:.0%}"
    return f"| {rule.name} | {shape} | {filtering.name} | {figures} |"


def _compare_with_peers(shape: Shape) -> None:
    given = batch(shape, FILTERINGS[1], "cuda")
    print(f"| {shape} | ours | {median_ms(lambda: COUPLED.on_gpu(given)):.3f} |", flush=True)
    for peer in peers(given):
        try:
            took = f"{median_ms(peer.verify):.3f}"
        except Exception as error:  # another version may ask for other arguments: the table says so
            took = f"failed: {type(error).__name__}: {error}".splitlines()[0]
        print(f"| {shape} | {peer.name} | {took} |", flush=True)


def _price(case: Case) -> str:
    """Both times, of results that agree and do not depend on company."""
    found = difference(case)
    if not found <= tolerance(_INVARIANCE_DTYPE):
        sys.exit(f"{case.name}: differs by {found:.2g} of the largest number from the library's result")
    differing = differing_alone(case)
    if differing:
        sys.exit(f"{case.name}: {differing} numbers of tokens alone differ from those in the batch")
    ours, theirs = device_ms(case.ours), device_ms(case.theirs)
    return f"{case.name} | {ours:.4f} | {theirs:.4f} | {ours / theirs:.2f}"


def _copy_bytes_a_ms(shape: Shape) -> float:
    """Bytes that a copy on the device moves, read and written."""
    source = torch.empty(shape.rows * (shape.depth + 1), shape.vocab_size, dtype=shape.dtype, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / device_ms(lambda: target.copy_(source))


if __name__ == "__main__":
    main()
