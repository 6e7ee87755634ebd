"""The plans of bench/generality.py: what users do beyond the four chains.

Each row is the last value of a plan. Names say what is special; sizes are such
that eager takes 0.02 to 5 ms on an H100.

Longer than 400 lines because one table has all rows.
"""

from plan_chain import Chain


def _residual(x, channels):
    """The input, projected, beside a convolution and its norm."""
    branch = x.conv(channels, 3, padding=1).group_norm(8)
    return branch.add(x.conv(channels, 1)).relu()


def _gate(x):
    return x.silu().mul(x.input())


def _conv_residual(x, channels, groups):
    """P2's body: the convolution is added again behind its norm."""
    conv = x.conv(channels, 3)
    return conv.group_norm(groups).tanh().hardswish().add(conv)


def _scaled(x):
    return x.mul(x.param(x.dims[1], 1, 1))


def _diffusion(x, groups):
    """The residual block of a diffusion model: norms before convolutions."""
    channels = x.dims[1]
    inner = x.group_norm(groups).silu().conv(channels, 3, padding=1)
    return inner.group_norm(groups).silu().conv(channels, 3, padding=1).add(x)


def _bottleneck(x, channels):
    inner = x.conv(channels, 1, bias=False).batch_norm().relu()
    inner = inner.conv(channels, 3, padding=1, bias=False).batch_norm().relu()
    return inner.conv(x.dims[1], 1, bias=False).batch_norm().add(x).relu()


def _layer_norm(x, dim):
    """Written by hand, over one dimension."""
    centred = x.binary("sub", x.reduce("mean", dim))
    variance = centred.mul(centred).reduce("mean", dim)
    return centred.binary("div", variance.add(1e-5).sqrt())


def _mish(x):
    """As it is written by hand."""
    return x.mul(x.softplus().tanh())


def _affine(x, *dims):
    return x.mul(x.param(*dims)).add(x.param(*dims))


def _rms_norm(x):
    squares = x.mul(x).reduce("mean", 3)
    return x.binary("div", squares.add(1e-6).sqrt()).mul(x.param(x.dims[3]))


def _batch_norm_training(x):
    """By the batch's own statistics."""
    channels = x.dims[1]
    centred = x.binary("sub", x.reduce("mean", [0, 2, 3]))
    variance = centred.mul(centred).reduce("mean", [0, 2, 3])
    return _affine(centred.binary("div", variance.add(1e-5).sqrt()),
                   channels, 1, 1)


def _dice(x, y):
    """Overlap of what is predicted with what is there, of each image."""
    share = x.sigmoid()
    both = share.mul(y).reduce("sum", [2, 3]).mul(2.0)
    either = share.reduce("sum", [2, 3]).add(y.reduce("sum", [2, 3]))
    return both.binary("div", either.add(1.0))


def _cosine(x, y, dim):
    lengths = x.mul(x).reduce("sum", dim).mul(y.mul(y).reduce("sum", dim))
    return x.mul(y).reduce("sum", dim).binary("div", lengths.sqrt())


def _pooled(x, channels, groups, pool):
    """P3."""
    normed = x.conv(channels, 3).group_norm(groups)
    return _scaled(normed).max_pool(pool).clamp(0, 1)


def _transposed(x, groups):
    """P4."""
    return x.conv_transpose(x.dims[1], 3).gelu().group_norm(groups)


def _mlp(x, wide):
    """Of a transformer, whose tokens are pixels."""
    return x.conv(wide, 1).gelu().conv(x.dims[1], 1).add(x)


def _double_conv(x, channels):
    inner = x.conv(channels, 3, padding=1).group_norm(8).silu()
    return inner.conv(channels, 3, padding=1).group_norm(8).silu()


def _excited(x, squeezed):
    """Channels weighted by what the whole image has of them."""
    channels = x.dims[1]
    weights = x.reduce("mean", [2, 3]).conv(squeezed, 1).silu()
    return x.mul(weights.conv(channels, 1).sigmoid())


def _channel_norm(x):
    """A layer norm over channels, as ConvNeXt has it."""
    channels = x.dims[1]
    return _affine(_layer_norm(x, 1), channels, 1, 1)


