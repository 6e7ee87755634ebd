"""The error of an output against double, in the metric of the grades: at most
twice (norm) and four times (worst element) PyTorch's, each plus one ulp."""

import dataclasses

# Distance from 1 to the next number of the storage type.
_EPSILON = {"torch.float32": 2.0**-23, "torch.float16": 2.0**-10,
            "torch.bfloat16": 2.0**-7}
NORM_FACTOR = 2.0
WORST_FACTOR = 4.0


@dataclasses.dataclass
class Verdict:
    ok: bool
    why: str  # empty if ok
    norm: float  # ‖output − reference‖ / ‖reference‖
    norm_torch: float
    worst: float  # max |output − reference|
    worst_torch: float


def judge(output, reference, torch_output):
    """`reference` is in double and unrounded; the others are as stored."""
    mismatch = _nonfinite_mismatch(output, reference, torch_output)
    finite = (output.isfinite() & reference.to(output.dtype).isfinite() &
              torch_output.isfinite())
    reference = reference.double().where(finite, 0)
    scale = float(reference.norm())
    peak = float(reference.abs().max()) if reference.numel() else 0.0
    norm, worst = _errors(output, reference, finite, scale)
    norm_torch, worst_torch = _errors(torch_output, reference, finite, scale)
    epsilon = _EPSILON[str(output.dtype)]
    why = ""
    if mismatch:
        why = f"{mismatch} elements differ in being NaN or infinite"
    elif norm > NORM_FACTOR * norm_torch + epsilon:
        why = f"norm error {norm:.3g}, PyTorch's {norm_torch:.3g}"
    elif worst > WORST_FACTOR * worst_torch + epsilon * max(peak, 1e-30):
        why = f"worst error {worst:.3g}, PyTorch's {worst_torch:.3g}"
    return Verdict(not why, why, norm, norm_torch, worst, worst_torch)


def _errors(values, reference, finite, scale):
    difference = (values.double() - reference).where(finite, 0)
    if difference.numel() == 0:
        return 0.0, 0.0
    worst = float(difference.abs().max())
    norm = float(difference.norm())
    return (norm / scale if scale > 0 else norm), worst


def _nonfinite_mismatch(output, reference, torch_output):
    """Elements whose kind (finite, NaN, +inf, -inf) is neither that of the
    rounded reference nor that of PyTorch, whose f32 may overflow earlier."""
    def kinds(tensor):
        return (tensor.isnan().int() + 2 * tensor.isposinf().int() +
                4 * tensor.isneginf().int())
    mine = kinds(output)
    return int(((mine != kinds(reference.to(output.dtype))) &
                (mine != kinds(torch_output))).sum())
