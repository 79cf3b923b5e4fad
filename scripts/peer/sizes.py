"""Shapes that forge and its PyTorch peer are measured at, as multi-head Llamas with untied output."""

SIZES = {
    "tiny": {"vocab": 2000, "hidden": 256, "mlp": 768, "heads": 4, "layers": 4, "batch": 32, "seq": 512},
    "medium": {"vocab": 32000, "hidden": 768, "mlp": 2048, "heads": 8, "layers": 16, "batch": 32, "seq": 1024},
    "large": {"vocab": 32000, "hidden": 2048, "mlp": 5632, "heads": 16, "layers": 24, "batch": 8, "seq": 4096},
}
EPS = 1e-5  # of RMSNorm
TAPS = 4  # of a Canon layer
GRADIENT_CLIP = 1.0
ADAMW = {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
