# SPDX-License-Identifier: Apache-2.0
"""An eager op on 1-element tensors with gradient recording: ours and PyTorch's.

Usage: python3 bench/peers/op_overhead.py [path of bench-trn]

Both are timed in this run, in turn, five times each; medians and their ratio
are printed.  Needs PyTorch (optional: nothing else here does).
"""

import json
import statistics
import subprocess
import sys
import time

ROUNDS = 5
CALLS = 20000


def ours(program):
    """Nanoseconds of a recorded trn_add, as bench-trn measures it."""
    out = subprocess.run(
        [program, "--json", "--threads", "1", "op-overhead:add:1"],
        check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        for figure in json.loads(line).values():
            if isinstance(figure, dict) and figure.get("unit") == "ns":
                return figure["median"]
    raise SystemExit("bench-trn printed no figure in ns: " + out)


def theirs(torch):
    """Nanoseconds of a recorded torch.add."""
    a = torch.ones(1, requires_grad=True)
    b = torch.ones(1)
    for _ in range(1000):
        torch.add(a, b)
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        torch.add(a, b)
    return (time.perf_counter_ns() - start) / CALLS


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/bench-trn"
    try:
        import torch
    except ImportError:
        raise SystemExit("op_overhead: PyTorch is not installed")
    torch.set_num_threads(1)
    pairs = [(ours(program), theirs(torch)) for _ in range(ROUNDS)]
    mine = statistics.median(p[0] for p in pairs)
    peer = statistics.median(p[1] for p in pairs)
    ratio = statistics.median(p[0] / p[1] for p in pairs)
    print(f"libtrn   {mine:8.1f} ns per recorded add of 1 element")
    print(f"PyTorch  {peer:8.1f} ns  ({torch.__version__}, 1 thread)")
    print(f"ratio    {ratio:8.3f}  (median of {ROUNDS} pairs)")


main()
