# SPDX-License-Identifier: Apache-2.0
"""The demo's training step: ours on a PJRT plug-in, and JAX's on its own CPU.

Usage: TRN_PJRT_PLUGIN=/path/plugin.so \\
           python3 bench/peers/jax_mlp_step.py [flags]

  --program PATH   bench-trn (build/bench-trn)
  --device NAME    ours (pjrt:$TRN_PJRT_PLUGIN)
  --pairs N        runs of each side, in turn (7)
  --cores N        both run on the first N cores this process may use (all)
  --loss           each step's loss is read

Needs JAX (optional: nothing else here does), best in an environment of its own:

    python3 -m venv /tmp/jax && /tmp/jax/bin/pip install jax==0.10.2 jaxlib==0.10.2

Same shapes, same arithmetic, data of the same kind, a new batch from the host
in each step; AdamW and clipping are written out as ours are. A run is a number
of batches of 50 steps, which end when all is done; its figure is their median.
Beside it stands the processor time of all threads for a step, a mean, which
other work on the machine disturbs less.
JAX draws its dropout with its own default generator, and has no counterpart of
our checks of indices and of the norm.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

WORDS, CONTEXT, WIDTH, HIDDEN, BATCH = 96, 16, 24, 512, 128
STEPS, BUDGET_S, SAMPLES = 50, 4.0, 16384
DROPOUT, CLIP = 0.1, 1.0
RATE, BETA1, BETA2, EPS, DECAY = 0.002, 0.9, 0.999, 1e-8, 0.01


def flags():
    p = argparse.ArgumentParser()
    p.add_argument("--program", default="build/bench-trn")
    p.add_argument("--device", default="pjrt:" + os.environ.get("TRN_PJRT_PLUGIN", ""))
    p.add_argument("--pairs", type=int, default=7)
    p.add_argument("--cores", type=int, default=0)
    p.add_argument("--loss", action="store_true")
    return p.parse_args()


def limit_cores(n):
    """Before JAX starts its threads; children inherit it."""
    cores = sorted(os.sched_getaffinity(0))
    if n > 0:
        os.sched_setaffinity(0, cores[:n])
    return len(os.sched_getaffinity(0))


def ours(a):
    """Microseconds of a step and of processor time for it, by bench-trn."""
    case = "mlp-step:loss" if a.loss else "mlp-step"
    out = subprocess.run(
        [a.program, "--json", "--device", a.device, case],
        check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        figures = json.loads(line)
        if figures.get("case") == case:
            return figures["time"]["median"], figures["cpu"]["median"]
    raise SystemExit("bench-trn printed no figure: " + out)


class Theirs:
    def __init__(self, read_loss):
        import jax
        import jax.numpy as jnp
        import numpy as np

        self.jax, self.read_loss = jax, read_loss
        rng = np.random.default_rng(1)
        self.x = rng.integers(0, WORDS, (SAMPLES, CONTEXT), dtype=np.int32)
        self.y = ((5 * self.x[:, -1] + 3) % WORDS).astype(np.int32)
        self.rng, self.order, self.at = rng, rng.permutation(SAMPLES), 0

        def uniform(shape, n_in):
            bound = n_in ** -0.5
            return rng.uniform(-bound, bound, shape).astype(np.float32)

        n_in = CONTEXT * WIDTH
        parameters = [
            rng.normal(size=(WORDS, WIDTH)).astype(np.float32),
            uniform((HIDDEN, n_in), n_in), uniform((HIDDEN,), n_in),
            uniform((WORDS, HIDDEN), HIDDEN), uniform((WORDS,), HIDDEN),
        ]
        zeros = [np.zeros_like(p) for p in parameters]
        self.state = jax.device_put(
            (parameters, zeros, zeros, np.int32(0), jax.random.key(0)))

        def loss_of(parameters, x, y, key):
            embedding, w1, b1, w2, b2 = parameters
            h = embedding[x].reshape(BATCH, n_in)
            h = jax.nn.relu(h @ w1.T + b1)
            keep = jax.random.bernoulli(key, 1 - DROPOUT, h.shape)
            h = jnp.where(keep, h / (1 - DROPOUT), 0)
            logits = jax.nn.log_softmax(h @ w2.T + b2)
            return -jnp.mean(jnp.take_along_axis(logits, y[:, None], 1))

        def step(state, x, y):
            p, m, v, t, key = state
            t = t + 1
            dropped = jax.random.fold_in(key, t)
            loss, g = jax.value_and_grad(loss_of)(p, x, y, dropped)
            norm = jnp.sqrt(sum(jnp.sum(a * a) for a in g))
            factor = jnp.minimum(1, CLIP / (norm + 1e-6))
            power = t.astype(jnp.float32)
            size = RATE / (1 - BETA1 ** power)
            root = jnp.sqrt(1 - BETA2 ** power)
            g = [a * factor for a in g]
            m = [a + (1 - BETA1) * (b - a) for a, b in zip(m, g)]
            v = [BETA2 * a + (1 - BETA2) * (b * b) for a, b in zip(v, g)]
            p = [a * (1 - RATE * DECAY) - size * b / (jnp.sqrt(c) / root + EPS)
                 for a, b, c in zip(p, m, v)]
            return (p, m, v, t, key), loss

        self.step = jax.jit(step, donate_argnums=0)

    def batch(self):
        if self.at + BATCH > SAMPLES:
            self.order, self.at = self.rng.permutation(SAMPLES), 0
        rows = self.order[self.at:self.at + BATCH]
        self.at += BATCH
        return self.x[rows], self.y[rows]

    def steps(self, n):
        for _ in range(n):
            self.state, loss = self.step(self.state, *self.batch())
            if self.read_loss:
                float(loss)
        self.jax.block_until_ready((self.state, loss))
        return float(loss)

    def check(self):
        first = self.steps(1)
        if not self.steps(100) < 0.9 * first:
            raise SystemExit("jax_mlp_step: JAX's loss does not fall")

    def run(self):
        """Microseconds of a step, and of processor time for it."""
        times, end = [], time.perf_counter() + BUDGET_S
        before = time.process_time()
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            self.steps(STEPS)
            times.append((time.perf_counter() - start) / STEPS)
        cpu = (time.process_time() - before) / (len(times) * STEPS)
        return statistics.median(times) * 1e6, cpu * 1e6


def line(name, values, unit):
    print(f"{name:14} {statistics.median(values):8.3f} {unit} "
          f"[{min(values):.3f} .. {max(values):.3f}]")


def report(what, pairs):
    line(what + ", libtrn", [p[0] for p in pairs], "us")
    line(what + ", JAX", [p[1] for p in pairs], "us")
    line(what + ", ratio", [p[0] / p[1] for p in pairs], "")


def main():
    a = flags()
    if a.device == "pjrt:":
        raise SystemExit("jax_mlp_step: TRN_PJRT_PLUGIN names no plug-in")
    n_cores = limit_cores(a.cores)
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        theirs = Theirs(a.loss)
    except ImportError:
        raise SystemExit("jax_mlp_step: JAX is not installed")
    theirs.check()
    wall, cpu = [], []
    for _ in range(a.pairs):
        mine, peer = ours(a), theirs.run()
        wall.append((mine[0], peer[0]))
        cpu.append((mine[1], peer[1]))
        print("  %.1f us, JAX %.1f us" % wall[-1], flush=True)
    report("time", wall)
    report("cpu", cpu)
    print(f"{a.pairs} pairs in turn, {n_cores} cores, JAX "
          f"{theirs.jax.__version__}; required: ratio of"
          " times at most 1.2")


main()
