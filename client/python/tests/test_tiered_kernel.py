"""When TieredKernel goes from eager kernels to fast ones. PyTorch and the daemon
are stood in for."""

import concurrent.futures
import gc
import sys
import threading
import types
import unittest
import warnings
import weakref
from unittest import mock

TORCH = mock.MagicMock()
TORCH.cuda.get_device_properties.return_value = types.SimpleNamespace(
    major=9, minor=0, multi_processor_count=132)
TORCH.cuda.OutOfMemoryError = MemoryError
sys.modules["torch"] = TORCH

from kiln import tiered_kernel  # noqa: E402
from kiln.errors import KilnError  # noqa: E402


class FakeClient:
    """Answers the variant eager at once, the fast one once it is told to."""

    def __init__(self, is_cached=False, error=None):
        self.is_cached = is_cached
        self.error = error
        self.may_finish = threading.Event()
        self.requests = []

    def compile(self, plan, target, *, grade=None, variant="",
                hit_only=False):
        self.requests.append((target, grade, variant, hit_only))
        if hit_only and not self.is_cached:
            raise KilnError("NOT_FOUND", "It is not in the cache.")
        if variant == "eager" or hit_only:
            return variant or "fast"
        self.may_finish.wait(10)
        if self.error is not None:
            raise self.error
        return "fast"


class FakeKernel:
    def __init__(self, compiled, device):
        self.compiled = compiled

    def __call__(self, *inputs, parameter_version=0):
        return [self.compiled, *inputs]


class TieredKernelTest(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(tiered_kernel, "TorchKernel", FakeKernel)
        patch.start()
        self.addCleanup(patch.stop)
        TORCH.cuda.is_current_stream_capturing.return_value = False

    def test_eager_until_the_fast_kernels_are_there(self):
        client = FakeClient()
        kernel = tiered_kernel.TieredKernel(client, "plan", grade="tf32")
        self.assertEqual(kernel(1), ["eager", 1])
        self.assertFalse(kernel.is_fast)
        client.may_finish.set()
        kernel.wait(10)
        self.assertTrue(kernel.is_fast)
        self.assertEqual(kernel(2), ["fast", 2])
        self.assertEqual(client.requests,
                         [("sm_90a/132", "tf32", "", True),
                          ("sm_90a/132", "tf32", "eager", False),
                          ("sm_90a/132", "tf32", "", False)])

    def test_a_cached_plan_is_fast_from_the_start(self):
        client = FakeClient(is_cached=True)
        kernel = tiered_kernel.TieredKernel(client, "plan")
        self.assertTrue(kernel.is_fast)
        kernel.wait()
        self.assertEqual(kernel(), ["fast"])
        self.assertEqual(len(client.requests), 1)

    def test_stays_eager_in_a_capture_which_keeps_its_memory(self):
        client = FakeClient()
        kernel = tiered_kernel.TieredKernel(client, "plan")
        client.may_finish.set()
        concurrent.futures.wait([kernel._coming], 10)
        eager = weakref.ref(kernel._kernel)
        TORCH.cuda.is_current_stream_capturing.return_value = True
        self.assertEqual(kernel(), ["eager"])
        with self.assertRaisesRegex(KilnError, "before the capture"):
            kernel.wait()
        TORCH.cuda.is_current_stream_capturing.return_value = False
        self.assertEqual(kernel(), ["fast"])
        gc.collect()
        self.assertIsNotNone(eager())

    def test_eager_kernels_are_let_go_once_they_are_done(self):
        client = FakeClient()
        kernel = tiered_kernel.TieredKernel(client, "plan")
        eager = weakref.ref(kernel._kernel)
        client.may_finish.set()
        kernel.wait(10)
        gc.collect()
        self.assertIsNone(eager())
        TORCH.cuda.synchronize.assert_called()

    def test_stays_eager_and_warns_once_where_compiling_fails(self):
        client = FakeClient(error=KilnError("INTERNAL", "no registers"))
        kernel = tiered_kernel.TieredKernel(client, "plan")
        client.may_finish.set()
        concurrent.futures.wait([kernel._coming], 10)
        with self.assertWarnsRegex(UserWarning, "no registers"):
            self.assertEqual(kernel(), ["eager"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(kernel(), ["eager"])
        self.assertFalse(kernel.is_fast)

    def test_an_error_of_earlier_launches_is_kept_for_wait(self):
        client = FakeClient()
        kernel = tiered_kernel.TieredKernel(client, "plan")
        client.may_finish.set()
        error = RuntimeError("an illegal address")
        with mock.patch.object(TORCH.cuda, "synchronize", side_effect=error):
            with self.assertRaisesRegex(RuntimeError, "illegal address"):
                kernel.wait(10)
        with self.assertRaisesRegex(RuntimeError, "illegal address"):
            kernel.wait(10)
        self.assertFalse(kernel.is_fast)

    def test_waiting_says_why_compiling_failed(self):
        client = FakeClient(error=KilnError("INTERNAL", "no registers"))
        kernel = tiered_kernel.TieredKernel(client, "plan")
        client.may_finish.set()
        for _ in range(2):
            with self.assertRaisesRegex(KilnError, "no registers"):
                kernel.wait(10)
        self.assertEqual(kernel(), ["eager"])

    def test_what_cannot_be_loaded_is_no_error_of_a_launch(self):
        client = FakeClient()
        kernel = tiered_kernel.TieredKernel(client, "plan")
        client.may_finish.set()
        concurrent.futures.wait([kernel._coming], 10)
        with mock.patch.object(tiered_kernel, "TorchKernel",
                               side_effect=RuntimeError("out of memory")):
            with self.assertWarnsRegex(UserWarning, "out of memory"):
                self.assertEqual(kernel(), ["eager"])

    def test_without_memory_for_eager_kernels_the_fast_ones_are_waited_for(self):
        client = FakeClient()
        client.may_finish.set()

        def load(compiled, device):
            if compiled == "eager":
                raise MemoryError
            return FakeKernel(compiled, device)

        with mock.patch.object(tiered_kernel, "TorchKernel", load):
            kernel = tiered_kernel.TieredKernel(client, "plan")
        self.assertTrue(kernel.is_fast)
        self.assertEqual(kernel(), ["fast"])

    def test_other_errors_are_not_taken_for_a_miss(self):
        client = FakeClient()
        client.compile = mock.Mock(side_effect=KilnError("UNAVAILABLE", "gone"))
        with self.assertRaisesRegex(KilnError, "gone"):
            tiered_kernel.TieredKernel(client, "plan")


if __name__ == "__main__":
    unittest.main()
