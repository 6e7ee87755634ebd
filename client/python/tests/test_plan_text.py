"""The Python reader of plan text refuses what `kiln` refuses, in its words.

    test_plan_text.py KILN
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import unittest

from kiln import KilnError, plan_text
from kiln.composed_ops import COMPOSED_OPS

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples" / "plans").glob("*.kiln"))
KILN = sys.argv.pop() if len(sys.argv) > 1 else "kiln"
SEED = 5
DAMAGED_TEXTS = 100
INPUTS = "input x: f32[2,4,8,8]\nparam w: f32[4]\n"

# Each is one that `kiln` does not read.
STATEMENTS = [
    "x = relu(x)", "input x: f32[2]", "param w: f32[2]",
    "y = relu(x)\ny = tanh(x)", "y = relu(x)\ninput z: f32[2]",
    "grade fp16", "grade fp64", "grade FP32", "grade", "grade fp32\ngrade tf32",
    "inpt z: f32[2]", "input z f32[2]", "input inf: f32[2]", "none = relu(x)",
    "input z: f64[2]", "input z: f32[1.5]", "input z: f32[2,y]",
    "input z: f32[2", "input z: f32[2] 3", "input z: f32[9223372036854775808]",
    "input z: f32[2] $", "output y", "output x: f64", "output True", "output 1",
    "3 = relu(x)", "y = (x)", "y = ]\n)", "y = relu(x) # é\nz = relu(é)",
]
CALLS = [
    *(f"{name}(x)" for name in COMPOSED_OPS),
    "tanhh(x)", "relu x", "relu(x, x)", "relu(2)", "relu(xx)", "relu(x x)",
    "relu(x, dim=1)", "relu(x, input=x)", "relu([x])", "relu(x, 3=4)",
    "conv2d(x, w, weight=x)", "conv2d(x, w, stride=1, stride=2)",
    "conv2d(x, w, groups=none)", "conv2d(x, w, groups=True)",
    "conv2d(x, w, stride=1.5)", "conv2d(x, w, padding=same)",
    "conv2d(x, w, padding=none)", "conv2d(x, w, stride=[1,2,3])",
    "conv2d(x, w, dilation=[])", "conv2d(x, w, bias=1)",
    "max_pool2d(x)", "max_pool2d(x, kernel_size=2, stride=none)",
    "max_pool2d(x, kernel_size=2, ceil_mode=1)",
    "avg_pool2d(x, kernel_size=2, divisor_override=1.5)",
    "group_norm(x)", "group_norm(x, num_groups=none)",
    "group_norm(x, num_groups=2, eps=none)", "softmax(x)",
    "softmax(x, dim=[1])",
    "sum(x, keepdim=1)", "sum(x, dim=[1,a])", "sum(x, dim=1.0)",
    "add(x, True)", "add(x, 1e39)", "add(x, 1e-46)", "add(x, 1.2.3)",
    "add(x, 0xinf)", "add(x, -0xnan)", "add(x, 0XInfinity)", "add(x, infx)",
    "add(x, 1e)", "add(x, --1)", "add(x, +-1)", "add(x, 0x1p)", "add(x, .)",
    "add(x, 1_0)", "add(x, 0x)", "add(x, 0x1p200)", "add(x, infinity)",
    "add(x, [1])", "clamp(x, min=1e39)", "clamp(x, min=-1e999)",
    "clamp(x, min=x)", "clamp(x, min_val=1)", "hardtanh(x, min=1)",
    "gelu(x, approximate=fast)", "gelu(x, approximate=None)", "cast(x)",
    "cast(x, dtype=f64)", "cast(x, dtype=none)", "elu(x, alhpa=2)",
    "elu(x, alpha=)", "elu(x, alpha=1", "elu(x,, alpha=1)",
]


def message_of_kiln(text):
    """What `kiln` says of a text that it cannot read, or None."""
    done = subprocess.run([KILN, "--json", "validate", "-"],
                          input=text.encode(), capture_output=True)
    answer = json.loads(done.stdout)
    is_read = not answer.get("field", "").startswith(("line ", "plan text"))
    return None if is_read else answer["message"].removeprefix("-: ")


def message_of_python(text):
    try:
        plan_text.parse(text)
    except plan_text.PlanError as error:
        return error.message
    return None


def damaged(text, dice):
    """`text` with a piece cut out, doubled, or replaced by another's."""
    begin, size = dice.randrange(len(text)), dice.randint(1, 12)
    other = dice.randrange(len(text))
    middle = dice.choice(["", 2 * text[begin:begin + size],
                          text[other:other + size]])
    return text[:begin] + middle + text[begin + size:]


