"""Text goes on: every token is computed from its whole row again. core/model/generation.h says how
tokens are drawn; the same logits give the same tokens."""
import time

import numpy as np
import torch

from numbers_by_counter import philox_words, portable_exp, stream_number
from protocol import WrongRequest


class Sampler:
    def __init__(self, wanted):
        self.temperature = wanted.get("temperature", 0)
        self.top_k, self.top_p = wanted.get("top_k", 0), wanted.get("top_p", 1)

    def choose(self, logits, uniform):
        """The next token for logits in double precision. `uniform` gives the next number of the
        sample's stream."""
        best = int(np.argmax(logits))
        if not np.isfinite(logits[best]) or np.isnan(logits).any():
            raise ArithmeticError(f"the model's logits are {logits[best]}")
        if self.temperature == 0:
            return best
        ids = np.arange(len(logits))
        if 0 < self.top_k < len(logits):
            ids = np.sort(np.lexsort((ids, -logits))[:self.top_k])
        weights = portable_exp((logits[ids] - logits[best]) / self.temperature)
        if self.top_p < 1:
            order = np.lexsort((ids, -weights))
            reached = np.cumsum(weights[order]) >= self.top_p * np.cumsum(weights)[-1]
            count = int(np.argmax(reached)) + 1 if reached.any() else len(ids)
            kept = np.sort(order[:count])
            ids, weights = ids[kept], weights[kept]
        sums = np.cumsum(weights)
        above = np.nonzero(sums > uniform() * sums[-1])[0]
        return int(ids[above[0]] if len(above) else ids[np.nonzero(weights)[0][-1]])


class Sample:
    """One sample while it grows."""

    def __init__(self, number, prompt, wanted):
        self.number, self.ids, self.drawn, self.read = number, list(prompt), 0, len(prompt)
        samples = wanted.get("samples", 1)
        self.seed = wanted.get("seed", 0)
        self.stream = stream_number(f"generate prompt {number // samples} sample {number % samples}")

    def uniform(self):
        """The next number in [0, 1) of its stream: 53 bits of two words."""
        low, high = (int(word) for word in
                     philox_words(self.seed, self.stream, 2 * self.drawn + 2)[-2:])
        return ((high << 32 | low) >> 11) * 2.0**-53

    def add(self, token, wanted):
        """Takes a token; says whether and why it was the last."""
        if token in wanted.get("end_ids", []):
            return "end_of_sequence"
        self.ids.append(token)
        self.drawn += 1
        if self.drawn >= wanted["max_tokens"]:
            return "length"
        if self.read >= wanted["context"]:
            return "context"
        self.read += 1
        return "none"


def last_logits(model, samples, device):
    """Logits of each sample's last token, [samples, vocabulary]. What is padded stands behind it,
    where no token sees it."""
    longest = max(len(sample.ids) for sample in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.int64)
    for row, sample in enumerate(samples):
        ids[row, :len(sample.ids)] = torch.tensor(sample.ids)
    last = torch.tensor([len(sample.ids) - 1 for sample in samples])
    logits = model(ids.to(device))[torch.arange(len(samples)), last]
    return logits.double().cpu().numpy()


def check(wanted, vocab_size):
    if not wanted["prompts"] or wanted["max_tokens"] < 1:
        raise WrongRequest("there is nothing to generate", "generation")
    for prompt in wanted["prompts"]:
        if not 0 < len(prompt) <= wanted["context"]:
            raise WrongRequest(f"a prompt has {len(prompt)} tokens", "generation",
                               f"at least one, at most the context of {wanted['context']}")
        if not all(0 <= token < vocab_size for token in prompt):
            raise WrongRequest("a prompt has a token id that the model does not know", "generation")


def generate(model, wanted, device, vocab_size, events, stopped):
    """Sends tokens as they come. Returns the values of the result."""
    check(wanted, vocab_size)
    sampler, count = Sampler(wanted), len(wanted["prompts"]) * wanted.get("samples", 1)
    values = {"prefill_tokens": sum(map(len, wanted["prompts"])), "prefill_seconds": 0.0,
              "decode_tokens": 0, "decode_seconds": 0.0}
    size = wanted.get("batch_size", 1)
    model.eval()
    with torch.no_grad():
        for first in range(0, count, size):
            samples = [Sample(number, wanted["prompts"][number // wanted.get("samples", 1)], wanted)
                       for number in range(first, min(count, first + size))]
            phase = "prefill"
            while samples and not stopped():
                began = time.monotonic()
                logits = last_logits(model, samples, device)
                values[phase + "_seconds"] += time.monotonic() - began
                if phase == "decode":
                    values["decode_tokens"] += len(samples)
                phase = "decode"
                drawn = [sampler.choose(row, sample.uniform) for row, sample in zip(logits, samples)]
                ended = [sample.add(token, wanted) for token, sample in zip(drawn, samples)]
                events.send("tokens", samples=[sample.number for sample in samples], ids=drawn,
                            ended=ended)
                samples = [sample for sample, end in zip(samples, ended) if end == "none"]
    return values
