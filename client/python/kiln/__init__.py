"""The Python client of Kiln: fused GPU kernels for your exact shapes.

    import kiln
    client = kiln.connect()
    compiled = client.compile('''
        input x: f32[112,64,512,512]
        param weight: f32[64]
        param bias: f32[64]
        y = group_norm(x, weight, bias, num_groups=8)
        output y
    ''', target="h100-sxm")
    kernel = kiln.TorchKernel(compiled)      # in this process's context
    (y,) = kernel(x, weight, bias)           # on PyTorch's current stream

`kiln.connect` needs grpcio and protobuf; launching needs PyTorch and
cuda-bindings, which are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {"Client": "client", "CompiledPlan": "client", "connect": "client",
         "KilnError": "errors", "PlanError": "errors", "Session": "session",
         "TieredKernel": "tiered_kernel", "TorchKernel": "torch_kernel"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    # Imported on first use, so that kiln.plan_text needs no gRPC.
    if name not in _HOME:
        raise AttributeError(f"module 'kiln' has no attribute {name!r}")
    return getattr(importlib.import_module(f"kiln.{_HOME[name]}"), name)
