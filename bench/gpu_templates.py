"""Small plans that together run every kernel template of an sm_90a device, for
compute-sanitizer.

Longer than 400 lines because one table has all of them.
"""

def _conv(x, w, dtype="f32", **options):
    """The head of a plan: a convolution of inputs of these extents."""
    op = "conv_transpose2d" if options.pop("transposed", 0) else "conv2d"
    attributes = "".join(f", {key}={value}" for key, value in options.items())
    return (f"input x: {dtype}[{x}]\nparam w: {dtype}[{w}]\n"
            f"c = {op}(x, w{attributes})\n")


def _layers(rows, first, *widths):
    """Linear layers of f32 with so many results each."""
    text = f"input v0: f32[{rows},{first},1,1]\n"
    for i, width in enumerate(widths):
        inputs = widths[i - 1] if i > 0 else first
        text += f"param w{i}: f32[{width},{inputs},1,1]\n"
    for i in range(len(widths)):
        text += f"c{i} = conv2d(v{i}, w{i})\nv{i + 1} = gelu(c{i})\n"
    return text + f"output v{len(widths)}\n"


def _laid_results(x, w, v):
    """Two convolutions of inputs of these extents, the first one's weights w."""
    return (_conv(x, w).replace("c = ", f"param v: f32[{v}]\nc = ")
            + "g = gelu(c)\ny = conv2d(g, v)\noutput y\n")


