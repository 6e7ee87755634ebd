"""The error of an output against double, in the metric of the grades: at most
twice (norm) and four times (worst element) PyTorch's, each plus one ulp.

PyTorch's error is that of float32 arithmetic, TF32 off, on inputs converted to
float32, which is exact; only its outputs are rounded to their storage types.

Where a result is ill-conditioned, PyTorch's error is luck: of a sum that
cancels, one order of adding may be exact and another far off. So a verdict
that fails is judged once more against the larger of PyTorch's error and the
conditioning error: how far the exact result moves (in double) when each input
element is off by one rounding to float32, 2^-24 of it, in random directions;
the largest of four draws. A backward-stable float32 algorithm cannot promise
less. Verdicts that pass only so have `ill_conditioned` set and are counted
apart. NaNs and infinities have no second chance.

The grade tf32 promises the error of operands rounded to TF32. cuDNN may use
TF32 where it is allowed, but for some shapes does not; PyTorch's error is then
that of float32. So a verdict of that grade that fails is judged once more
against the exact result of operands rounded to TF32; `rounded_operands` is set
where it passes only so.
"""

import dataclasses

# Distance from 1 to the next number of the storage type.
_EPSILON = {"torch.float32": 2.0**-23, "torch.float16": 2.0**-10,
            "torch.bfloat16": 2.0**-7}
NORM_FACTOR = 2.0
WORST_FACTOR = 4.0
SLICE = 1 << 27  # elements; bounds the memory that judging takes
_ROUNDING = 2.0**-24  # relative error of rounding to float32, at most
DRAWS = 4


@dataclasses.dataclass
class Verdict:
    ok: bool
    why: str  # empty if ok by PyTorch's error
    norm: float  # ‖output − reference‖ / ‖reference‖
    norm_torch: float
    worst: float  # max |output − reference|
    worst_torch: float
    ill_conditioned: bool = False  # ok by the conditioning error only
    rounded_operands: bool = False  # ok by the error of TF32 operands only
    norm_conditioning: float | None = None  # known if that was looked at
    worst_conditioning: float | None = None


class _Error:
    """Sums over slices of one tensor's difference from the reference."""

    def __init__(self):
        self.squares = 0.0
        self.worst = 0.0

    def add(self, values, reference, finite):
        difference = (values.double() - reference).where(finite, 0)
        self.squares += float(difference.square().sum())
        self.worst = max(self.worst, float(difference.abs().max()))


def judge(output, reference, torch_output):
    """`reference` is in double and unrounded; the others are as stored."""
    mine, torchs = _Error(), _Error()
    squares, peak, mismatch = 0.0, 0.0, 0
    parts = (tensor.reshape(-1).split(SLICE)
             for tensor in (output, reference, torch_output))
    for values, truth, eager in zip(*parts):
        if values.numel() == 0:
            continue
        mismatch += _nonfinite_mismatch(values, truth, eager)
        finite = (values.isfinite() & truth.to(values.dtype).isfinite() &
                  eager.isfinite())
        truth = truth.double().where(finite, 0)
        squares += float(truth.square().sum())
        peak = max(peak, float(truth.abs().max()))
        mine.add(values, truth, finite)
        torchs.add(eager, truth, finite)
    scale = squares**0.5 if squares > 0 else 1.0
    return _verdict(mine.squares**0.5 / scale, torchs.squares**0.5 / scale,
                    mine.worst, torchs.worst, mismatch, peak,
                    _EPSILON[str(output.dtype)])


def judge_by_rounding(strict, output, reference, rounded):
    """The second chance of the grade tf32. `rounded` is the exact result, in
    double, of operands rounded to TF32."""
    again = judge(output, reference, rounded.to(output.dtype))
    if not again.ok:
        return strict
    return dataclasses.replace(again, rounded_operands=True)


def perturbed(tensors, generator):
    """The tensors in double, each element off by one rounding to float32."""
    import torch

    moved = []
    for tensor in tensors:
        sign = torch.randint(0, 2, tensor.shape, generator=generator,
                             device=tensor.device).double() * 2 - 1
        moved.append(tensor.double() * (1 + _ROUNDING * sign))
    return moved


def judge_by_conditioning(strict, output, reference, torch_output, moved):
    """The second chance of a verdict that is not ok. `moved` holds the exact
    outputs, in double, for inputs as perturbed() makes them."""
    draws = [judge(output, reference, exact.to(output.dtype))
             for exact in moved]
    mismatch = _nonfinite_mismatch(output, reference, torch_output)
    norm = max(draw.norm_torch for draw in draws)
    worst = max(draw.worst_torch for draw in draws)
    peak = float(reference.where(reference.isfinite(), 0).abs().max())
    again = _verdict(strict.norm, max(strict.norm_torch, norm), strict.worst,
                     max(strict.worst_torch, worst), mismatch, peak,
                     _EPSILON[str(output.dtype)])
    return dataclasses.replace(strict, ok=again.ok, ill_conditioned=again.ok,
                               norm_conditioning=norm,
                               worst_conditioning=worst)


def _verdict(norm, norm_torch, worst, worst_torch, mismatch, peak, epsilon):
    why = ""
    if mismatch:
        why = f"{mismatch} elements differ in being NaN or infinite"
    elif norm > NORM_FACTOR * norm_torch + epsilon:
        why = f"norm error {norm:.3g}, PyTorch's {norm_torch:.3g}"
    elif worst > WORST_FACTOR * worst_torch + epsilon * max(peak, 1e-30):
        why = f"worst error {worst:.3g}, PyTorch's {worst_torch:.3g}"
    return Verdict(not why, why, norm, norm_torch, worst, worst_torch)


def _nonfinite_mismatch(output, reference, torch_output):
    """Elements whose kind (finite, NaN, +inf, -inf) is neither that of the
    rounded reference nor that of PyTorch, whose f32 may overflow earlier."""
    def kinds(tensor):
        return (tensor.isnan().byte() + 2 * tensor.isposinf().byte() +
                4 * tensor.isneginf().byte())
    mine = kinds(output)
    return int(((mine != kinds(reference.to(output.dtype))) &
                (mine != kinds(torch_output))).sum())
