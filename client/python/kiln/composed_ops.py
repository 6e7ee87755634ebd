"""What PyTorch has a function for and plans write with several ops, or with one
of another name (docs/ops.md)."""

from __future__ import annotations

# By name, statements from x to y, and what they take for granted.
COMPOSED_OPS = {
    "instance_norm": (
        "y = group_norm(x, num_groups=4)",
        "the number of channels in place of 4"),
    "layer_norm": (
        "m = mean(x, dim=-1, keepdim=true); d = sub(x, m); s = mul(d, d); "
        "v = mean(s, dim=-1, keepdim=true); e = add(v, 1e-5); r = sqrt(e); "
        "y = div(d, r)",
        "the dimensions to normalise in place of -1; a weight by mul, "
        "a bias by add"),
    "rms_norm": (
        "s = mul(x, x); v = mean(s, dim=-1, keepdim=true); "
        "e = add(v, 1e-6); r = sqrt(e); y = div(x, r)",
        "the dimensions to normalise in place of -1, its eps in place "
        "of 1e-6; a weight by mul"),
    "normalize": (
        "s = mul(x, x); t = sum(s, dim=1, keepdim=true); n = sqrt(t); "
        "m = maximum(n, 1e-12); y = div(x, m)",
        "its dimension in place of 1"),
    "log_softmax": (
        "m = amax(x, dim=1, keepdim=true); d = sub(x, m); "
        "l = logsumexp(d, dim=1, keepdim=true); y = sub(d, l)",
        "its dimension in place of 1"),
    "conv1d": (
        "y = conv2d(x, w, padding=[0, 1])",
        "x of [N, C, 1, L], w of [O, C, 1, K], its padding in place of "
        "1"),
    "linear": ("y = conv2d(x, w)", "x of [M, C, 1, 1], w of [O, C, 1, 1]"),
    "adaptive_avg_pool2d": (
        "y = mean(x, dim=[2, 3], keepdim=true)",
        "an output of 1 x 1"),
    "adaptive_max_pool2d": (
        "y = amax(x, dim=[2, 3], keepdim=true)",
        "an output of 1 x 1"),
    "relu6": ("y = clamp(x, min=0, max=6)", ""),
    "prelu": (
        "a = relu(x); b = minimum(x, 0); c = mul(b, g); y = add(a, c)",
        "its weight g of [C, 1, 1]"),
    "selu": (
        "e = elu(x, alpha=1.6732632423543772); "
        "y = mul(e, 1.0507009873554805)",
        ""),
    "swish": ("y = silu(x)", ""),
    "softsign": ("a = abs(x); b = add(a, 1); y = div(x, b)", ""),
    "logsigmoid": ("a = neg(x); b = softplus(a); y = neg(b)", ""),
    "tanhshrink": ("t = tanh(x); y = sub(x, t)", ""),
    "square": ("y = mul(x, x)", ""),
    "rsqrt": ("r = sqrt(x); y = div(1, r)", ""),
    "reciprocal": ("y = div(1, x)", ""),
}


def how_to_write(name: str) -> str:
    """"; write y = silu(x)", or nothing."""
    if name not in COMPOSED_OPS:
        return ""
    statements, where = COMPOSED_OPS[name]
    return f"; write {statements}" + (f", with {where}" if where else "")
