"""The published optimizers in numpy, float64: what both backends' updates are compared with.

    optimizer_traces.py            checks that tests/vectors/optimizer_traces.json says what this says
    optimizer_traces.py --record   writes the file

AdamW: Loshchilov and Hutter, arXiv:1711.05101. Muon: Jordan, https://kellerjordan.github.io/posts/muon, with
Liu et al., arXiv:2502.16982, for match_rms_adamw. Lion: Chen et al., arXiv:2302.06675. SGD: Sutskever et al.
2013, with the decoupled decay of arXiv:1711.05101.
"""
import json
import os
import sys

try:
    import numpy as np
except ModuleNotFoundError:
    sys.exit(77)

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vectors/optimizer_traces.json")
SCALE = 256  # stored weights and gradients are integers over this
STEPS, WARMUP = 6, 3


def decay_of(group, settings):
    return settings.get("weight_decay_of", {}).get(group, settings["weight_decay"])


def adamw(p, g, state, t, rate, decay, settings):
    beta1, beta2 = settings["betas"]
    m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    m_hat, v_hat = m / (1 - beta1 ** t), v / (1 - beta2 ** t)
    return p - rate * (m_hat / (np.sqrt(v_hat) + settings["eps"]) + decay * p)


def lion(p, g, state, rate, decay, settings):
    beta1, beta2 = settings["lion"]["betas"]
    m = state.get("m", np.zeros_like(p))
    state["m"] = beta2 * m + (1 - beta2) * g
    return p - rate * (np.sign(beta1 * m + (1 - beta1) * g) + decay * p)


def sgd(p, g, state, rate, decay, settings):
    momentum, nesterov = settings["sgd"]["momentum"], settings["sgd"]["nesterov"]
    b = state["b"] = momentum * state.get("b", 0) + g
    return p - rate * ((g + momentum * b if nesterov else b) + decay * p)


def newton_schulz(g, steps, coefficients):
    a, b, c = coefficients
    x = g / (np.linalg.norm(g) + 1e-7)
    if g.shape[0] > g.shape[1]:
        x = x.T
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if g.shape[0] > g.shape[1] else x


def muon(p, g, state, rate, decay, settings):
    own, (rows, columns) = settings["muon"], p.shape
    m = state["m"] = own["momentum"] * state.get("m", 0) + (1 - own["momentum"]) * g
    ahead = (1 - own["momentum"]) * g + own["momentum"] * m if own["nesterov"] else m
    update = newton_schulz(ahead, own["newton_schulz_steps"], own["newton_schulz_coefficients"])
    factor = {"original": max(1, rows / columns) ** 0.5,
              "match_rms_adamw": 0.2 * max(rows, columns) ** 0.5}[own["adjust_lr"]]
    return p - rate * (factor * update + decay * p)


def updated(group, p, g, state, t, rate, settings):
    kind, decay = settings["type"], decay_of(group, settings)
    if kind == "muon" and group != "matrices":
        rate *= (settings["muon"]["adamw_lr"] or settings["lr"]) / settings["lr"]
    elif kind != "adamw":
        return {"muon": muon, "lion": lion, "sgd": sgd}[kind](p, g, state, rate, decay, settings)
    return adamw(p, g, state, t, rate, decay, settings)


MODEL = {"vocab_size": 11, "hidden_size": 8, "num_layers": 1,
         "attention": {"num_heads": 2, "num_kv_heads": 1, "head_dim": 4, "qk_norm": "per_head"},
         "mlp": {"intermediate_size": 12}, "canon": {"set": "AC"}}
LAYER = "model.layers.0."
WEIGHTS = [("model.embed_tokens.weight", [11, 8], "embeddings"),
           (LAYER + "input_layernorm.weight", [8], "norms"), (LAYER + "canonA.weight", [8, 1, 4], "canon"),
           (LAYER + "self_attn.q_proj.weight", [8, 8], "matrices"),
           (LAYER + "self_attn.k_proj.weight", [4, 8], "matrices"),
           (LAYER + "self_attn.v_proj.weight", [4, 8], "matrices"),
           (LAYER + "self_attn.q_norm.weight", [4], "norms"), (LAYER + "self_attn.k_norm.weight", [4], "norms"),
           (LAYER + "self_attn.o_proj.weight", [8, 8], "matrices"),
           (LAYER + "post_attention_layernorm.weight", [8], "norms"), (LAYER + "canonC.weight", [8, 1, 4], "canon"),
           (LAYER + "mlp.gate_proj.weight", [12, 8], "matrices"),
           (LAYER + "mlp.up_proj.weight", [12, 8], "matrices"),
           (LAYER + "mlp.down_proj.weight", [8, 12], "matrices"),
           ("model.norm.weight", [8], "norms"), ("lm_head.weight", [11, 8], "head")]

