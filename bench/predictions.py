"""What the models of kilnd predict of a plan, by `kiln explain`."""

import json
import subprocess

import gpu_daemon

# The models are of it (docs/schedules.md).
_TARGET = "h100-sxm"


def of_plan(socket, text):
    """Microseconds of all kernels of a launch, with what launches cost left
    out. Raises CalledProcessError with what kiln says."""
    answer = subprocess.run(
        [str(gpu_daemon.BUNDLE / "bin" / "kiln"), "--socket", socket,
         "--no-start", "--json", "explain", "-", "--schedule", "--target",
         _TARGET],
        input=text, capture_output=True, text=True, check=True, timeout=60)
    return total(json.loads(answer.stdout))


def total(explanation):
    """The same of what `kiln --json explain --schedule` prints of one target:
    of the variant that is taken."""
    kernels = explanation["results"][0]["schedule"]["variants"][0]["kernels"]
    return sum(kernel["predicted_us"] or 0.0 for kernel in kernels
               if not kernel["prepares"])
