"""Names, shapes and initial values of a model's weights, in the order of Hugging Face's models."""
import math

import numpy as np

from numbers_by_counter import normal_cdf, normal_quantile, open_uniform, stream_number


def ones():
    return lambda seed, stream, count: np.ones(count, np.float32)


def normal(std):
    return lambda seed, stream, count: std * normal_quantile(open_uniform(seed, stream, count))


def truncated_normal(std, cut):
    # Rounded, because C libraries may differ in the last bit of erfc.
    tail = math.floor(normal_cdf(-cut / std) * 2.0**40 + 0.5) * 2.0**-40

    def draw(seed, stream, count):
        u = open_uniform(seed, stream, count)
        return np.clip(std * normal_quantile(tail + u * (1 - 2 * tail)), -cut, cut)
    return draw


def uniform(bound):
    return lambda seed, stream, count: bound * (2 * open_uniform(seed, stream, count) - 1)


def forgather_recipe(model):
    plain = truncated_normal(0.02, 2)
    shrunk = truncated_normal(0.02 / math.sqrt(2.0 * model["num_layers"]), 2)
    head_std = 1 / math.sqrt(model["hidden_size"])
    head = truncated_normal(head_std, 3 * head_std)
    embedding = head if model["tie_embeddings"] else normal(1)
    return {"embedding": embedding, "qkv": plain, "output": shrunk, "gate": shrunk, "up": plain,
            "down": shrunk, "head": head}


def lingua_recipe(model, layer):
    hidden_std = 1 / math.sqrt(model["hidden_size"])
    base = model["init_base_std"] or hidden_std
    factor = {"disabled": 1, "global_depth": math.sqrt(2.0 * (model["num_layers"] + 1)),
              "current_depth": math.sqrt(2.0 * (layer + 1)),
              "dim_ratio": model["hidden_size"] / 4096.0}[model["init_std_factor"]]
    down = (model["init_base_std"] or 1 / math.sqrt(model["intermediate_size"])) / factor
    ends = truncated_normal(hidden_std, 3 * hidden_std)
    plain = truncated_normal(base, 3 * base)
    return {"embedding": ends, "qkv": plain, "output": truncated_normal(base / factor, 3 * base),
            "gate": plain, "up": plain, "down": truncated_normal(down, 3 * down), "head": ends}


def recipe_of(model, layer):
    if model["init"] == "forgather":
        return forgather_recipe(model)
    if model["init"] == "huggingface":
        return dict.fromkeys(("embedding", "qkv", "output", "gate", "up", "down", "head"),
                             normal(0.02))
    return lingua_recipe(model, layer)


def rules_of(model):
    """Yields the name of each weight without ".weight", and how it is drawn."""
    yield "model.embed_tokens", recipe_of(model, 0)["embedding"]
    canon = uniform(1 / math.sqrt(model["canon"]["kernel"]))
    for layer in range(model["num_layers"]):
        recipe = recipe_of(model, layer)
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm", "self_attn.q_norm",
                     "self_attn.k_norm"):
            yield at + norm, ones()
        for convolution in ("canonA", "self_attn.canonB", "canonC", "mlp.canonD"):
            yield at + convolution, canon
        for matrix in ("q_proj", "k_proj", "v_proj"):
            yield at + "self_attn." + matrix, recipe["qkv"]
        yield at + "self_attn.o_proj", recipe["output"]
        yield at + "mlp.gate_proj", recipe["gate"]
        yield at + "mlp.up_proj", recipe["up"]
        yield at + "mlp.down_proj", recipe["down"]
    yield "model.norm", ones()
    yield "lm_head", recipe_of(model, 0)["head"]


def draw_initial(model, seed, shapes):
    """Yields name and float32 values of every weight in `shapes`, a dictionary of names."""
    rules = {name + ".weight": rule for name, rule in rules_of(model)}
    for name, shape in shapes.items():
        values = rules[name](seed, stream_number(name), math.prod(shape))
        yield name, values.astype(np.float32).reshape(shape)