class RefusedTextTest(unittest.TestCase):
    def check(self, text):
        wanted = message_of_kiln(text)
        self.assertIsNotNone(wanted, text)
        self.assertEqual(message_of_python(text), wanted, text)

    def test_statements(self):
        for statement in STATEMENTS:
            with self.subTest(statement):
                self.check(INPUTS + statement)

    def test_calls(self):
        for call in CALLS:
            with self.subTest(call):
                self.check(f"{INPUTS}y = {call}\noutput y\n")

    def test_composed_ops_are_those_of_the_page(self):
        page = (ROOT / "docs" / "ops.md").read_text()
        section = page.split("## What other ops make")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"^\| `(\w+)` \|", section, re.M),
                         list(COMPOSED_OPS))

    def test_too_long_a_text(self):
        self.check("#" * ((1 << 20) + 1))

    def test_damaged_texts_are_refused_alike(self):
        dice = random.Random(SEED)
        for _ in range(DAMAGED_TEXTS):
            text = damaged(dice.choice(EXAMPLES).read_text(), dice)
            with self.subTest(text=text, seed=SEED):
                self.assertEqual(message_of_python(text) is None,
                                 message_of_kiln(text) is None)

    def test_the_error_says_where_what_and_what_is_allowed(self):
        with self.assertRaises(KilnError) as caught:
            plan_text.parse(INPUTS + "x = relu(x)\noutput x\n")
        error = caught.exception
        self.assertIsInstance(error, plan_text.PlanError)
        self.assertEqual(
            (error.code, error.field, error.value, error.limit),
            ("INVALID_ARGUMENT", "line 3, column 1", "'x'", "each name once"))


class ReadTextTest(unittest.TestCase):
    def op(self, call):
        return plan_text.parse(f"{INPUTS}y = {call}").ops[0]

    def test_examples(self):
        self.assertTrue(EXAMPLES)
        for path in EXAMPLES:
            with self.subTest(path.name):
                self.assertTrue(plan_text.parse(path.read_text()).outputs)

    def test_attributes(self):
        for call, attributes in [
                ("conv2d(x, w, stride=[2,1], padding=(0, 3), groups=4)",
                 {"stride": [2, 1], "padding": [0, 3], "groups": 4}),
                ("max(x, dim=none, keepdim=True)",
                 {"dim": [], "keepdim": True}),
                ("gelu(x, approximate=none)", {"approximate": "none"}),
                ("clamp(x, min=none, max=0x1.8p+1)", {"min": None, "max": 3.0}),
                ("cast(x, dtype=bf16)", {"dtype": "bf16"})]:
            with self.subTest(call):
                self.assertEqual(self.op(call).attributes, attributes)

    def test_operands_by_position_or_name(self):
        wanted = [plan_text.Value("x"), None, plan_text.Value("w")]
        for call in ("group_norm(x, bias=w, num_groups=2)",
                     "group_norm(x, none, w, num_groups=2)"):
            self.assertEqual(self.op(call).operands, wanted)

    def test_numbers_are_f32(self):
        self.assertEqual(self.op("add(x, 0.1)").operands[1],
                         plan_text.to_f32(0.1))
        self.assertEqual(self.op("add(x, -inf)").operands[1], -float("inf"))
        self.assertEqual(self.op("add(x, 0e-99)").operands[1], 0.0)

    def test_numbers_are_rounded_once(self):
        """As double these lie half way between two f32, and would be rounded
        to the even one."""
        for number, wanted in [("1.000000059604644775390626", 1 + 2**-23),
                               ("1.000000059604644775390625", 1.0),
                               ("1.000000178813934326171874", 1 + 2**-23)]:
            self.assertEqual(self.op(f"add(x, {number})").operands[1], wanted)

    def test_long_numbers_take_no_longer_than_others(self):
        digits = 200_000 * "1"
        with self.assertRaises(plan_text.PlanError):
            self.op(f"add(x, {digits}x)")


if __name__ == "__main__":
    unittest.main()