def _convnext(x):
    channels = x.dims[1]
    inner = x.conv(channels, 7, padding=3, groups=channels)
    inner = _channel_norm(inner).conv(4 * channels, 1).gelu()
    return inner.conv(channels, 1).mul(x.param(channels, 1, 1)).add(x)


def _norm_mlp(x, wide):
    inner = _channel_norm(x).conv(wide, 1).gelu()
    return inner.conv(x.dims[1], 1).add(x)


def _mobile(x):
    """An inverted bottleneck with squeeze and excitation."""
    channels = x.dims[1]
    wide = 6 * channels
    inner = x.conv(wide, 1, bias=False).batch_norm().silu()
    inner = inner.conv(wide, 5, padding=2, groups=wide, bias=False)
    inner = _excited(inner.batch_norm().silu(), channels // 4)
    return inner.conv(channels, 1, bias=False).batch_norm().add(x)


def _spatial_attention(x):
    """Pixels weighted by what all channels have there."""
    mean = x.reduce("mean", 1).conv(1, 7, padding=3, bias=False)
    most = x.reduce("amax", 1).conv(1, 7, padding=3, bias=False)
    return x.mul(mean.add(most).sigmoid())


def _gated(x):
    n, channels = x.dims[:2]
    return x.mul(x.input(n, channels, 1, 1).sigmoid())


ROWS = {
    # Norms and what stands before and after them.
    "norm_channels_3": Chain("f32", 32, 3, 512, 512).group_norm(3),
    "norm_batch_1": Chain("f32", 1, 64, 512, 512).group_norm(8).relu(),
    "norm_channels_512": Chain("f32", 32, 512, 28, 28).group_norm(32).silu(),
    "norm_instance": Chain("f32", 16, 32, 200, 200).group_norm(32),
    "norm_layer": Chain("f32", 64, 128, 56, 56).group_norm(1).gelu(),
    "norm_odd_image": Chain("f32", 16, 48, 127, 129).group_norm(6).relu(),
    "norm_f16": Chain("f16", 32, 64, 256, 256).group_norm(8).silu(),
    "norm_bf16_diffusion": Chain("bf16", 8, 320, 64, 64).group_norm(32).silu(),
    "norm_after_mish": Chain("f32", 32, 64, 128, 128).mish().group_norm(8),
    "norm_twice":
        Chain("f32", 32, 64, 96, 96).group_norm(8).relu().group_norm(4),
    "norm_of_residual": (lambda x: x.add(x.input()).group_norm(8).relu())(
        Chain("f32", 16, 64, 128, 128)),
    "norm_mean_of_image":
        Chain("f32", 32, 256, 56, 56).group_norm(32).silu().reduce(
            "mean", [2, 3]),
    "batch_norm_residual": (lambda x: x.batch_norm().add(x.input()).relu())(
        Chain("f32", 32, 256, 56, 56)),
    # Several reductions of the same rows.
    "hand_layer_norm_channels": _affine(
        _layer_norm(Chain("f32", 32, 96, 56, 56), 1), 96, 1, 1),
    "hand_layer_norm_bf16": (lambda x: _affine(
        _layer_norm(x.add(x.input()), 3), 768))(
            Chain("bf16", 16, 1024, 1, 768)),
    "hand_cosine": (lambda x: _cosine(x, x.input(), 3))(
        Chain("f32", 64, 1024, 1, 256)),
    "rms_norm_bf16": _rms_norm(Chain("bf16", 1, 1, 8192, 4096)),
    "batch_norm_training_f16": _batch_norm_training(
        Chain("f16", 64, 128, 28, 28)).relu(),
    "batch_norm_training_f16_7x7": _batch_norm_training(
        Chain("f16", 64, 512, 7, 7)).relu(),
    "batch_norm_training_f32": _batch_norm_training(
        Chain("f32", 32, 64, 112, 112)).relu(),
    "dice_of_images": (lambda x: _dice(x, x.input()))(
        Chain("f32", 16, 4, 256, 256)),
    # Without a norm or a convolution.
    "pointwise_gate_f16": _gate(Chain("f16", 32, 64, 128, 128)),
    "pointwise_long": (lambda x: x.softplus().tanh().mul(x).add(1.0).elu()
                       .mul(0.5))(Chain("f32", 32, 64, 128, 128)),
    "pointwise_per_channel": _scaled(Chain("f32", 16, 96, 112, 112)).sigmoid(),
    "softmax_channels": Chain("f32", 16, 64, 128, 128).softmax(1),
    "softmax_rows_bf16": Chain("bf16", 8, 16, 512, 512).mul(0.125).softmax(3),
    "softmax_masked_bf16": (lambda x: x.mul(0.125).add(
        x.input(1, 1, 1024, 1024)).softmax(3))(
            Chain("bf16", 4, 16, 1024, 1024)),
    "logsumexp_rows": Chain("f32", 32, 16, 256, 512).reduce("logsumexp", 3),
    # So short that a warp has many of them.
    "softmax_rows_of_10": Chain("f32", 8, 512, 256, 10).softmax(3),
    "logsumexp_rows_of_10_f16": Chain("f16", 8, 512, 256, 10).reduce(
        "logsumexp", 3),
    "avg_pool_odd_width": Chain("f32", 8, 288, 35, 35).avg_pool(3, 1, 1),
    "amin_channels": Chain("f32", 32, 64, 128, 128).abs().reduce("amin", 1),
    # Convolutions by kernel, stride, groups.
    "conv_stem_k7_s2": Chain("f32", 32, 3, 224, 224).conv(
        64, 7, stride=2, padding=3, bias=False).batch_norm().relu().max_pool(
            3, stride=2, padding=1),
    "conv_f16_stem_k7_s2": Chain("f16", 32, 3, 224, 224).conv(
        64, 7, stride=2, padding=3, bias=False).batch_norm().relu(),
    "conv_stem_group_norm": Chain("f32", 32, 3, 224, 224).conv(
        64, 7, stride=2, padding=3, bias=False).group_norm(32).relu().max_pool(
            3, stride=2, padding=1),
    "conv_f16_vgg_pool": Chain("f16", 16, 64, 224, 224).conv(
        64, 3, padding=1).relu().max_pool(2),
    "conv_k1_residual": (lambda x: x.conv(256, 1, bias=False).batch_norm()
                         .add(x.input(32, 256, 56, 56)).relu())(
        Chain("f32", 32, 64, 56, 56)),
    "conv_k3_resnet": Chain("f32", 32, 64, 56, 56).conv(
        64, 3, padding=1, bias=False).batch_norm().relu(),
    "conv_k3_unet": Chain("f32", 4, 128, 64, 64).conv(
        128, 3, padding=1).group_norm(32).silu(),
    "conv_k5": Chain("f32", 32, 16, 112, 112).conv(
        32, 5, padding=2).hardswish(),
    "conv_k2_s2_patches": Chain("f32", 16, 64, 112, 112).conv(
        128, 2, stride=2).group_norm(1),
    "conv_k4_s4_patches_bf16": Chain("bf16", 32, 3, 224, 224).conv(
        96, 4, stride=4).group_norm(1),
    "conv_s2": Chain("f32", 32, 32, 112, 112).conv(
        64, 3, stride=2, padding=1).group_norm(8).relu(),
    "conv_dilated": Chain("f32", 8, 32, 128, 128).conv(
        32, 3, padding=2, dilation=2).elu(),
    "conv_grouped": Chain("f32", 32, 64, 56, 56).conv(
        64, 3, padding=1, groups=4).batch_norm().relu(),
    "depthwise_k3": Chain("f32", 32, 96, 112, 112).conv(
        96, 3, padding=1, groups=96, bias=False).batch_norm().clamp(0, 6),
    "depthwise_k7_convnext": Chain("f32", 32, 96, 56, 56).conv(
        96, 7, padding=3, groups=96).group_norm(1),
    "conv_k1_channels_512": Chain("f32", 32, 512, 14, 14).conv(512, 1).relu(),
    "conv_batch_1": Chain("f32", 1, 64, 256, 256).conv(
        64, 3, padding=1).group_norm(8).silu(),
    "conv_odd_image": Chain("f32", 16, 24, 97, 131).conv(
        40, 3, padding=1).group_norm(8).leaky_relu().avg_pool(2),
    "conv_small_image": Chain("f32", 128, 256, 7, 7).conv(
        256, 3, padding=1).group_norm(8).relu(),
    "conv_no_norm": Chain("f32", 128, 8, 128, 128).conv(64, 3).relu(),
    "conv_hand_mish": _mish(Chain("f32", 16, 64, 128, 128).conv(
        128, 3)).batch_norm(),
    "conv_f16": Chain("f16", 32, 64, 64, 64).conv(
        64, 3, padding=1).group_norm(8).silu(),
    # Groups that blocks of 64 channels cut.
    "conv_f16_groups_of_20": Chain("f16", 4, 640, 32, 32).conv(
        640, 3, padding=1).group_norm(32).silu(),
    "conv_f16_groups_of_40": Chain("f16", 4, 1280, 16, 16).conv(
        1280, 3, padding=1).group_norm(32).silu(),
    # Images so narrow that their halo counts, and signals.
    "conv_f16_image_32": Chain("f16", 16, 512, 32, 32).conv(
        512, 3, padding=1).leaky_relu(),
    "transpose_f16_k4_s2": Chain("f16", 64, 512, 8, 8).conv_transpose(
        256, 4, stride=2, padding=1, bias=False).batch_norm().relu(),
    "signal_k3": Chain("f32", 8, 64, 1, 32768).conv_signal(64, 3).leaky_relu(),
    "signal_f16_k7_d3": Chain("f16", 8, 256, 1, 8192).conv_signal(
        256, 7, dilation=3).leaky_relu(),
    "signal_f16_norm": Chain("f16", 8, 64, 1, 32768).conv_signal(
        64, 3).group_norm(8).silu(),
    # As vocoders make sound of features.
    "vocoder_f16_upsample_8": Chain("f16", 16, 256, 1, 1024).leaky_relu()
    .transpose_signal(128, 8),
    "vocoder_f32_upsample_8": Chain("f32", 16, 256, 1, 1024).leaky_relu()
    .transpose_signal(128, 8),
    # As models of speech have it.
    "speech_f16_k63": Chain("f16", 16, 512, 1, 1000).depthwise_signal(63).conv(
        512, 1, bias=False).batch_norm().relu(),
    # Linear layers of rows: of a recommender, of a field of radiance, of a
    # language model that makes eight texts, and with what may follow.
    "recommender_f16_mlp": Chain("f16", 8192, 512, 1, 1).conv(
        256, 1).relu().conv(64, 1).relu(),
    "radiance_f32_mlp": Chain("f32", 65536, 64, 1, 1).conv(128, 1).relu().conv(
        128, 1).relu().conv(3, 1).sigmoid(),
    "language_f16_down_8": (lambda x: x.conv(4096, 1, bias=False).add(
        x.input(8, 4096, 1, 1)))(Chain("f16", 8, 11008, 1, 1)),
    "linear_f32_norm": Chain("f32", 1024, 8192, 1, 1).conv(1024, 1).group_norm(
        16).clamp(-2, 2),
    # Of one or two images deep in a network: few tiles, of many channels.
    "deep_f16_resnet_batch_1": Chain("f16", 1, 512, 7, 7).conv(
        512, 3, padding=1, bias=False).batch_norm().relu(),
    "deep_f16_diffusion_batch_2": Chain("f16", 2, 1280, 8, 8).conv(
        1280, 3, padding=1).group_norm(32).silu(),
    "deep_f16_aspp_batch_1": Chain("f16", 1, 2048, 33, 33).conv(
        256, 3, padding=12, dilation=12, bias=False).batch_norm().relu(),
    "deep_f32_detector_batch_1": Chain("f32", 1, 512, 20, 20).conv(
        256, 3, padding=1, bias=False).batch_norm().silu(),
    "deep_f32_pyramid_batch_1": Chain("f32", 1, 2048, 25, 25).conv(256, 1),
    # Cheap convolutions in front of a norm, and others.
    "conv_f16_k1_norm": Chain("f16", 32, 64, 56, 56).conv(
        256, 1).group_norm(32).relu(),
    "conv_k3_norm_relu": Chain("f32", 128, 8, 128, 128).conv(
        64, 3).group_norm(16).relu(),
    "conv_bf16_k1": Chain("bf16", 16, 128, 64, 64).conv(128, 1).gelu(),
    "conv_projected_residual": _residual(Chain("f32", 16, 32, 96, 96), 64),
    "conv_f16_k1_1024": Chain("f16", 8, 1024, 28, 28).conv(1024, 1).relu(),
    "conv_f16_k16_patches": Chain("f16", 32, 3, 224, 224).conv(
        768, 16, stride=16),
    "conv_aspp_d12": Chain("f32", 8, 256, 64, 64).conv(
        256, 3, padding=12, dilation=12, bias=False).batch_norm().relu(),
    # Several convolutions.
    "conv_f16_diffusion": _diffusion(Chain("f16", 2, 320, 64, 64), 32),
    "conv_f16_bottleneck": _bottleneck(Chain("f16", 32, 256, 56, 56), 64),
    # Chains that end in a reduction or a pool.
    "end_logsumexp_batch_4":
        _conv_residual(Chain("f32", 4, 8, 128, 128), 64, 16).reduce(
            "logsumexp", 1),
    "end_logsumexp_32_channels":
        _conv_residual(Chain("f32", 64, 3, 128, 128), 32, 8).reduce(
            "logsumexp", 1),
    "end_softmax": _conv_residual(Chain("f32", 16, 8, 128, 128), 64,
                                  16).softmax(1),
    "end_sum": Chain("f32", 64, 8, 128, 128).conv(64, 3).tanh().reduce(
        "sum", [2, 3]),
    "end_mean_channels": Chain("f32", 64, 16, 96, 96).conv(
        64, 3).group_norm(8).reduce("mean", 1),
    "end_amax_channels": Chain("f32", 64, 16, 96, 96).conv(
        48, 3).relu().reduce("amax", 1),
    "end_amin_channels": Chain("f32", 32, 16, 96, 96).conv(
        64, 5).reduce("amin", 1).tanh(),
    "end_max_pool_batch_1": _scaled(Chain("f32", 1, 8, 512, 512).conv(
        64, 3).group_norm(16)).max_pool(2).clamp(0, 1),
    "end_avg_pool_sigmoid": _scaled(Chain("f32", 64, 8, 128, 128).conv(
        64, 3).group_norm(16)).avg_pool(4).sigmoid(),
    # P2 to P4 in 16 bits, of more and fewer channels, of one image.
    "p2_f16": _conv_residual(Chain("f16", 128, 8, 128, 128), 64, 16).reduce(
        "logsumexp", 1),
    "p2_bf16_batch_1": _conv_residual(Chain("bf16", 1, 8, 512, 512), 64,
                                      16).reduce("logsumexp", 1),
    "p2_channels_128": _conv_residual(Chain("f32", 32, 32, 64, 64), 128,
                                      16).reduce("logsumexp", 1),
    "p3_f16": _pooled(Chain("f16", 128, 8, 128, 128), 64, 16, 4),
    "p3_batch_1": _pooled(Chain("f32", 1, 16, 512, 512), 64, 8, 4),
    "p3_channels_128": _pooled(Chain("f32", 32, 64, 64, 64), 128, 16, 2),
    "p4_bf16": _transposed(Chain("bf16", 32, 64, 256, 256), 8),
    "p4_batch_1": _transposed(Chain("f32", 1, 64, 256, 256), 8),
    "p4_channels_32": _transposed(Chain("f32", 16, 32, 128, 128), 4),
    "p4_channels_128_f16": _transposed(Chain("f16", 8, 128, 64, 64), 8),
    # Networks in 16 bits: decoders of diffusion models, super-resolution,
    # adversarial pairs, residual networks, transformers.
    "decoder_f16_conv_norm": Chain("f16", 1, 256, 256, 256).conv(
        256, 3, padding=1).group_norm(32).silu(),
    "decoder_f16_norm_conv": (lambda x: x.group_norm(32).silu().conv(
        128, 3, padding=1).add(x))(Chain("f16", 1, 128, 512, 512)),
    "decoder_f16_last": Chain("f16", 1, 128, 512, 512).group_norm(32).silu()
        .conv(3, 3, padding=1),
    "super_resolution_f16": (lambda x: x.conv(64, 3, padding=1).relu().conv(
        64, 3, padding=1).mul(0.1).add(x))(Chain("f16", 4, 64, 256, 256)),
    "unet_f16_double": _double_conv(Chain("f16", 8, 64, 128, 128), 64),
    "discriminator_f16": Chain("f16", 32, 64, 128, 128).conv(
        128, 4, stride=2, padding=1).group_norm(128).leaky_relu(),
    "generator_f16": Chain("f16", 16, 256, 64, 64).conv_transpose(
        128, 4, stride=2, padding=1).group_norm(128).relu(),
    "resnet_f16_expand": (lambda x: x.conv(1024, 1, bias=False).batch_norm()
                          .add(x.input(32, 1024, 14, 14)).relu())(
        Chain("f16", 32, 256, 14, 14)),
    "resnet_f16_k3": Chain("f16", 32, 128, 28, 28).conv(
        128, 3, padding=1, bias=False).batch_norm().relu(),
    "resnext_f16_groups_of_4": Chain("f16", 32, 128, 56, 56).conv(
        128, 3, padding=1, groups=32, bias=False).batch_norm().relu(),
    "resnext_f16_groups_of_8_s2": Chain("f16", 32, 256, 56, 56).conv(
        256, 3, stride=2, padding=1, groups=32,
        bias=False).batch_norm().relu(),
    "transformer_bf16_mlp": _mlp(Chain("bf16", 32, 768, 14, 14), 3072),
    "transformer_f32_mlp": _mlp(Chain("f32", 16, 768, 14, 14), 3072),
    "detector_f16_k3": Chain("f16", 16, 80, 80, 80).conv(
        160, 3, padding=1, bias=False).batch_norm().silu(),
    "excited_f16": _excited(Chain("f16", 32, 240, 28, 28), 10).conv(
        40, 1, bias=False).batch_norm(),
    "segment_f16": Chain("f16", 4, 64, 512, 512).conv(1, 1).sigmoid(),
    "convnext_bf16_image_14": _convnext(Chain("bf16", 32, 384, 14, 14)),
    "convnext_f16_image_7": _convnext(Chain("f16", 32, 768, 7, 7)),
    "transformer_bf16_norm_mlp":
        _norm_mlp(Chain("bf16", 32, 768, 14, 14), 3072),
    # Of 197 tokens, whose images no access of 8 bytes begins.
    "transformer_bf16_197_tokens": _mlp(Chain("bf16", 32, 768, 1, 197), 3072),
    "mobile_f16": _mobile(Chain("f16", 32, 112, 14, 14)),
    "bottleneck_f16_image_14":
        _bottleneck(Chain("f16", 32, 1024, 14, 14), 256),
    "spatial_attention_f16": _spatial_attention(
        Chain("f16", 32, 256, 56, 56)),
    "classifier_f16": Chain("f16", 64, 2048, 7, 7).batch_norm().relu().reduce(
        "mean", [2, 3]).conv(1000, 1),
    "gated_f16_image_14": _gated(Chain("f16", 64, 672, 14, 14)),
    # Small images, as at the end of a network for small pictures and at the
    # beginning of a generator.
    "small_f32_image_4": Chain("f32", 128, 512, 4, 4).conv(
        512, 3, padding=1, bias=False).batch_norm().relu(),
    "small_f16_image_4": Chain("f16", 128, 512, 4, 4).conv(
        512, 3, padding=1, bias=False).batch_norm().relu(),
    "small_f16_image_2": Chain("f16", 128, 512, 2, 2).conv(
        512, 3, padding=1, bias=False).batch_norm().relu(),
    "dcgan_f16_image_4": Chain("f16", 128, 1024, 4, 4).conv_transpose(
        512, 4, stride=2, padding=1, bias=False).batch_norm().relu(),
    "dcgan_f16_latent": Chain("f16", 128, 100, 1, 1).conv_transpose(
        512, 4, bias=False).batch_norm().relu(),
    # Transposed convolutions.
    "transpose_k2_s2": Chain("f32", 8, 128, 64, 64).conv_transpose(
        64, 2, stride=2).relu(),
    "unet_f16_upsample": Chain("f16", 16, 128, 64, 64).conv_transpose(
        64, 2, stride=2),
    "transpose_k4_s2": Chain("f32", 8, 64, 64, 64).conv_transpose(
        32, 4, stride=2, padding=1, bias=False).batch_norm().relu(),
    "transpose_k3_s2": Chain("f32", 8, 128, 64, 64).conv_transpose(
        128, 3, stride=2, padding=1).relu(),
    "transpose_k3_f16": Chain("f16", 16, 64, 96, 96).conv_transpose(
        64, 3).gelu().group_norm(8),
    "transpose_k5": Chain("f32", 8, 32, 96, 96).conv_transpose(
        32, 5).gelu().group_norm(4),
    "transpose_softmax": (lambda x: x.add(
        x.param(128, 1, 1)).mul(2.0).sigmoid())(
            Chain("f32", 16, 64, 64, 64).conv_transpose(
                128, 4, stride=2, padding=1).softmax(1)),
    # The last convolution of networks that make images: a generator's, a
    # denoiser's, which takes the noise away, and one for depths or edges.
    "image_head_k7": Chain("f32", 16, 64, 256, 256).conv(
        3, 7, padding=3).tanh(),
    "image_head_k3_image_512": Chain("f32", 1, 64, 512, 512).conv(
        3, 3, padding=1).sigmoid(),
    "denoiser_head_k3": (lambda x: x.mul(-1.0).add(
        x.input(16, 1, 256, 256)))(Chain("f32", 16, 64, 256, 256).conv(
            1, 3, padding=1)),
    "depth_head_f16_k3": Chain("f16", 16, 32, 256, 256).conv(
        1, 3, padding=1).sigmoid(),
    # That halve small images, as encoders and discriminators do.
    "down_k5_s2": Chain("f32", 32, 48, 64, 64).conv(
        96, 5, stride=2, padding=2).relu(),
    "down_k3_s2_image_16": Chain("f32", 256, 128, 16, 16).conv(
        256, 3, stride=2, padding=1, bias=False).batch_norm().relu(),
    "down_f16_k4_s2_image_16": Chain("f16", 64, 256, 16, 16).conv(
        512, 4, stride=2, padding=1, bias=False).batch_norm().leaky_relu(),
    "style_instance_norm": Chain("f32", 8, 128, 64, 64).conv(
        128, 3, padding=1).group_norm(128).relu(),
    # The first convolution of networks that read images: of EfficientNet, of
    # YOLO, of a U-Net for scans, of VGG.
    "stem_f16_k3_s2": Chain("f16", 32, 3, 224, 224).conv(
        32, 3, stride=2, padding=1, bias=False).batch_norm().silu(),
    "stem_f16_k6_s2": Chain("f16", 16, 3, 640, 640).conv(
        32, 6, stride=2, padding=2, bias=False).batch_norm().silu(),
    "stem_f16_one_channel": Chain("f16", 8, 1, 512, 512).conv(
        64, 3, padding=1).relu(),
    "stem_k3": Chain("f32", 16, 3, 224, 224).conv(
        64, 3, padding=1).relu(),
    # Pooling whose windows overlap behind ops, and reductions over channels.
    "pool_batch_norm": Chain("f32", 16, 64, 112, 112).batch_norm().relu(
        ).max_pool(3, stride=2, padding=1),
    "pool_f16_norm": Chain("f16", 16, 64, 112, 112).group_norm(8).relu(
        ).avg_pool(3, stride=1, padding=1),
    "end_max_pool_f16_overlap": Chain("f16", 8, 128, 64, 64).conv(
        256, 3, padding=1).group_norm(16).relu().max_pool(2, stride=1),
    "channels_mean_odd_image": Chain("f32", 64, 144, 35, 35).mul(
        -1.163).reduce("mean", 1).clamp(-1.5, 0.5),
}

# Compared with max-autotune, too; the four chains are measured elsewhere. It
# takes 100 s for conv_k3_unet alone, and won 2 % there.
MAX_AUTOTUNE = ("norm_channels_512", "conv_stem_k7_s2", "softmax_rows_bf16",
                "depthwise_k7_convnext", "end_logsumexp_batch_4",
                "transpose_k4_s2")


def plan_texts():
    """{name: plan text}, in order."""
    return {name: row.text() for name, row in ROWS.items()}
