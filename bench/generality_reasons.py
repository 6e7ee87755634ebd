"""Why rows of generality_rows.py may be slower than the best of PyTorch. The
tables of docs/performance.md quote it for those that are."""

# By row: a clause.
REASONS = {
    "conv_aspp_d12": "three products of halves, at 450 TFLOP/s together, "
                     "where PyTorch has one of TF32",
    "conv_k1_channels_512": "three products of halves where PyTorch has one of "
                            "TF32",
    "conv_small_image": "three products of halves, at 430 TFLOP/s together, "
                        "where PyTorch has one of TF32",
    "channels_mean_odd_image": "rows begin between accesses, so it loads single "
                               "numbers; of 36 x 36 pixels it takes 18.6 µs",
    "dcgan_f16_image_4": "a ninth of its time goes into laying images side by "
                         "side and cutting results apart",
    "dice_of_images": "of both times the memory needs half; the rest is "
                      "beginnings and ends of kernels",
    "down_f16_k4_s2_image_16": "from run to run between 0.99 and 1.01",
    "down_k3_s2_image_16": "three products of halves, which wait for weights "
                           "from the L2, where PyTorch has one of TF32",
    "gated_f16_image_14": "of both times the memory needs three fifths; the "
                          "rest is the beginning and the end of a kernel",
    "hand_layer_norm_bf16": "it waits for memory: an eighth fewer instructions "
                            "changed nothing on an H100",
    "linear_f32_norm": "three products of halves where PyTorch has one of "
                       "TF32",
    "softmax_rows_of_10": "both run 6 µs longer than a copy, on an H100 too: "
                          "the beginning and the end of a kernel",
    "transformer_f32_mlp": "three products of halves, at 500 TFLOP/s together, "
                           "where PyTorch has one of TF32",
    "transpose_k3_s2": "three products of halves where PyTorch has one of TF32",
}
# A run in which a tenth of the times is this many times the median was shared
# with something else.
_DISTURBED = 2.0
# At this part of a copy's speed, and this close, there is little left to win.
_MEMORY_BOUND = 0.8
_LEVEL = 0.95


def reason(name, row):
    """A clause, without a full stop."""
    if row["of_floor"] >= _MEMORY_BOUND and row["times_best"] >= _LEVEL:
        return (f"both run at the speed of memory, Kiln at "
                f"{row['of_floor']:.0%} of a copy's")
    times = row["times_ms"]["kiln"]
    if times["p90"] >= _DISTURBED * times["median"]:
        return (f"disturbed: 10 % of the times are below {times['p10']:.3g} ms, "
                f"90 % below {times['p90']:.3g}")
    return REASONS.get(name, "not explained yet")
