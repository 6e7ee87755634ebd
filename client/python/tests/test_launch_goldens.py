"""The launch records of tests/goldens/launch_records, as the C++ test
tests/jit/run/launch_golden_test.cc runs them."""

import json
import pathlib
import unittest

from google.protobuf import json_format

from kiln.errors import KilnError
from kiln.launch import Areas, Device, LoadedArtifact
from kiln.messages import schema

GOLDENS = (pathlib.Path(__file__).parents[3] / "tests" / "goldens" /
           "launch_records")


class FakeDriver:
    """Writes the log that libfakecuda.so writes."""

    def __init__(self, properties):
        self._properties = properties
        self.device = Device(f"sm_90a/{properties['sm_count']}",
                             properties["sm_count"], 232448,
                             bool(properties["cooperative"]),
                             bool(properties["cluster"]),
                             properties.get("driver", 13000) >= 12030)
        self.capturing = False
        self.log = []

    def load_library(self, cubin):
        lines = [line.split() for line in cubin.decode().splitlines()]
        return {words[1]: (words[1], [int(w) for w in words[2:]])
                for words in lines}

    def load_kernel(self, library, symbol, max_dynamic_shared_bytes):
        return library[symbol]

    def parameter_bytes(self, kernel):
        return kernel[1]

    def allow_nonportable_cluster(self, kernel):
        pass

    def blocks_per_sm(self, kernel, step):
        return self._properties["blocks_per_sm"]

    def active_clusters(self, kernel, step):
        return self._properties["active_clusters"]

    def is_capturing(self, stream):
        return self.capturing

    def memset(self, address, size_bytes, stream):
        self.log.append(f"memset {address} {size_bytes}")

    def tensor_map(self, spec, address):
        def text(values):
            return ",".join(map(str, values))
        modes = (spec.interleave, spec.swizzle, spec.l2_promotion,
                 spec.oob_fill)
        return (f"map(type={spec.data_type};address={address};"
                f"dim={text(spec.global_dim)};"
                f"strides={text(spec.global_strides)};"
                f"box={text(spec.box_dim)};"
                f"elements={text(spec.element_strides)};modes={text(modes)})")

    def launch(self, kernel, step, arguments, stream):
        def extents(e):
            return f"{e.x},{e.y},{e.z}"
        words = [f"launch {kernel[0]} grid {extents(step.grid)} "
                 f"block {extents(step.block)}"]
        if step.cooperative:
            words.append("cooperative")
        if step.cluster.x * step.cluster.y * step.cluster.z > 1:
            words.append(f"cluster {extents(step.cluster)}")
        if (step.programmatic_stream_serialization and
                self.device.programmatic):
            words.append("overlapping")
        words.append(f"shared {step.dynamic_shared_bytes} args")
        for argument in arguments:
            if isinstance(argument, int):
                argument = argument.to_bytes(8, "little")
            words.append(argument if isinstance(argument, str)
                         else argument.hex())
        self.log.append(" ".join(words))


class LaunchGoldenTest(unittest.TestCase):

    def test_records_lead_to_the_driver_calls(self):
        files = sorted(GOLDENS.glob("*.json"))
        self.assertTrue(files)
        for file in files:
            with self.subTest(file.stem):
                self._run(json.loads(file.read_text()))

    def _run(self, golden):
        driver = FakeDriver(golden["device"])
        artifact = json_format.ParseDict(golden["artifact"],
                                         schema().Artifact())
        if "load_error" in golden:
            with self.assertRaises(KilnError) as caught:
                LoadedArtifact(driver, artifact)
            self.assertIn(golden["load_error"], str(caught.exception))
            return
        loaded = LoadedArtifact(driver, artifact)
        self.assertEqual(loaded.variant_index, golden["variant"])
        areas = Areas(golden["workspace"], golden["prepared"])
        for call in golden["calls"]:
            driver.capturing = bool(call["capturing"])
            driver.log = []
            loaded.launch(0, call["slots"], call["parameter_version"], areas)
            self.assertEqual(driver.log, call["driver"])


if __name__ == "__main__":
    unittest.main()
