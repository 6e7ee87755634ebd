"""Plans at random, at the sizes of networks, as nobody would write them down:
what the rows of generality_rows.py, which people have chosen, do not have.

    text = random_plans.text(17)   # of a seed; None: nothing came of it

A seed means the same plan on every machine.
"""

import math
import random

from plan_chain import Chain

_CHANNELS = (3, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128,
             144, 160, 192, 224, 240, 256, 320, 384, 480, 512, 640, 768, 960,
             1024, 1280)
_EXTENTS = (7, 8, 10, 13, 14, 15, 16, 19, 20, 24, 28, 30, 32, 35, 38, 40, 48,
            50, 56, 60, 64, 72, 75, 80, 96, 100, 112, 128, 147, 160, 192, 200,
            224, 256, 320, 384, 512)
# Of images deep in a network, and what is computed there.
_DEEP_CHANNELS = (100, 128, 160, 192, 224, 240, 256, 320, 384, 480, 500, 512,
                  640, 768, 960, 1024, 1280, 2048)
_DEEP_RESULTS = (8, 16, 20, 24, 32, 40, 48, 56, 64, 64, 72, 96, 100, 128, 128,
                 160, 192, 256, 320)
_DEEP_EXTENTS = (4, 5, 7, 7, 8, 9, 10, 12, 13, 14, 15, 16, 20, 24, 28, 30, 31)
_UNARY = ("relu", "gelu", "tanh", "sigmoid", "silu", "hardswish",
          "hardsigmoid", "mish", "softplus", "elu", "leaky_relu", "abs", "neg")
_REDUCTIONS = ("logsumexp", "mean", "amax", "amin", "sum")
_TYPES = ("f32", "f32", "f32", "f16", "bf16")

# Beyond these a plan in double takes too long, or too much memory; below, all
# that is measured is a launch.
_MOST_ELEMENTS = 40_000_000
_FEWEST_ELEMENTS = 30_000
_MOST_FLOPS = 50e9


class _DoesNotFit(Exception):
    """No plan comes of these draws."""


def text(seed):
    """The text of a plan, or None."""
    try:
        chain = _Draws(seed).plan()
    except _DoesNotFit:
        return None
    return chain.text()


def seeds_of_plans(first, count):
    """The first `count` seeds from `first` on that mean a plan."""
    found, seed = [], first
    while len(found) < count:
        if text(seed) is not None:
            found.append(seed)
        seed += 1
    return found