PLANS = {
    # conv_wgmma.cu: statistics from registers, then from computed values.
    "conv_moments": _conv("2,8,20,30", "64,8,3,3")
    + "y = group_norm(c, num_groups=16)\noutput y\n",
    "conv_gelu_moments": _conv("2,64,20,30", "64,64,3,3", padding=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    "conv_f16_moments": _conv("2,64,28,28", "64,64,3,3", "f16", padding=1)
    + "n = group_norm(c, num_groups=8)\ny = relu(n)\noutput y\n",
    # Groups that blocks have parts of: with channels as rows, apart and held,
    # and with pixels.
    "conv_cut_groups": _conv("4,64,32,32", "320,64,3,3", "f16", padding=1)
    + "n = group_norm(c, num_groups=16)\ny = relu(n)\noutput y\n",
    "conv_cut_groups_strips": _conv("16,64,24,24", "240,64,3,3", padding=1)
    + "n = group_norm(c, num_groups=12)\ny = relu(n)\noutput y\n",
    "conv_cut_groups_held": _conv("8,64,32,32", "240,64,3,3", "f16", padding=1)
    + "n = group_norm(c, num_groups=12)\ny = relu(n)\noutput y\n",
    "conv_cut_groups_pixels": _conv("8,64,32,32", "160,64,3,3", padding=1)
    + "n = group_norm(c, num_groups=16)\ny = relu(n)\noutput y\n",
    # Groups of few channels, joined: as stored, scaled, with statistics.
    "conv_joined": _conv("8,128,28,28", "128,4,3,3", "f16", padding=1,
                         groups=32)
    + "y = relu(c)\noutput y\n",
    "conv_joined_scaled": _conv("8,128,28,28", "128,4,3,3", padding=1,
                                groups=32)
    + "y = relu(c)\noutput y\n",
    "conv_joined_moments": _conv("8,128,28,28", "128,4,3,3", "f16", padding=1,
                                 groups=32)
    + "n = group_norm(c, num_groups=8)\ny = relu(n)\noutput y\n",
    "conv_bf16_k1": _conv("2,64,14,14", "128,64,1,1", "bf16")
    + "y = silu(c)\noutput y\n",
    # Pixels as they lie.
    "conv_lines": _conv("2,200,12,24", "72,200,1,1", "f16")
    + "y = relu(c)\noutput y\n",
    "conv_lines_reshaped": _conv("2,160,28,28", "136,160,1,1", "bf16")
    + "y = silu(c)\noutput y\n",
    # Blocks of a cluster share the chunks of a tile: in parts, from registers
    # and in planes; lines; over channels; with windows; in both phases.
    "conv_shared_sums": _conv("1,512,10,12", "64,512,3,3", padding=1)
    + "y = relu(c)\noutput y\n",
    "conv_shared_sums_moments": _conv("2,512,14,14", "128,512,3,3", padding=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    "conv_shared_sums_lines": _conv("1,2048,8,12", "64,2048,1,1", "f16")
    + "y = relu(c)\noutput y\n",
    "conv_shared_sums_softmax": _conv("1,512,10,12", "40,512,3,3", padding=1)
    + "y = softmax(c, dim=1)\noutput y\n",
    "conv_shared_sums_pool": _conv("1,512,14,14", "64,512,3,3", padding=1)
    + "r = silu(c)\n"
    "y = avg_pool2d(r, kernel_size=3, stride=2, padding=1)\noutput y\n",
    "conv_shared_sums_phases": _conv("1,512,7,7", "512,64,4,4", padding=1,
                                     stride=2, transposed=1)
    + "y = relu(c)\noutput y\n",
    # Parts of a large filter's rows: of which two have a row; with statistics;
    # of few channels.
    "conv_row_parts": _conv("1,32,21,30", "40,32,7,7", stride=7, padding=3)
    + "y = relu(c)\noutput y\n",
    "conv_row_parts_moments": _conv("2,16,24,24", "64,16,9,9", padding=4)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    "conv_row_parts_few": _conv("16,3,160,96", "64,3,11,11", stride=4,
                                padding=2) + "y = relu(c)\noutput y\n",
    # Eight channels of each of a stride's planes, with zeros for eight more.
    "conv_empty_halves": _conv("2,64,24,40", "64,8,3,3", "f16", stride=2,
                               padding=1, groups=8)
    + "y = relu(c)\noutput y\n",
    "conv_empty_halves_moments": _conv("2,8,40,37", "64,8,3,3", "bf16",
                                       stride=2, padding=1)
    + "n = group_norm(c, num_groups=8)\ny = relu(n)\noutput y\n",
    # Rows of eight pixels: of 16 bits, and in both phases of their columns; of
    # octets that lie apart; with statistics.
    "conv_eights": _conv("33,64,16,16", "512,64,3,3", "f16", padding=1)
    + "y = relu(c)\noutput y\n",
    "conv_eights_phases": _conv("33,64,8,8", "64,128,4,4", "f16", padding=1,
                                stride=2, transposed=1)
    + "y = relu(c)\noutput y\n",
    "conv_eights_octets": _conv("66,8,16,16", "128,8,5,5", padding=2)
    + "y = relu(c)\noutput y\n",
    "conv_eights_stride": _conv("64,64,16,16", "256,64,4,4", "f16", stride=2,
                                padding=1)
    + "y = relu(c)\noutput y\n",
    "conv_eights_moments": _conv("33,64,16,16", "512,64,3,3", "f16", padding=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    # Rows of 64 pixels, one for each product: of 16 bits, in parts; in both
    # phases of their columns.
    "conv_apart": _conv("4,96,64,64", "32,96,3,3", "f16", padding=1)
    + "y = relu(c)\noutput y\n",
    "conv_apart_parts": _conv("4,64,64,64", "128,64,3,3", padding=1)
    + "y = relu(c)\noutput y\n",
    "conv_apart_phases": _conv("2,64,64,64", "64,32,3,3", padding=1, stride=2,
                               output_padding=1, transposed=1)
    + "y = relu(c)\noutput y\n",
    # Sums of chunks that leave the tensor cores in parts: of calls, of steps,
    # of phases.
    "conv_long_sums": _conv("4,16,9,9", "16,24,5,5", padding=2, transposed=1)
    + "y = gelu(c)\noutput y\n",
    "conv_long_sums_calls": _conv("9,32,16,24", "32,64,3,3", padding=1,
                                  transposed=1)
    + "n = group_norm(c, num_groups=8)\ny = silu(n)\noutput y\n",
    "conv_long_sums_chunks": _conv("2,24,19,30", "40,24,7,7", padding=3)
    + "y = relu(c)\noutput y\n",
    "conv_long_sums_phases": _conv("2,32,11,13", "32,24,7,7", padding=3,
                                   stride=2, transposed=1)
    + "y = relu(c)\noutput y\n",
    # Signals: rows that are parts of one, with a norm, and without tensor cores.
    "conv_signal": _conv("4,64,1,16384", "64,64,1,3", "f16", padding="[0,1]")
    + "y = leaky_relu(c)\noutput y\n",
    "conv_signal_norm": _conv("8,32,1,8192", "64,32,1,7", padding="[0,3]")
    + "n = group_norm(c, num_groups=8)\ny = silu(n)\noutput y\n",
    "signal_plain": _conv("2,8,1,2048", "8,2,1,3", padding="[0,1]", groups=4)
    + "y = tanh(c)\noutput y\n",
    # Extremes of windows, by lanes that share them and through planes.
    "conv_pool_4": "param s: f32[64,1,1]\n" + _conv("2,8,34,34", "64,8,3,3")
    + "n = group_norm(c, num_groups=16)\nm = mul(n, s)\n"
    + "y = max_pool2d(m, kernel_size=4)\noutput y\n",
    "conv_pool_3": _conv("2,8,32,32", "64,8,3,3")
    + "n = group_norm(c, num_groups=16)\n"
    + "y = max_pool2d(n, kernel_size=3)\noutput y\n",
    "conv_mean_pool_4": _conv("132,8,34,34", "64,8,3,3")
    + "n = group_norm(c, num_groups=16)\n"
    + "y = avg_pool2d(n, kernel_size=4)\noutput y\n",
    "conv_finished_pool": _conv("2,8,34,34", "64,8,3,3")
    + "r = relu(c)\ny = max_pool2d(r, kernel_size=2)\noutput y\n",
    # Reductions over channels, residuals, stores.
    "conv_logsumexp": _conv("2,8,20,66", "64,8,3,3")
    + "n = group_norm(c, num_groups=16)\nr = add(n, c)\n"
    + "y = logsumexp(r, dim=1, keepdim=true)\noutput y\n",
    "conv_amax": _conv("2,16,20,20", "32,16,3,3")
    + "y = amax(c, dim=1, keepdim=true)\noutput y\n",
    "conv_mean": _conv("2,16,20,20", "32,16,3,3")
    + "r = relu(c)\ny = mean(r, dim=1, keepdim=true)\noutput y\n",
    "conv_images_mean": _conv("2,16,40,40", "48,16,3,3")
    + "r = relu(c)\ny = mean(r, dim=[2,3])\noutput y\n",
    "conv_images_amax": _conv("2,24,9,9", "40,24,3,3")
    + "y = amax(c, dim=[2,3])\noutput y\n",
    # The same of values that stay in registers.
    "conv_images_sum": _conv("264,8,40,45", "64,8,3,3")
    + "t = relu(c)\ny = sum(t, dim=[2,3])\noutput y\n",
    # Turns that are held through a part of the tail.
    "conv_turns_held": _conv("66,8,14,96", "48,8,3,3")
    + "n = group_norm(c, num_groups=8)\nr = add(n, c)\n"
    + "y = logsumexp(r, dim=1, keepdim=true)\noutput y\n",
    "conv_turns_held_softmax": _conv("132,8,18,34", "64,8,3,3")
    + "y = softmax(c, dim=1)\noutput y\n",
    # Channels that are reduced from registers: in three warpgroups, which hold
    # their turns in tf32; by the sum, of 16 bits.
    "conv_channel_runs": "grade tf32\n" + _conv("66,8,14,96", "64,8,3,3")
    + "n = group_norm(c, num_groups=16)\nr = add(n, c)\n"
    + "y = logsumexp(r, dim=1, keepdim=true)\noutput y\n",
    "conv_channel_runs_sum": _conv("66,24,9,24", "64,24,3,3", "bf16")
    + "r = relu(c)\ny = sum(r, dim=1)\noutput y\n",
    # Sums whose scales change within a block, by ROW_DEVIATIONS.
    "conv_scales_channels": _conv("132,16,48,40", "32,16,1,1")
    + "y = amax(c, dim=1)\noutput y\n",
    "conv_scales_images": "grade tf32\n"
    + _conv("132,16,48,40", "32,16,1,1")
    + "y = amax(c, dim=[2,3])\noutput y\n",
    # Softmax over channels; channels in several warps; rows that are no whole
    # sectors.
    "conv_softmax": "param s: f32[64,1,1]\n" + _conv("132,8,24,37", "64,8,3,3")
    + "n = group_norm(c, num_groups=16)\nt = tanh(n)\na = add(t, c)\n"
    + "m = softmax(a, dim=1)\ny = mul(m, s)\noutput y\n",
    "conv_softmax_wide": _conv("132,24,24,24", "130,24,1,1", "f16")
    + "y = softmax(c, dim=1)\noutput y\n",
    "conv_odd_width": _conv("132,16,24,57", "40,16,3,3", padding=1)
    + "y = relu(c)\noutput y\n",
    "conv_odd_width_moments": _conv("132,24,24,57", "40,24,3,3", padding=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    "conv_residual": "input z: f32[2,64,20,20]\n"
    + _conv("2,64,20,20", "64,64,1,1")
    + "a = add(c, z)\ny = relu(a)\noutput y\n",
    # Read ahead, two neighbours at once.
    "conv_beside": "input z: f16[132,64,16,24]\ninput u: f16[132,64,16,24]\n"
    + _conv("132,32,16,24", "64,32,3,3", "f16", padding=1)
    + "a = add(c, z)\nb = mul(a, u)\ny = silu(b)\noutput y\n",
    # Rounded in registers: pixels in halves of units; beside a residual, of
    # tiles one below the other, and of several images.
    "conv_rounded": _conv("66,72,14,14", "136,72,1,1", "bf16")
    + "y = gelu(c)\noutput y\n",
    "conv_rounded_beside": "input z: f16[132,64,16,24]\n"
    + _conv("132,32,16,24", "64,32,3,3", "f16", padding=1)
    + "a = add(c, z)\ny = silu(a)\noutput y\n",
    "conv_rounded_images": "input z: f16[300,64,14,14]\n"
    + _conv("300,40,14,14", "64,40,1,1", "f16")
    + "a = add(c, z)\ny = relu(a)\noutput y\n",
    # Stored from registers: behind a stride, of both phases of the columns.
    "conv_stored_norm": _conv("66,32,32,32", "128,32,4,4", "f16", stride=2,
                              padding=1)
    + "n = group_norm(c, num_groups=128)\ny = relu(n)\noutput y\n",
    "transpose_stored": "input x: f16[132,16,12,14]\nparam w: f16[16,64,3,3]\n"
    + "c = conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)\n"
    + "y = relu(c)\noutput y\n",
    "conv_store": _conv("2,16,30,30", "64,16,5,5", padding=2)
    + "y = relu(c)\noutput y\n",
    # A large filter with a stride, as it is stored.
    "conv_k7_stride": _conv("16,64,30,30", "128,64,7,7", "f16", stride=2,
                            padding=3)
    + "y = relu(c)\noutput y\n",
    # Strides, phases, groups, chunks that keep or stream their weights.
    "conv_stride_2": _conv("2,32,30,30", "64,32,3,3", stride=2, padding=1)
    + "y = group_norm(c, num_groups=8)\noutput y\n",
    "conv_f32_by_f16": "input x: f32[2,24,20,20]\nparam w: f16[32,24,3,3]\n"
    + "c = conv2d(x, w)\ny = relu(c)\noutput y\n",
    "conv_dilated": _conv("2,32,24,24", "32,32,3,3", padding=2, dilation=2)
    + "y = relu(c)\noutput y\n",
    "conv_grouped": _conv("2,64,20,20", "64,16,3,3", padding=1, groups=4)
    + "y = group_norm(c, num_groups=8)\noutput y\n",
    "conv_24_channels": _conv("2,24,33,37", "40,24,3,3", padding=1)
    + "y = relu(c)\noutput y\n",
    "conv_many_channels": _conv("1,256,9,9", "256,256,3,3", padding=1)
    + "y = relu(c)\noutput y\n",
    # Tiles that take rows from the one above, for as long as scales suit.
    "conv_carries": _conv("132,16,48,37", "32,16,5,5", padding=2)
    + "y = relu(c)\noutput y\n",
    "conv_carries_planes": _conv("132,3,42,60", "32,3,7,7", stride=2, padding=3)
    + "y = relu(c)\noutput y\n",
    "conv_carries_ahead": "grade tf32\n"
    + _conv("132,32,48,40", "32,32,3,3", transposed=1)
    + "y = group_norm(c, num_groups=8)\noutput y\n",
    # Several images in a block.
    "conv_small_images": _conv("264,40,13,13", "96,40,3,3", padding=1, stride=2)
    + "y = group_norm(c, num_groups=8)\noutput y\n",
    "transpose_k3": _conv("1,64,16,16", "64,64,3,3", transposed=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    # Blocks enough that they finish what earlier ones have computed.
    "conv_finish": _conv("530,64,14,14", "64,64,3,3", transposed=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    # Blocks that hold images, in two rounds.
    "conv_holds": _conv("60,64,40,40", "64,64,3,3", "f16", padding=1)
    + "n = group_norm(c, num_groups=8)\ny = silu(n)\noutput y\n",
    # Of more groups than warps.
    "conv_holds_channels": _conv("32,16,28,28", "256,16,3,3", "f16", padding=1)
    + "n = group_norm(c, num_groups=256)\ny = relu(n)\noutput y\n",
    # Beside the products of several chunks.
    "conv_holds_chunks": "grade tf32\n"
    + _conv("60,64,40,40", "64,64,3,3", transposed=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    "conv_holds_embedding": "input e: f16[60,64,1,1]\n"
    + _conv("60,64,40,40", "64,64,3,3", "f16", padding=1)
    + "h = add(c, e)\nn = group_norm(h, num_groups=8)\ny = silu(n)\noutput y\n",
    "conv_holds_42_outputs": _conv("60,64,40,40", "42,64,3,3", "f16", padding=1)
    + "n = group_norm(c, num_groups=42)\ny = silu(n)\noutput y\n",
    "conv_holds_f32": _conv("16,128,48,56", "64,128,1,1")
    + "n = group_norm(c, num_groups=8)\ny = hardswish(n)\noutput y\n",
    "transpose_k4_s2": _conv("1,32,14,14", "32,64,4,4", transposed=1,
                             stride=2, padding=1)
    + "y = group_norm(c, num_groups=8)\noutput y\n",
    "transpose_k3_s2": _conv("1,16,14,14", "16,32,3,3", transposed=1, stride=2)
    + "y = relu(c)\noutput y\n",
    "transpose_merged": _conv("16,64,24,32", "64,64,3,3", transposed=1,
                              stride=2)
    + "y = relu(c)\noutput y\n",
    "transpose_merged_norm": _conv("8,32,28,28", "32,64,4,4", transposed=1,
                                   stride=2, padding=1)
    + "g = gelu(c)\ny = group_norm(g, num_groups=8)\noutput y\n",
    "transpose_merged_pixels": _conv("8,64,24,32", "64,3,3,3", transposed=1,
                                     stride=2, padding=1, output_padding=1)
    + "y = tanh(c)\noutput y\n",
    # Phases as channels: in pairs and one by one, of two pixels at once, by
    # blocks that go through columns.
    "transpose_channel_phases": _conv("48,64,1,400", "64,72,1,16",
                                      transposed=1, stride="[1,8]",
                                      padding="[0,4]")
    + "y = relu(c)\noutput y\n",
    "transpose_channel_phases_f16": _conv("48,64,20,24", "64,40,8,8", "f16",
                                          transposed=1, stride=4, padding=2)
    + "y = relu(c)\noutput y\n",
    "transpose_channel_phases_single": _conv("4,64,20,24", "64,40,6,6", "f16",
                                             transposed=1, stride=3, padding=1)
    + "y = relu(c)\noutput y\n",
    "transpose_channel_phases_fours": _conv("4,64,32,32", "64,32,4,4",
                                            transposed=1, stride=2, padding=1)
    + "y = relu(c)\noutput y\n",
    "transpose_all_phases": _conv("16,128,24,64", "128,64,2,2", transposed=1,
                                  stride=2)
    + "y = relu(c)\noutput y\n",
    "transpose_all_phases_f16": _conv("16,64,24,64", "64,40,2,2", "f16",
                                      transposed=1, stride=2)
    + "y = relu(c)\noutput y\n",
    # Phases without some taps, or any, and those of the rows of a dilated filter.
    "transpose_k5_s3": _conv("1,48,14,14", "48,32,5,5", transposed=1, stride=3)
    + "y = group_norm(c, num_groups=4)\noutput y\n",
    "transpose_k2_s3": _conv("2,24,10,12", "24,40,2,2", transposed=1, stride=3)
    + "y = relu(c)\noutput y\n",
    "transpose_k2_s3_norm": _conv("2,64,9,16", "64,64,2,2", "f16",
                                  transposed=1, stride=3, padding=1)
    + "n = group_norm(c, num_groups=8)\ny = silu(n)\noutput y\n",
    "conv_interleaved": _conv("2,64,40,32", "64,64,3,3", padding=12,
                              dilation=12)
    + "n = group_norm(c, num_groups=8)\ny = relu(n)\noutput y\n",
    "conv_interleaved_f16": _conv("2,64,40,32", "64,64,3,3", "f16", padding=6,
                                  dilation=6)
    + "y = relu(c)\noutput y\n",
    # Windows that go to memory by way of shared memory.
    "conv_keeps_windows": _conv("1,8,98,130", "64,8,3,3")
    + "n = group_norm(c, num_groups=16)\nr = relu(n)\n"
    + "y = max_pool2d(r, kernel_size=2)\noutput y\n",
    # turn.cu, unfold.cu, and convolutions of what is rounded.
    "turn": _conv("133,24,3,2", "140,24,3,2").replace("w: f32", "w: f16")
    + "y = gelu(c)\noutput y\n",
    "join": "input x: f16[16,512,1,197]\nparam u: f16[1536,512,1,1]\n"
    + "param v: f16[512,1536,1,1]\na = conv2d(x, u)\ng = gelu(a)\n"
    + "c = conv2d(g, v)\ny = add(c, x)\noutput y\n",
    "unfold": _conv("4,3,80,83", "96,3,8,8", stride=8)
    + "y = gelu(c)\noutput y\n",
    "unfold_vectors_f16": _conv("8,4,64,64", "96,4,2,2", "f16", stride=2)
    + "y = gelu(c)\noutput y\n",
    "conv_twice_f16": _conv("2,64,28,28", "64,64,3,3", "f16", padding=1)
    + "n = group_norm(c, num_groups=8)\nr = silu(n)\n"
    + "d = conv2d(r, w, padding=1)\ny = add(d, x)\noutput y\n",
    # Units of several columns.
    "conv_3_channels": _conv("32,3,40,40", "64,3,7,7", stride=2, padding=3)
    + "r = relu(c)\ny = max_pool2d(r, kernel_size=3, stride=2, padding=1)\n"
    + "output y\n",
    "conv_3_channels_f16": _conv("32,3,40,40", "64,3,7,7", "f16", stride=2,
                                 padding=3)
    + "y = relu(c)\noutput y\n",
    "conv_1_channel": _conv("32,1,40,40", "64,1,5,5", padding=2)
    + "y = group_norm(c, num_groups=16)\noutput y\n",
    # conv_mma.cu and depthwise_conv2d.cu.
    "conv_8_channels_k7_s2": _conv("1,8,40,40", "32,8,7,7", stride=2,
                                   padding=3)
    + "r = relu(c)\ny = max_pool2d(r, kernel_size=3, stride=2, padding=1)\n"
    + "output y\n",
    "conv_patches": _conv("2,3,32,32", "48,3,4,4", "bf16", stride=4)
    + "y = group_norm(c, num_groups=4)\noutput y\n",
    "depthwise": _conv("2,32,20,20", "32,1,3,3", padding=1, groups=32)
    + "y = hardswish(c)\noutput y\n",
    "depthwise_tall": _conv("32,96,14,14", "96,1,7,7", "f16", padding=3,
                            groups=96)
    + "y = silu(c)\noutput y\n",
    "depthwise_long_rows": _conv("4,64,1,400", "64,1,1,43", "f16",
                                 padding="[0,21]", groups=64)
    + "y = silu(c)\noutput y\n",
    "depthwise_by_rows": _conv("4,32,28,28", "32,1,13,13", padding=6,
                               groups=32)
    + "y = gelu(c)\noutput y\n",
    # narrow_conv2d.cu: in slices, with channels left over, of single pixels.
    "narrow": _conv("3,16,20,34", "5,16,1,1") + "y = sigmoid(c)\noutput y\n",
    "narrow_slices": _conv("2,44,10,13", "8,44,1,1", "f32")
    + "y = silu(c)\noutput y\n",
    "narrow_single_pixels": _conv("16,37,49,49", "3,37,1,1", "f16")
    + "y = gelu(c)\noutput y\n",
    "narrow_many": _conv("4,24,64,64", "12,24,1,1") + "y = tanh(c)\noutput y\n",
    # narrow_windows.cu: of several rows, in slices, of 16 bits.
    "windows": _conv("2,16,65,64", "3,16,3,3", padding=1)
    + "y = tanh(c)\noutput y\n",
    "windows_slices": _conv("2,16,40,48", "1,16,5,3", padding="[2,1]")
    + "y = silu(c)\noutput y\n",
    "windows_f16": _conv("3,2,56,56", "1,2,7,7", "f16", padding=3)
    + "y = sigmoid(c)\noutput y\n",
    # sum_columns.cu, behind columns of filters: of so much work that an H100
    # takes them apart. Phases of few channels.
    "filter_columns": _conv("1,16,160,160", "3,16,7,7", padding=3)
    + "y = tanh(c)\noutput y\n",
    "filter_columns_f16": _conv("1,32,176,180", "3,32,7,7", "f16",
                                padding="[3,2]")
    + "y = sigmoid(c)\noutput y\n",
    "phases_of_few_channels": _conv("2,8,24,24", "8,24,3,3", stride=2,
                                    padding=1, transposed=1)
    + "y = relu(c)\noutput y\n",
    # dense.cu: by warps and by a few lanes, single elements.
    "dense": _conv("32,672,1,1", "28,672,1,1", "f16")
    + "y = silu(c)\noutput y\n",
    "dense_few_lanes": _conv("9,28,1,1", "130,28,1,1", "bf16")
    + "y = sigmoid(c)\noutput y\n",
    "dense_elements": _conv("3,11,1,3", "10,11,1,3")
    + "y = gelu(c)\noutput y\n",
    # linear.cu: of several chunks and tiles, and shared by a cluster.
    "linear": _conv("200,136,1,1", "140,136,1,1", "f16")
    + "y = gelu(c)\noutput y\n",
    "linear_shared": _conv("72,1100,1,1", "100,1100,1,1", "bf16")
    + "y = silu(c)\noutput y\n",
    # linear_kept.cu, and rows of f32 in halves, that a layer leaves, too.
    "linear_kept": _conv("40000,72,1,1", "100,72,1,1", "f16")
    + "y = gelu(c)\noutput y\n",
    "linear_split": _conv("300,330,1,1", "140,330,1,1")
    + "y = gelu(c)\noutput y\n",
    "linear_split_tf32": "grade tf32\n"
    + _conv("200,1300,1,1", "100,1300,1,1") + "y = silu(c)\noutput y\n",
    "linear_leaves_halves": _layers(5000, 40, 256, 130, 10),
    "linear_keeps_and_leaves": "grade tf32\n" + _layers(40000, 72, 128, 64, 3),
    # stem_conv2d.cu: of 16 bits with a stride, of one channel; of so much f32
    # that it takes it, rounded and split.
    "stem": _conv("4,3,70,96", "24,3,3,3", "f16", stride=2, padding=1)
    + "y = silu(c)\noutput y\n",
    "stem_one_channel": _conv("4,1,50,64", "40,1,5,5", "bf16", padding=2)
    + "y = relu(c)\noutput y\n",
    "stem_tf32": "grade tf32\n" + _conv("4,3,224,240", "32,3,3,3", padding=1)
    + "y = relu(c)\noutput y\n",
    "stem_fp32": _conv("5,1,480,480", "16,1,3,3", padding=1)
    + "y = relu(c)\noutput y\n",
    # head_conv2d.cu: of several results, and of one, wider than a tile.
    "head": _conv("2,40,176,176", "3,40,3,3", "f16", padding=1)
    + "y = tanh(c)\noutput y\n",
    "head_wide": _conv("1,64,128,480", "1,64,7,3", "bf16", padding="[3,1]")
    + "y = sigmoid(c)\noutput y\n",
    # Rows: a warp's, a block's, a cluster's, columns, teams'; several
    # reductions.
    "rows_warp": "input x: bf16[64,512]\ny = softmax(x, dim=1)\noutput y\n",
    "rows_warps": "input x: f32[40,32,14,14]\n"
                  "y = group_norm(x, num_groups=4)\noutput y\n",
    "rows_warps_softmax":
        "input x: bf16[3,2,40,1027]\ninput z: bf16[40,1027]\n"
        "a = mul(x, 0.125)\nb = add(a, z)\ny = softmax(b, dim=3)\n"
        "output y\n",
    "rows_block": "input x: f32[64,32,48,48]\n"
                  "y = group_norm(x, num_groups=4)\noutput y\n",
    "rows_cluster": "input x: f32[130,60000]\n"
                    "m = amax(x, dim=1, keepdim=true)\ny = sub(x, m)\n"
                    "output y\n",
    "rows_powers_twice": "input x: f16[250,30000]\n"
                         "y = softmax(x, dim=1)\noutput y\n",
    "rows_mean": "input x: f32[2,64,28,28]\nn = group_norm(x, num_groups=8)\n"
                 "y = mean(n, dim=[2,3])\noutput y\n",
    "rows_warp_mean": "input x: f16[70,200]\n"
                      "m = mean(x, dim=1, keepdim=true)\ny = sub(x, m)\n"
                      "output y\n",
    "rows_norm_of_heads": "input x: f32[70,100]\nq = mul(x, x)\n"
                          "m = sum(q, dim=1, keepdim=true)\ns = sqrt(m)\n"
                          "c = maximum(s, 1e-12)\ny = div(x, c)\noutput y\n",
    "rows_streamed": "input x: f32[1350,3140]\ny = mean(x, dim=1)\n"
                     "output y\n",
    "rows_variance_streamed":
        "input x: f32[33,8,130,131]\nm = mean(x, dim=[2,3], keepdim=true)\n"
        "d = sub(x, m)\nq = mul(d, d)\ny = mean(q, dim=[2,3])\noutput y\n",
    "columns_streamed": "input x: f32[40,50,2100]\ny = amin(x, dim=1)\n"
                        "output y\n",
    "rows_root_mean_square":
        "input x: bf16[99,9000]\nparam w: bf16[9000]\nq = mul(x, x)\n"
        "m = mean(q, dim=1, keepdim=true)\ne = add(m, 1e-5)\ns = sqrt(e)\n"
        "d = div(x, s)\ny = mul(d, w)\noutput y\n",
    "rows_variance": "input x: f32[4,2,130,131]\n"
                     "m = mean(x, dim=[2,3], keepdim=true)\nd = sub(x, m)\n"
                     "q = mul(d, d)\ny = mean(q, dim=[2,3])\noutput y\n",
    "rows_norm_of_extremes": "input x: f16[2,160,31,33]\n"
                             "n = group_norm(x, num_groups=160)\n"
                             "r = leaky_relu(n)\n"
                             "y = amax(r, dim=[2,3])\noutput y\n",
    "columns_mean": "input x: f16[8,1100,16,18]\n"
                    "m = mean(x, dim=1, keepdim=true)\ny = sub(x, m)\n"
                    "output y\n",
    "columns_mean_in_registers": "input x: f16[8,64,40,41]\n"
                                 "m = mean(x, dim=1, keepdim=true)\n"
                                 "y = sub(x, m)\noutput y\n",
    "columns_logsumexp": "input x: f32[8,700,16,18]\n"
                         "m = logsumexp(x, dim=1, keepdim=true)\n"
                         "y = sub(x, m)\noutput y\n",
    "columns_logsumexp_in_registers":
        "input x: f32[8,50,40,40]\nm = logsumexp(x, dim=1, keepdim=true)\n"
        "y = sub(x, m)\noutput y\n",
    "few_columns": "input x: bf16[2,481,10,10]\n"
                   "y = logsumexp(x, dim=1)\noutput y\n",
    "rows_chain": "input x: bf16[300,17000]\nparam w: bf16[17000]\n"
    + "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
    + "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-5)\ns = sqrt(e)\n"
    + "n = div(d, s)\ny = mul(n, w)\noutput y\n",
    "rows_chain_images": "input x: f32[8,40,131,133]\n"
    + "a = amin(x, dim=[2,3])\nb = amax(x, dim=[2,3])\ny = sub(b, a)\n"
    + "output y\n",
    # Blocks that leave states of several reductions, merged by another kernel.
    "rows_chain_splits": "input x: f32[4,7,128,136]\n"
    + "input z: f32[4,7,128,136]\ns = sigmoid(x)\np = mul(s, z)\n"
    + "a = sum(p, dim=[2,3])\nb = logsumexp(s, dim=[2,3])\ny = div(a, b)\n"
    + "output y\n",
    # The same, of totals, by more blocks than a warp could merge.
    "rows_chain_totals": "input x: f32[2,1,512,512]\n"
    + "input z: f32[2,1,512,512]\ns = sigmoid(x)\np = mul(s, z)\n"
    + "a = sum(p)\nb = sum(s)\nc = sum(z)\nd = add(b, c)\ny = div(a, d)\n"
    + "output y\n",
    # A total of rows' softmax, taken of each row first.
    "rows_then_total": "input x: bf16[700,1000]\n"
    + "l = logsumexp(x, dim=1, keepdim=true)\nd = sub(x, l)\np = exp(d)\n"
    + "e = mul(p, d)\ny = sum(e)\noutput y\n",
    # In parts of whole accesses, of tensors that caches give up.
    "reduce_whole_parts": "input x: f32[2,4,768,1024]\n"
    + "input z: f32[2,4,768,1024]\nd = sub(x, z)\ns = mul(d, d)\n"
    + "y = mean(s)\noutput y\n",
    "rows_chain_kept": "input x: f16[8,40,131,133]\n"
    + "a = amin(x, dim=[2,3], keepdim=true)\n"
    + "b = amax(x, dim=[2,3], keepdim=true)\nr = sub(b, a)\n"
    + "d = sub(x, a)\ny = div(d, r)\noutput y\n",
    "runs_chain": "input x: f16[64,96,28,28]\n"
    + "m = mean(x, dim=[0,2,3], keepdim=true)\nd = sub(x, m)\n"
    + "q = mul(d, d)\nv = mean(q, dim=[0,2,3], keepdim=true)\n"
    + "e = add(v, 1e-5)\ns = sqrt(e)\ny = div(d, s)\noutput y\n",
    "runs_chain_cluster": "input x: f32[32,24,56,57]\n"
    + "m = mean(x, dim=[0,2,3], keepdim=true)\nd = sub(x, m)\n"
    + "q = mul(d, d)\nv = mean(q, dim=[0,2,3], keepdim=true)\n"
    + "e = add(v, 1e-5)\ns = sqrt(e)\ny = div(d, s)\noutput y\n",
    # Statistics from correlations of the input, in two kernels; then states of
    # four warpgroups' channels meet, tile after tile.
    "correlate": "grade tf32\ninput x: f32[132,3,61,62]\n"
    + "param w: f32[256,3,3,3]\nc = conv2d(x, w)\n"
    + "n = group_norm(c, num_groups=16)\nt = tanh(n)\n"
    + "y = logsumexp(t, dim=1)\noutput y\n",
    # Lines laid down before, of one part and of two.
    "conv_laid_lines": "grade tf32\n"
    + _conv("16,250,14,14", "1024,250,1,1") + "y = gelu(c)\noutput y\n",
    "conv_laid_lines_parts": _conv("3,700,20,23", "1600,700,1,1")
    + "y = gelu(c)\noutput y\n",
    # Lines that a convolution leaves for the next, of one part and of two.
    "conv_laid_results": "grade tf32\n"
    + _laid_results("4,384,13,16", "1536,384,1,1", "200,1536,1,1"),
    "conv_laid_results_parts":
        _laid_results("3,500,12,20", "2000,500,1,1", "500,2000,1,1"),
    "runs_warp_chain": "input x: bf16[64,200,7,7]\n"
    + "m = mean(x, dim=[0,2,3], keepdim=true)\nd = sub(x, m)\n"
    + "q = mul(d, d)\nv = mean(q, dim=[0,2,3], keepdim=true)\n"
    + "e = add(v, 1e-5)\ns = sqrt(e)\ny = div(d, s)\noutput y\n",
    "rows_chain_nested": "input x: f32[14,64,96,96]\n"
    + "n = group_norm(x, num_groups=4)\nr = relu(n)\n"
    + "y = group_norm(r, num_groups=2)\noutput y\n",
    "columns_chain": "input x: f32[2,3300,12,14]\n"
    + "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
    + "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-6)\ns = sqrt(e)\n"
    + "y = div(d, s)\noutput y\n",
    # The same in registers: sums, extremes, moments, powers.
    "rows_warp_chain": "input x: bf16[4000,1000]\nparam w: bf16[1000]\n"
    + "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
    + "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-5)\ns = sqrt(e)\n"
    + "n = div(d, s)\ny = mul(n, w)\noutput y\n",
    "rows_warps_chain": "input x: bf16[500,3000]\nparam w: bf16[3000]\n"
    + "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
    + "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-5)\ns = sqrt(e)\n"
    + "n = div(d, s)\ny = mul(n, w)\noutput y\n",
    "rows_warp_chain_numbers": "input x: f32[900,500]\n"
    + "a = amin(x, dim=1)\nb = amax(x, dim=1)\ny = sub(b, a)\noutput y\n",
    "rows_warp_chain_groups":
        "input x: f32[60,16,3,24]\nparam w: f32[16]\nparam b: f16[16]\n"
        "n = group_norm(x, w, b, num_groups=4)\nr = relu(n)\n"
        "y = group_norm(r, w, b, num_groups=4)\noutput y\n",
    "columns_warp_chain": "input x: f32[8,97,24,28]\n"
    + "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
    + "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-6)\ns = sqrt(e)\n"
    + "y = div(d, s)\noutput y\n",
    "columns_warp_chain_powers": "input x: bf16[8,21,31,30]\n"
    + "l = logsumexp(x, dim=1, keepdim=true)\ng = sub(x, l)\n"
    + "a = amin(g, dim=1, keepdim=true)\ny = sub(g, a)\noutput y\n",
    "columns": "input x: f32[16,3300,8,8]\ny = softmax(x, dim=1)\n"
               "output y\n",
    "columns_softmax": "input x: f32[8,64,40,40]\ng = gelu(x)\n"
                       "y = softmax(g, dim=1)\noutput y\n",
    "columns_of_many_lanes": "input x: bf16[4,1700,9,9]\n"
                             "y = softmax(x, dim=1)\noutput y\n",
    "rows_team": "input x: f32[8,16,256,256]\n"
                 "y = group_norm(x, num_groups=1)\noutput y\n",
    # More rows than multiprocessors, of which two fit on one.
    "rows_turns": "input x: f32[140,1,128,130]\n"
                  "y = group_norm(x, num_groups=1)\noutput y\n",
    # Every second kernel goes through its tensors from the end.
    "rows_backwards": "input x: f32[16,32,100,100]\n"
                      "p = max_pool2d(x, kernel_size=2)\n"
                      "n = group_norm(p, num_groups=4)\n"
                      "s = softmax(n, dim=3)\nc = softmax(s, dim=1)\n"
                      "y = amax(c, dim=[2,3])\noutput y\n",
    "backwards": "input x: f32[2,8,20,24]\n"
                 "m = mean(x, dim=[0,2,3], keepdim=true)\nd = sub(x, m)\n"
                 "p = max_pool2d(d, kernel_size=2)\n"
                 "y = logsumexp(p, dim=[2,3])\noutput y\n",
    # pointwise.cu, pool2d.cu, reduce.cu.
    "pointwise": "input x: f16[2,3,17,19]\na = gelu(x)\ny = mul(a, x)\n"
                 "output y\n",
    # Channels of a length that vectors do not divide.
    "pointwise_channels": "input x: f32[32,8,23,23]\nparam s: f32[8,1,1]\n"
                          "m = mul(x, s)\ny = relu(m)\noutput y\n",
    "pool": "input x: f32[2,8,21,23]\n"
            "y = avg_pool2d(x, kernel_size=3, stride=2, padding=1)\noutput y\n",
    # pool_columns.cu: rows of windows of several images, and cut ones.
    "pool_columns": "input x: f16[3,5,40,44]\n"
                    "y = max_pool2d(x, kernel_size=13, stride=1, padding=6)\n"
                    "output y\n",
    "pool_columns_cut": "input x: f32[1,2,30,4300]\n"
                        "y = avg_pool2d(x, kernel_size=[7,9], stride=[3,2], "
                        "padding=[2,4], ceil_mode=true)\noutput y\n",
    "reduce_rows": "input x: f32[40,3000]\ny = logsumexp(x, dim=1)\noutput y\n",
    "reduce_all": "input x: f32[700000]\ny = sum(x)\noutput y\n",
    "reduce_columns": "input x: f32[900,257]\ny = mean(x, dim=0)\noutput y\n",
}

# {name: what the rows of images are multiplied by, in turns}. Tiles of six rows
# lie in one band of twelve, and no scale suits both kinds: a block of eight
# tiles computes those of its sums at least four times (KnowScales of
# conv_wgmma.cu).
_BANDS = (1.0,) * 12 + (1e4,) * 12
ROW_DEVIATIONS = {name: _BANDS for name in
                  ("conv_scales_channels", "conv_scales_images", "conv_carries",
                   "conv_carries_ahead")}

# The same of the images of a batch, neighbours of which share a block.
IMAGE_DEVIATIONS = {"conv_small_images": (1.0, 1e6)}
