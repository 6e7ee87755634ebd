"""Writes pytorch.golden: what PyTorch computes for every case of cases/.

    python3 tests/goldens/make_goldens.py --out tests/goldens/pytorch.golden
    python3 tests/goldens/make_goldens.py --list   # cases only, no PyTorch

Inputs are rounded to their storage types, read back exactly into f64, and all
arithmetic is PyTorch's own in f64 on the CPU. Format: README.md.
"""

import argparse
import array
import math
import pathlib
import struct
import sys

_ROOT = pathlib.Path(__file__).parents[2]
sys.path += [str(_ROOT / "bench"), str(_ROOT / "client" / "python")]

import case_list
from kiln import plan_text

MAGIC = b"KILNGOLD"
VERSION = 1
SCRIPT = "tests/goldens/make_goldens.py"


def counted(data):
    """Bytes or text behind its length as u64."""
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("<Q", len(data)) + data


def little_endian(values, code):
    result = array.array(code, values)
    if sys.byteorder == "big":
        result.byteswap()
    return result.tobytes()


def evaluate(case):
    """The bytes of the inputs and of the f64 outputs of one case."""
    import torch
    import torch_plan

    plan = plan_text.parse(case.plan)
    tensors, stored = [], []
    for declared in plan.inputs:
        values = case_list.fill(case, declared.name,
                                math.prod(declared.dims))
        tensor = torch.tensor(values, dtype=torch.float64)
        tensor = tensor.to(torch_plan.DTYPES[declared.dtype])
        stored.append(bytes(tensor.view(torch.uint8).tolist()))
        tensors.append(tensor.reshape(declared.dims))
    outputs = torch_plan.evaluate(plan, tensors, torch.float64)
    results = []
    for output in outputs:
        if output.dtype != torch.float64:
            raise TypeError(f"{case.name}: an output is {output.dtype}")
        results.append(little_endian(output.reshape(-1).tolist(), "d"))
    return stored, results


def write(path, cases):
    """The whole file; deterministic for one version of PyTorch."""
    import torch

    torch.set_num_threads(1)
    parts = [MAGIC, struct.pack("<I", VERSION), counted(SCRIPT),
             counted(torch.__version__), struct.pack("<Q", len(cases))]
    failed = 0
    for case in cases:
        try:
            stored, results = evaluate(case)
        except Exception as error:  # one bad case must not hide the others
            print(f"{case.name}: {type(error).__name__}: {error}")
            failed += 1
            continue
        parts += [counted(case.name), counted(case.plan)]
        for blobs in (stored, results):
            parts.append(struct.pack("<Q", len(blobs)))
            parts += [counted(blob) for blob in blobs]
    if failed:
        sys.exit(f"{failed} of {len(cases)} cases failed; nothing is written.")
    data = b"".join(parts)
    pathlib.Path(path).write_bytes(data)
    print(f"{path}: {len(cases)} cases, {len(data)} bytes, "
          f"torch {torch.__version__}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", help="the file to write")
    parser.add_argument("--list", action="store_true",
                        help="print every case's plan text instead")
    arguments = parser.parse_args()
    cases = case_list.read_all()
    if arguments.list:
        for case in cases:
            plan_text.parse(case.plan)
            print(f"== {case.name}\n{case.plan}")
    elif arguments.out:
        write(arguments.out, cases)
    else:
        parser.error("--out or --list is needed")


if __name__ == "__main__":
    main()
