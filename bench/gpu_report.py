"""What every result file says of where it was measured."""

import datetime
import subprocess


def environment(client):
    """Names, versions and the digest of the code generation."""
    import torch

    info = client.info()
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True, text=True).stdout.split("\n")[0].strip()
    return {"gpu": torch.cuda.get_device_name(0), "driver": driver,
            "cuda": torch.version.cuda, "nvrtc": info.nvrtc_version,
            "torch": torch.__version__,
            "kiln": info.version, "compiler": info.compiler,
            "date": datetime.date.today().isoformat()}


def report(part, client, ok, results):
    """The content of one result file."""
    return {"part": part, "ok": ok, **environment(client),
            "results": results}
