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

from kiln.client import Client, CompiledPlan, connect
from kiln.errors import KilnError
from kiln.session import Session
from kiln.torch_kernel import TorchKernel

__all__ = ["Client", "CompiledPlan", "KilnError", "Session", "TorchKernel",
           "connect"]
