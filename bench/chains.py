"""The four headline chains at full size, as plan text."""

CHAINS = {
    "P1": """
        input x: f32[112,64,512,512]
        param weight: f32[64]
        param bias: f32[64]
        y = group_norm(x, weight, bias, num_groups=8)
        output y
    """,
    "P2": """
        input x: f32[128,8,128,128]
        param w: f32[64,8,3,3]
        param b: f32[64]
        param weight: f32[64]
        param bias: f32[64]
        conv = conv2d(x, w, b)
        norm = group_norm(conv, weight, bias, num_groups=16)
        t = tanh(norm)
        h = hardswish(t)
        r = add(h, conv)
        y = logsumexp(r, dim=1, keepdim=true)
        output y
    """,
    "P3": """
        input x: f32[128,8,128,128]
        param w: f32[64,8,3,3]
        param b: f32[64]
        param weight: f32[64]
        param bias: f32[64]
        param scale: f32[64,1,1]
        conv = conv2d(x, w, b)
        norm = group_norm(conv, weight, bias, num_groups=16)
        scaled = mul(norm, scale)
        pooled = max_pool2d(scaled, kernel_size=4)
        y = clamp(pooled, min=0, max=1)
        output y
    """,
    "P4": """
        input x: f32[128,64,256,256]
        param w: f32[64,64,3,3]
        param b: f32[64]
        param weight: f32[64]
        param bias: f32[64]
        conv = conv_transpose2d(x, w, b)
        act = gelu(conv)
        y = group_norm(act, weight, bias, num_groups=8)
        output y
    """,
}
