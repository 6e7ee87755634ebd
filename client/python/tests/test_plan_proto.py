"""Which plans that are made by hand become messages."""

import unittest

from kiln.plan_proto import grade_number, plan_message
from kiln.plan_text import Input, Op, Output, Plan, PlanError, Value


def plan(kind="relu", operands=None, attributes=None, **changes):
    """relu(x) or another op of x: f32[2,4,8,8]."""
    fields = {"grade": "fp32",
              "inputs": [Input("x", "f32", [2, 4, 8, 8], False)],
              "ops": [Op(kind, "y", operands or [Value("x")],
                         attributes or {})],
              "outputs": [Output("y", None)]}
    return Plan(**{**fields, **changes})


class PlanMessageTest(unittest.TestCase):
    def refuse(self, wrong, field, message):
        with self.assertRaises(PlanError) as caught:
            plan_message(wrong)
        self.assertEqual(caught.exception.message, f"{field}: {message}")

    def test_every_use_of_a_name_means_its_one_definition(self):
        text = ("input x: f32[4]\ninput w: f32[4]\nz = relu(x)\n"
                "y = add(z, w)\noutput y\n")
        add = plan_message(text).ops[1]
        self.assertEqual([operand.value for operand in add.operands], [2, 1])
        with self.assertRaisesRegex(PlanError, "line 3, .* a second time"):
            plan_message(text.replace("z", "x"))

    def test_a_second_definition_is_refused(self):
        twice = "is defined a second time (got 'x', allowed: each name once)"
        x = Input("x", "f32", [4], False)
        self.refuse(plan(inputs=[x, x]), "inputs[1].name", twice)
        self.refuse(plan(ops=[Op("relu", "x", [Value("x")], {})]),
                    "ops[0].name", twice)

    def test_names_without_a_value_are_refused(self):
        self.refuse(plan(operands=[Value("z")]), "ops[0].operands[0]",
                    "is not a value defined before (got 'z', allowed: an input "
                    "or the result of an op)")

    # Prevents a bare TypeError, as of a name that no table can be asked for.
    def test_names_that_are_no_strings_are_refused(self):
        for name in ([], {}, 3, None):
            no_string = f"is not a string (got {name!r}, allowed: a string)"
            self.refuse(plan(kind=name), "ops[0].kind", no_string)
            self.refuse(plan(operands=[Value(name)]), "ops[0].operands[0]",
                        no_string)
            self.refuse(plan(outputs=[Output(name, None)]), "outputs[0].value",
                        no_string)
            self.refuse(plan(ops=[Op("relu", name, [Value("x")], {})]),
                        "ops[0].name", no_string)
            self.refuse(plan(inputs=[Input(name, "f32", [4], False)]),
                        "inputs[0].name", no_string)
        self.refuse(plan(inputs=[Input("\ud800", "f32", [4], False)]),
                    "inputs[0].name", "is not a string of Unicode (got "
                    "'\\ud800', allowed: no surrogates)")

    def test_what_is_no_plan_is_refused(self):
        for wrong in (3, b"output x", ["output x"]):
            self.refuse(wrong, "plan",
                        f"is not a plan (got {wrong!r}, allowed: plan text or "
                        "a kiln.plan_text.Plan)")

    def test_what_is_not_known_is_refused(self):
        self.refuse(plan(grade="fp16"), "grade",
                    "is not a grade (got 'fp16', allowed: fp32 or tf32)")
        self.refuse(plan(kind="tanhh"), "ops[0].kind",
                    "is not an op (got 'tanhh', allowed: an op of "
                    "docs/plan-language.md)")
        self.refuse(plan(outputs=[Output("y", "f64")]), "outputs[0].dtype",
                    "is not a data type (got 'f64', allowed: f32, f16 or bf16)")
        self.refuse(plan("elu", attributes={"alhpa": 1.0}), "ops[0].alhpa",
                    "elu has no such attribute (got 1.0, allowed: alpha)")

    def test_attributes_are_of_their_type(self):
        for kind, member, name, value in [
                ("conv2d", "conv", "stride", 1.5),
                ("conv2d", "conv", "padding", "same"),
                ("conv2d", "conv", "dilation", [1, 2, 3]),
                ("conv2d", "conv", "groups", None),
                ("max_pool2d", "pool", "stride", None),
                ("max_pool2d", "pool", "ceil_mode", 1),
                ("clamp", "clamp", "min", 1e39),
                ("clamp", "clamp", "min", True),
                ("sum", "reduce", "dim", [1 << 63]),
                ("gelu", "gelu", "approximate", "fast"),
                ("cast", "cast", "dtype", "f64")]:
            with self.subTest(kind=kind, name=name, value=value):
                with self.assertRaises(PlanError) as caught:
                    plan_message(plan(kind, attributes={name: value}))
                self.assertEqual(caught.exception.field,
                                 f"ops[0].{member}.{name}")

    def test_constants_are_numbers_of_f32(self):
        for constant in (True, 1e39, "1"):
            with self.assertRaises(PlanError) as caught:
                plan_message(plan("add", [Value("x"), constant]))
            self.assertEqual(caught.exception.field, "ops[0].operands[1]")

    def test_attributes_arrive(self):
        op = plan_message(plan("hardtanh", attributes={
            "min_val": None, "max_val": 2})).ops[0]
        self.assertFalse(op.clamp.HasField("min"))
        self.assertEqual(op.clamp.max, 2.0)
        op = plan_message(plan("conv2d", attributes={
            "stride": 2, "padding": (0, 3)})).ops[0]
        self.assertEqual(list(op.conv.stride), [2])
        self.assertEqual(list(op.conv.padding), [0, 3])

    def test_the_grade_of_a_request(self):
        self.assertNotEqual(grade_number("fp32"), grade_number("tf32"))
        with self.assertRaisesRegex(PlanError, "got 'fp99', allowed: fp32 or"):
            grade_number("fp99")


if __name__ == "__main__":
    unittest.main()
