"""Writes plan text by chaining ops on images, as PyTorch code does.

    x = Chain("f32", 32, 3, 224, 224)
    text = x.conv(64, 7, stride=2, padding=3).relu().max_pool(2).text()

Weights and norm parameters are made on the way. Each op returns a new chain of
the same plan, so a value may be used twice: y = x.conv(64, 3, padding=1);
y.relu().add(y).
"""

_UNARY = frozenset((
    "relu", "gelu", "tanh", "sigmoid", "silu", "hardswish", "hardsigmoid",
    "mish", "abs", "neg", "exp", "sqrt", "softplus", "elu", "leaky_relu"))


class Chain:
    """A value of a plan: [n, c, h, w], or after a reduction a part of it."""

    def __init__(self, dtype, *dims, plan=None, name="x"):
        self.dtype, self.dims, self.name = dtype, dims, name
        self._plan = plan
        if plan is None:
            self._plan = {"inputs": [], "ops": []}
            self._declare("input", name, dims)

    def text(self):
        return "\n".join([*self._plan["inputs"], *self._plan["ops"],
                          f"output {self.name}", ""])

    def input(self, *dims):
        """Another activation; of the same shape unless `dims` are given."""
        name = f"x{len(self._plan['inputs'])}"
        self._declare("input", name, dims or self.dims)
        return self._of(name, dims or self.dims)

    def param(self, *dims):
        name = f"p{len(self._plan['inputs'])}"
        self._declare("param", name, dims)
        return self._of(name, dims)

    def conv(self, channels, kernel, stride=1, padding=0, groups=1, dilation=1,
             bias=True):
        n, c, h, w = self.dims
        weight = self.param(channels, c // groups, kernel, kernel)
        reach = dilation * (kernel - 1) + 1
        dims = (n, channels, (h + 2 * padding - reach) // stride + 1,
                (w + 2 * padding - reach) // stride + 1)
        return self._op("conv2d", dims, [weight] + self._bias(channels, bias),
                        stride=stride, padding=padding, groups=groups,
                        dilation=dilation)

    def conv_signal(self, channels, taps, dilation=1):
        """Of an image of one row, which stays as long."""
        n, c, _, length = self.dims
        weight = self.param(channels, c, 1, taps)
        return self._op("conv2d", (n, channels, 1, length),
                        [weight] + self._bias(channels, True),
                        padding=[0, dilation * (taps - 1) // 2],
                        dilation=[1, dilation])

    def depthwise_signal(self, taps):
        """The same, each channel by itself."""
        n, c, _, length = self.dims
        return self._op("conv2d", (n, c, 1, length), [self.param(c, 1, 1, taps)],
                        padding=[0, (taps - 1) // 2], groups=c)

    def conv_transpose(self, channels, kernel, stride=1, padding=0, bias=True):
        n, c, h, w = self.dims
        weight = self.param(c, channels, kernel, kernel)
        dims = (n, channels, (h - 1) * stride - 2 * padding + kernel,
                (w - 1) * stride - 2 * padding + kernel)
        return self._op("conv_transpose2d", dims,
                        [weight] + self._bias(channels, bias), stride=stride,
                        padding=padding)

    def transpose_signal(self, channels, stride):
        """Of an image of one row, which becomes `stride` times as long, an even
        number."""
        n, c, _, length = self.dims
        weight = self.param(c, channels, 1, 2 * stride)
        return self._op("conv_transpose2d", (n, channels, 1, length * stride),
                        [weight] + self._bias(channels, True),
                        stride=[1, stride], padding=[0, stride // 2])

    def group_norm(self, groups):
        c = self.dims[1]
        return self._op("group_norm", self.dims, [self.param(c), self.param(c)],
                        num_groups=groups)

    def batch_norm(self):
        c = self.dims[1]
        mean = self.param(c)
        variance = self._of(f"var{len(self._plan['inputs'])}", (c,))
        self._declare("param", variance.name, (c,))
        return self._op("batch_norm", self.dims,
                        [mean, variance, self.param(c), self.param(c)])

    def max_pool(self, kernel, stride=None, padding=0):
        return self._pool("max_pool2d", kernel, stride, padding)

    def avg_pool(self, kernel, stride=None, padding=0):
        return self._pool("avg_pool2d", kernel, stride, padding)

    def reduce(self, kind, dim, keepdim=True):
        """`kind`: "sum", "mean", "amax", "amin" or "logsumexp"."""
        over = [dim] if isinstance(dim, int) else dim
        dims = tuple(1 if i in over else d for i, d in enumerate(self.dims))
        if not keepdim:
            dims = tuple(d for i, d in enumerate(self.dims) if i not in over)
        return self._op(kind, dims, [], dim=dim, keepdim=keepdim)

    def softmax(self, dim):
        return self._op("softmax", self.dims, [], dim=dim)

    def clamp(self, low, high):
        return self._op("clamp", self.dims, [], min=low, max=high)

    def binary(self, kind, other):
        """With another chain of the plan, or a number."""
        return self._op(kind, self.dims, [other])

    def add(self, other):
        return self.binary("add", other)

    def mul(self, other):
        return self.binary("mul", other)

    def __getattr__(self, kind):
        if kind not in _UNARY:
            raise AttributeError(kind)
        return lambda: self._op(kind, self.dims, [])

    def _pool(self, kind, kernel, stride, padding):
        n, c, h, w = self.dims
        stride = stride or kernel
        dims = (n, c, (h + 2 * padding - kernel) // stride + 1,
                (w + 2 * padding - kernel) // stride + 1)
        return self._op(kind, dims, [], kernel_size=kernel, stride=stride,
                        padding=padding)

    def _bias(self, channels, wanted):
        return [self.param(channels)] if wanted else []

    def _declare(self, keyword, name, dims):
        sizes = ",".join(str(dim) for dim in dims)
        self._plan["inputs"].append(f"{keyword} {name}: {self.dtype}[{sizes}]")

    def _op(self, kind, dims, others, **attributes):
        name = f"v{len(self._plan['ops'])}"
        operands = [self.name] + [
            other.name if isinstance(other, Chain) else str(float(other))
            for other in others]
        given = [f"{key}={str(value).lower()}"
                 for key, value in attributes.items()]
        self._plan["ops"].append(
            f"{name} = {kind}({', '.join(operands + given)})")
        return self._of(name, dims)

    def _of(self, name, dims):
        return Chain(self.dtype, *dims, plan=self._plan, name=name)