class _Draws:

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._flops = 0

    def plan(self):
        families = ((36, self._one_convolution), (10, self._deep_convolution),
                    (14, self._two_convolutions), (8, self._separable),
                    (12, self._norm_before_convolution), (20, self._rows))
        weights, makers = zip(*families)
        return self._random.choices(makers, weights)[0]()

    # Families.

    def _one_convolution(self):
        kind = self._random.random()
        x = self._image()
        if kind < 0.2:
            conv = self._transposed(x)
        else:
            conv = self._conv(x, groups=self._some_groups if kind < 0.3
                              else None)
        return self._end(self._residual(self._norm(conv), conv))

    def _deep_convolution(self):
        x = Chain(self._one_of(_TYPES), self._one_of((1, 1, 1, 2, 2, 3, 4)),
                  self._one_of(_DEEP_CHANNELS), self._one_of(_DEEP_EXTENTS),
                  self._one_of(_DEEP_EXTENTS))
        channels = self._one_of(_DEEP_RESULTS)
        conv = (self._transposed(x, channels) if self._chance(0.15)
                else self._conv(x, channels))
        return self._end(self._residual(self._norm(conv), conv))

    def _two_convolutions(self):
        x = self._image()
        y = self._norm(self._same_conv(x, self._one_of(_CHANNELS)))
        if self._chance(0.3):
            y = self._of_images(self._end(y))
        channels = x.dims[1] if self._chance(0.5) else self._one_of(_CHANNELS)
        y = self._norm(self._same_conv(y, channels))
        if y.dims == x.dims:
            y = y.add(x)
        return self._end(y)

    def _separable(self):
        x = self._image()
        y = self._norm(self._conv(x, x.dims[1], lambda *_: x.dims[1]))
        if self._chance(0.5):
            y = self._norm(self._sized(y.conv(self._one_of(_CHANNELS), 1), 1))
        return self._end(y)

    def _norm_before_convolution(self):
        return self._end(self._norm(self._conv(self._norm(self._image()))))

    def _rows(self):
        y = self._pointwise(self._image(), 2)
        if self._chance(0.3):
            y = y.add(y.input())
        kind = self._random.random()
        if kind < 0.4:
            y = self._norm(y)
        elif kind < 0.6:
            y = y.softmax(self._one_of((1, 2, 3, 3)))
        elif kind < 0.8:
            y = self._centred(y)
        else:
            y = self._end(y)
        y = self._pointwise(y, 2)
        return self._end(y) if self._chance(0.3) else y

    # Parts.

    def _image(self):
        height = self._one_of(_EXTENTS)
        width = height if self._chance(0.7) else self._one_of(_EXTENTS)
        x = Chain(self._one_of(_TYPES),
                  self._one_of((1, 1, 2, 3, 4, 8, 8, 16, 32, 64)),
                  self._one_of(_CHANNELS), height, width)
        return self._sized(x, 0, _FEWEST_ELEMENTS)

    def _conv(self, x, channels=None, groups=None):
        """Of any kernel; `groups`: of how many, by the channels of both."""
        channels = channels or self._one_of(_CHANNELS)
        kernel = self._one_of((1, 1, 2, 3, 3, 3, 3, 4, 5, 7))
        stride = self._one_of((1, 1, 1, 2, 2, kernel))
        dilation = self._one_of((1,) * 8 + (2, 3))
        padding = self._one_of((0, (kernel - 1) // 2, (kernel - 1) // 2))
        count = groups(x.dims[1], channels) if groups else 1
        return self._sized(
            x.conv(channels, kernel, stride=stride, padding=padding * dilation,
                   groups=count, dilation=dilation, bias=self._chance(0.6)),
            x.dims[1] // count * kernel**2)

    def _same_conv(self, x, channels):
        """Whose images stay as large."""
        kernel = self._one_of((1, 3, 3, 5))
        return self._sized(
            x.conv(channels, kernel, padding=(kernel - 1) // 2,
                   bias=self._chance(0.6)), x.dims[1] * kernel**2)

    def _transposed(self, x, channels=None):
        channels = channels or self._one_of(_CHANNELS)
        kernel = self._one_of((2, 3, 4, 4, 5))
        padding = self._one_of((0, 1, (kernel - 1) // 2))
        return self._sized(
            x.conv_transpose(channels, kernel,
                             stride=self._one_of((1, 2, 2, 2, 3)),
                             padding=padding, bias=self._chance(0.6)),
            x.dims[1] * kernel**2)

    def _some_groups(self, inputs, results):
        return self._one_of([count for count in (2, 4, 8, 16, 32)
                             if inputs % count == results % count == 0] or [1])

    def _norm(self, x):
        """Perhaps, among pointwise ops."""
        x = self._pointwise(x, 2)
        if self._chance(0.65):
            channels = x.dims[1]
            counts = [count for count in (1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64,
                                          channels) if channels % count == 0]
            x = (x.batch_norm() if self._chance(0.25)
                 else x.group_norm(self._one_of(counts)))
        return self._pointwise(x, 2)

    def _residual(self, x, conv):
        """Perhaps the convolution again, or something else of its size."""
        kind = self._random.random()
        if kind < 0.1:
            return x.add(conv)
        if kind < 0.19:
            return x.add(x.input())
        return x.mul(x.input()) if kind < 0.25 else x

    def _centred(self, x):
        dims = self._one_of((1, 3, [2, 3], [1, 2, 3], [0, 2, 3]))
        x = x.binary("sub", x.reduce("mean", dims))
        if self._chance(0.7):
            variance = x.mul(x).reduce("mean", dims)
            x = x.binary("div", variance.add(1e-5).sqrt())
        return x

    def _end(self, x):
        """Perhaps a pool, a softmax or a reduction, among pointwise ops."""
        x = self._pointwise(x, 1)
        kind = self._random.random()
        if kind < 0.15 and min(x.dims[2:]) >= 4:
            kernel = self._one_of((2, 2, 3, 4))
            pool = x.max_pool if self._chance(0.6) else x.avg_pool
            x = self._sized(pool(kernel, self._one_of((kernel, kernel, 2, 1)),
                                 self._one_of((0, 0, kernel // 2))), 0)
        elif kind < 0.23:
            x = x.softmax(self._one_of((1, 1, 3)))
        elif kind < 0.37:
            x = x.reduce(self._one_of(_REDUCTIONS), 1)
        elif kind < 0.51:
            x = x.reduce(self._one_of(_REDUCTIONS), [2, 3])
        return self._pointwise(x, 1)

    def _pointwise(self, x, most):
        for _ in range(self._random.randint(0, most)):
            x = self._one_op(x)
        return x

    def _one_op(self, x):
        kind = self._random.random()
        if kind < 0.6:
            return getattr(x, self._one_of(_UNARY))()
        if kind < 0.8:
            of_channels = x.param(x.dims[1], 1, 1)
            return x.mul(of_channels) if kind < 0.7 else x.add(of_channels)
        if kind < 0.87:
            return x.mul(self._number(-2.0, 2.0))
        if kind < 0.94:
            return x.clamp(self._number(-2.0, 0.0), self._number(0.1, 3.0))
        return x.add(self._number(-1.0, 1.0))

    # Draws, and what comes of them.

    def _one_of(self, choices):
        return self._random.choice(choices)

    def _chance(self, of_one):
        return self._random.random() < of_one

    def _number(self, low, high):
        return round(self._random.uniform(low, high), 3)

    def _of_images(self, x):
        if min(x.dims[2:]) < 2:
            raise _DoesNotFit
        return x

    def _sized(self, x, products, fewest=1):
        """x, whose elements are sums of so many products each, if it is neither
        too large nor too small."""
        if min(x.dims) < 1:
            raise _DoesNotFit
        count = math.prod(x.dims)
        self._flops += 2 * count * products
        if not fewest <= count <= _MOST_ELEMENTS or self._flops > _MOST_FLOPS:
            raise _DoesNotFit
        return x
