"""Train Ember: `python -m ember.train --out OUT --tokenizer FILE [--resume FOLDER]`.

The schedule is `--steps` long; one sitting ends after `--minutes` and the next one resumes.
"""

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path

import torch

from . import checkpoint, simulate, tokenizer
from .model import Ember, Shape
from .muon import Muon
from .packing import BLOCK, Pool

WARMUP_STEPS = 60
DECAY_FROM = 0.6  # of the steps; constant before, linear to zero after
STORED_FROM = 0.85  # of the steps; from here on with simulated Q8_0 and Q4_0 weights
MUON_LR = 0.02
ADAM_LR = 0.003


def rate(step: int, steps: int) -> float:
    if step < WARMUP_STEPS:
        return (step + 1) / WARMUP_STEPS
    left = (steps - step) / (steps * (1 - DECAY_FROM))
    return min(1.0, max(0.0, left))


def rounding(step: int, steps: int):
    """Which stored format this step trains for, if any."""
    if step < STORED_FROM * steps:
        return None
    return simulate.q4_0 if step % 2 else simulate.q8_0


class Training:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        self.model = Ember(Shape()).to(self.device)
        matrices = self.model.matrices()
        known = {id(matrix) for matrix in matrices}
        rest = [p for p in self.model.parameters() if id(p) not in known]
        self.muon = Muon(matrices, lr=MUON_LR)
        self.adam = torch.optim.AdamW(
            rest, lr=ADAM_LR, betas=(0.9, 0.95), weight_decay=0.0, fused=self.device == "cuda"
        )
        self.step, self.seconds, self.sitting = 0, 0.0, 0
        if options.resume:
            self.resume(options.resume)

    def state(self) -> dict:
        optimizers = [checkpoint.halved(o.state_dict()) for o in (self.muon, self.adam)]
        return {
            "shape": asdict(self.model.shape),
            "model": self.model.state_dict(),
            "optimizers": optimizers,
            "random": torch.get_rng_state(),
            "step": self.step,
            "seconds": self.seconds,
            "sitting": self.sitting,
            "steps": self.options.steps,
        }

    def resume(self, folder: Path) -> None:
        state = checkpoint.load(folder)
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip((self.muon, self.adam), state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        torch.set_rng_state(state["random"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.sitting = state["sitting"] + 1

    def run(self) -> None:
        options, model = self.options, self.model
        pool = Pool(
            options.tokenizer,
            seed=f"{options.seed}/{self.sitting}",
            n_workers=options.workers,
            n_blocks=options.pool_blocks,
            device=self.device,
        )
        forward = torch.compile(model) if self.device == "cuda" else model
        optimizers = (self.muon, self.adam)
        for optimizer, base in zip(optimizers, (MUON_LR, ADAM_LR), strict=True):
            for group in optimizer.param_groups:
                group["base_lr"] = base
        options.out.mkdir(parents=True, exist_ok=True)
        began, last, total, n_since = (
            time.time(),
            time.time(),
            torch.zeros((), device=self.device),
            0,
        )
        before = self.seconds
        with (options.out / f"log.{self.sitting}.jsonl").open("w") as log:
            while self.step < options.steps and time.time() - began < options.minutes * 60:
                tokens, targets, boundaries = pool.batch(options.blocks)
                stored = rounding(self.step, options.steps)
                if stored:
                    with simulate.stored_as(model, stored):
                        loss = self.backward(forward, tokens, targets, boundaries)
                else:
                    loss = self.backward(forward, tokens, targets, boundaries)
                scale = rate(self.step, options.steps)
                for optimizer in optimizers:
                    for group in optimizer.param_groups:
                        group["lr"] = group["base_lr"] * scale
                    optimizer.step()
                    optimizer.zero_grad(set_to_none=True)
                total += loss
                self.step, n_since = self.step + 1, n_since + 1
                if self.step % options.log_every == 0:
                    mean, now = total.item() / n_since, time.time()
                    self.seconds = before + now - began
                    line = {
                        "step": self.step,
                        "loss": round(mean, 5),
                        "lr": round(scale, 4),
                        "tokens_per_s": round(n_since * options.blocks * BLOCK / (now - last)),
                        "made": pool.n_made,
                        "used": self.step * options.blocks,
                        "seconds": round(self.seconds, 1),
                    }
                    print(json.dumps(line), flush=True)
                    log.write(json.dumps(line) + "\n")
                    log.flush()
                    total.zero_()
                    last, n_since = now, 0
                if self.step % options.save_every == 0:
                    checkpoint.save(options.out, self.state())
        self.seconds = before + time.time() - began
        pool.close()
        checkpoint.save(options.out, self.state())
        print(f"step {self.step} of {options.steps}, {self.seconds:.0f} s", flush=True)

    def backward(self, forward, tokens, targets, boundaries) -> torch.Tensor:
        with torch.autocast(self.device, torch.bfloat16):
            loss = forward(tokens, targets, boundaries)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(
            [p for g in self.adam.param_groups for p in g["params"]], 1.0
        )
        return loss.detach()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for checkpoints and the log"
    )
    parser.add_argument(
        "--tokenizer", type=Path, required=True, help="tokenizer.json (made if missing)"
    )
    parser.add_argument("--steps", type=int, default=7000, help="length of the whole schedule")
    parser.add_argument("--minutes", type=float, default=9.0, help="length of this sitting")
    parser.add_argument("--resume", type=Path, help="folder of the checkpoint to go on from")
    parser.add_argument("--blocks", type=int, default=8, help=f"blocks of {BLOCK} tokens in a step")
    parser.add_argument("--pool-blocks", type=int, default=32_768, help="blocks kept on the device")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=1000)
    options = parser.parse_args()
    if not options.tokenizer.exists():
        tokenizer.train().save(str(options.tokenizer))
    Training(options).run()


if __name__ == "__main__":
    main()