ADAMW = {"type": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}
MUON = {**ADAMW, "type": "muon", "lr": 2e-2,
        "muon": {"momentum": 0.95, "nesterov": True, "newton_schulz_steps": 5,
                 "newton_schulz_coefficients": [3.4445, -4.775, 2.0315], "adjust_lr": "match_rms_adamw",
                 "adamw_lr": None}}
LION = {"type": "lion", "lr": 1e-3, "weight_decay": 1.0, "lion": {"betas": [0.9, 0.99]}}
SGD = {"type": "sgd", "lr": 5e-2, "weight_decay": 0.1, "sgd": {"momentum": 0.9, "nesterov": False}}
CASES = {
    "adamw": (ADAMW, 0), "adamw_groups": ({**ADAMW, "weight_decay_of": {"norms": 0.0, "embeddings": 0.02}}, 1.0),
    "muon": (MUON, 0),
    "muon_original": ({**MUON, "weight_decay_of": {"matrices": 0.3, "vectors": 0.0, "canon": 0.0},
                       "muon": {**MUON["muon"], "nesterov": False, "adjust_lr": "original", "adamw_lr": 3e-4,
                                "newton_schulz_steps": 4}}, 1.0),
    "lion": (LION, 0), "lion_groups": ({**LION, "weight_decay_of": {"head": 0.0, "norms": 0.0},
                                        "lion": {"betas": [0.95, 0.98]}}, 1.0),
    "sgd": (SGD, 0), "sgd_nesterov": ({**SGD, "sgd": {"momentum": 0.8, "nesterov": True}}, 1.0),
    "sgd_plain": ({**SGD, "sgd": {"momentum": 0.0, "nesterov": False}}, 0)}


def drawn():
    """Weights, and gradients of each step: the tokens 9 and 10 never occur."""
    random, size = np.random.RandomState(7), lambda shape: int(np.prod(shape))
    weights = {name: random.randint(-200, 201, size(shape)).tolist() for name, shape, _ in WEIGHTS}
    gradients = []
    for _ in range(STEPS):
        gradients.append({name: random.randint(-99, 100, size(shape)).tolist() for name, shape, _ in WEIGHTS})
        gradients[-1]["model.embed_tokens.weight"][9 * 8:] = [0] * 16
    return weights, gradients


def trace(settings, clip, stored, gradients):
    """Every weight after the last step, flat."""
    weights = {name: np.array(stored[name], float).reshape(shape) / SCALE for name, shape, _ in WEIGHTS}
    states = {name: {} for name in weights}
    for step in range(STEPS):
        rate = settings["lr"] * min(1, step / WARMUP)
        now = {name: np.array(gradients[step][name], float) / SCALE for name in weights}
        norm = np.sqrt(sum((g * g).sum() for g in now.values()))
        factor = min(1, clip / (norm + 1e-6)) if clip else 1
        for name, shape, group in WEIGHTS:
            weights[name] = updated(group, weights[name], factor * now[name].reshape(shape), states[name],
                                    step + 1, rate, settings)
    return {name: weight.ravel().tolist() for name, weight in weights.items()}


def content():
    weights, gradients = drawn()
    cases = [{"name": name, "optimizer": settings, "grad_clip": clip,
              "final": trace(settings, clip, weights, gradients)} for name, (settings, clip) in CASES.items()]
    return {"scale": SCALE, "warmup_steps": WARMUP, "model": MODEL,
            "weights": [{"name": name, "shape": shape, "group": group, "data": weights[name]}
                        for name, shape, group in WEIGHTS],
            "gradients": gradients, "cases": cases}


def check(stored, now):
    largest = 0.0
    for old, new in zip(stored.pop("cases"), now.pop("cases")):
        finals = old.pop("final"), new.pop("final")
        assert old == new, f"case {new['name']} has other settings"
        for name, values in finals[1].items():
            largest = max(largest, np.abs(np.array(finals[0][name]) - values).max())
    assert stored == now, "weights, gradients or the model differ"
    assert largest < 1e-14, largest
    print(f"optimizer_traces.json is what the algorithms give, to {largest:.1e}")


if __name__ == "__main__":
    if "--record" in sys.argv:
        with open(FILE, "w", encoding="utf-8") as file:
            json.dump(content(), file, separators=(",", ":"))
            file.write("\n")
    else:
        with open(FILE, encoding="utf-8") as file:
            check(json.load(file), json.loads(json.dumps(content())))
