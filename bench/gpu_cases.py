"""The plans that the GPU checks run, and inputs for them."""

import dataclasses
import math
import re
import zlib

import gpu_daemon
import gpu_templates
import case_list
from kiln import plan_text


@dataclasses.dataclass
class Case:
    name: str  # "tiny/relu_f32_2x4x6x5"
    text: str
    golden: case_list.Case | None = None  # with special values
    # Of inputs that are images, in turns.
    row_deviations: tuple = ()
    image_deviations: tuple = ()

    @property
    def set(self):
        return self.name.split("/")[0]


def golden_cases():
    """The cases of tests/goldens, special values and NaNs included."""
    return [Case(f"golden/{case.name}", case.plan, case)
            for case in case_list.read_all()]


def matrix_cases():
    """The shape sets and random plans that the bundle carries."""
    cases = []
    for path in sorted((gpu_daemon.BUNDLE / "plans").glob("*.plan")):
        for block in re.split(r"^== *", path.read_text(), flags=re.M)[1:]:
            name, text = block.split("\n", 1)
            cases.append(Case(name.strip(), text))
    return cases


def has_convolution(text):
    """Whether a plan has operands that the grade may round."""
    return re.search(r"= conv(_transpose)?2d\(", text) is not None


def elements(plan):
    """Elements of the largest input."""
    return max((math.prod(i.dims) for i in plan.inputs), default=0)


def inputs(case, plan, seed, torch):
    """Tensors for a plan on the GPU. Fresh for each seed, except that golden
    cases keep their values."""
    import torch_plan

    generator = torch.Generator("cuda")
    generator.manual_seed(seed + zlib.crc32(case.name.encode()))
    tensors = []
    for declared in plan.inputs:
        dtype = torch_plan.DTYPES[declared.dtype]
        dims = tuple(declared.dims)
        if case.golden is not None:
            values = case_list.fill(case.golden, declared.name,
                                    math.prod(dims))
            tensor = torch.tensor(values, dtype=torch.float64)
            tensors.append(tensor.reshape(dims).cuda().to(dtype))
            continue
        if case.set == "large":  # in float32 it would take twice the memory
            tensors.append(torch.randn(dims, generator=generator,
                                       device="cuda", dtype=dtype))
            continue
        tensor = torch.randn(dims, generator=generator, device="cuda")
        if declared.is_parameter and len(dims) == 4:
            # Sums of products stay near 1, as in trained networks.
            tensor /= math.sqrt(math.prod(dims[1:]))
        elif len(dims) == 4:
            _deviate(tensor, 0, case.image_deviations, torch)
            _deviate(tensor, 2, case.row_deviations, torch)
        if "var" in declared.name:
            tensor = tensor.abs() + 0.5
        tensors.append(tensor.to(dtype))
    return tensors


def _deviate(tensor, dim, deviations, torch):
    """Multiplies slices along `dim` by `deviations`, in turns."""
    if not deviations:
        return
    extent = tensor.shape[dim]
    factors = torch.tensor(deviations * (extent // len(deviations)),
                           device="cuda")
    tensor *= factors.reshape([extent if i == dim else 1 for i in range(4)])


def template_cases():
    """Small plans that run every kernel template."""
    return [Case(f"template/{name}", text,
                 row_deviations=gpu_templates.ROW_DEVIATIONS.get(name, ()),
                 image_deviations=gpu_templates.IMAGE_DEVIATIONS.get(name, ()))
            for name, text in gpu_templates.PLANS.items()]


def scale_cases():
    """Convolutions whose operands need another scale from tile to tile, or from
    image to image."""
    return [case for case in template_cases()
            if case.row_deviations or case.image_deviations]


def statistics_cases():
    """Norms over inputs far from zero, where naive variances cancel."""
    text = ("input x: f32[2,8,64,64]\ny = group_norm(x, num_groups=4)\n"
            "output y\n")
    return [Case(f"statistics/group_norm_mean_{mean}", text,
                 case_list.Case(f"mean_{mean}", text,
                                {"x": f"normal({mean}, 1)"}))
            for mean in (0, 35, 346, 3000)]


def large_case():
    """One f16 plan above 2^31 elements."""
    return Case("large/relu_f16_2pow31", "input x: f16[3,1024,1024,700]\n"
                "y = relu(x)\noutput y\n")


def read_plan(case):
    return plan_text.parse(case.text)
