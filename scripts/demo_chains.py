"""Runs the headline chains through a private kilnd and prints a table.

Called by scripts/demo, after the build. Needs only Python's own library.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / 'build' / 'bin'
TARGETS = ('h100-sxm', 'a100')
ROW = '{:28} {:10} {:12} {:>8} {:>8}   {:7} {:>9} {:>9}'


class DemoError(Exception):
    """A step did not do what it should; the text says which and how."""


@contextlib.contextmanager
def daemon(folder):
    """A kilnd of our own, with an empty cache, until the block ends."""
    socket = folder / 'kilnd.sock'
    log = folder / 'log'
    with log.open('w') as out:
        process = subprocess.Popen(
            [BIN / 'kilnd', '--socket', socket, '--cache-dir',
             folder / 'cache'], stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 20
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise DemoError(f'kilnd did not start: {log.read_text()}')
            time.sleep(0.02)
        yield socket
    finally:
        process.terminate()
        process.wait(timeout=40)


def kiln(socket, *arguments):
    """The JSON document that a `kiln` command prints."""
    command = [BIN / 'kiln', '--socket', socket, '--no-start', '--json',
               *arguments]
    done = subprocess.run(command, capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode != 0:
        raise DemoError(f'kiln {" ".join(map(str, arguments))} exited with '
                        f'{done.returncode}: {done.stderr or done.stdout}')
    return json.loads(done.stdout)


def device_of(socket):
    """The first GPU that the daemon can use, else the reference device."""
    devices = [d['device'] for d in kiln(socket, 'info')['devices']]
    gpus = [d for d in devices if d.startswith('cuda:')]
    return gpus[0] if gpus else 'cpu'


def compile_cold_and_warm(socket, plan):
    """[(target, key, cold ms, warm us)], after checking where each came from."""
    targets = ','.join(TARGETS)
    cold = kiln(socket, 'compile', plan, '--target', targets)['results']
    warm = kiln(socket, 'compile', plan, '--target', targets)['results']
    rows = []
    for first, second in zip(cold, warm):
        sources = (first['source'], second['source'])
        if sources != ('compiled', 'memory') or first['key'] != second['key']:
            raise DemoError(f'{plan}: expected compiled, then memory under '
                            f'one key; got {sources}')
        rows.append((first['target'], first['key'],
                     first['timing_us']['total'] / 1e3,
                     second['timing_us']['total']))
    return rows


def run_and_verify(socket, plan, device):
    """The largest error over all outputs against the double reference."""
    result = kiln(socket, 'run', plan, '--device', device, '--verify')
    if not result['verified']:
        raise DemoError(f'{plan}: wrong result: {result["outputs"]}')
    return max(o['max_abs_error'] for o in result['outputs'])


def main():
    plans = sorted((ROOT / 'examples' / 'plans').glob('p*.kiln'))
    print(ROW.format('chain', 'target', 'key', 'cold ms', 'warm us', 'device',
                     'max error', 'verified'))
    with tempfile.TemporaryDirectory(prefix='kiln-demo-') as folder:
        with daemon(pathlib.Path(folder)) as socket:
            device = device_of(socket)
            for plan in plans:
                rows = compile_cold_and_warm(socket, plan)
                error = run_and_verify(socket, plan, device)
                for target, key, cold, warm in rows:
                    print(ROW.format(plan.stem, target, key[:12],
                                     f'{cold:.0f}', f'{warm:.0f}', device,
                                     f'{error:.1e}', 'yes'), flush=True)
    if len(plans) != 4:
        raise DemoError(f'expected four plans in examples/plans, found '
                        f'{len(plans)}')


if __name__ == '__main__':
    try:
        main()
    except (DemoError, OSError, subprocess.SubprocessError) as error:
        print(f'demo: failed: {error}', file=sys.stderr)
        sys.exit(1)
    print('demo: ok')
