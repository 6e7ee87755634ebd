"""Runs cases on the GPU and appends one JSON line for each.

    gpu_worker.py SOCKET CASES.json RESULTS.jsonl DEADLINE_S

Its own process, because a faulty kernel takes the CUDA context with it:
scripts/gpu_check starts it again behind the case that did.
"""

import concurrent.futures
import dataclasses
import json
import sys
import time

import gpu_daemon  # extends sys.path

import torch

import accuracy
import gpu_cases
import kiln
import torch_plan
from kiln.errors import KilnError

GUARD_ELEMENTS = 128  # a multiple of every slot's alignment


def guarded(like, poison):
    """An output filled with `poison` between guards, and the whole."""
    whole = torch.full((like.numel() + 2 * GUARD_ELEMENTS,), poison,
                       dtype=like.dtype, device="cuda")
    inner = whole[GUARD_ELEMENTS:GUARD_ELEMENTS + like.numel()]
    return inner.reshape(like.shape), whole


def guards_hold(whole, poison):
    edges = torch.cat([whole[:GUARD_ELEMENTS], whole[-GUARD_ELEMENTS:]])
    expected = torch.full_like(edges, poison)
    return bool(torch.equal(edges.view(torch.uint8),
                            expected.view(torch.uint8)))


class Refused(Exception):
    """PyTorch does not evaluate the plan."""


class Truth:
    """What one plan's outputs are judged against."""

    def __init__(self, plan, tensors, grade=None):
        self._plan, self._tensors = plan, tensors
        self._grade = grade or plan.grade
        self._moved = None
        try:
            self.exact = torch_plan.evaluate(plan, tensors, torch.float64)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}"[:300]) from None
        self.note = ""
        try:
            self.eager = torch_plan.evaluate(plan, tensors, torch.float32)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:
            self.eager = self.exact
            self.note = f"{type(error).__name__}: {error}"[:300]

    def judge(self, index, output):
        exact = self.exact[index]
        eager = self.eager[index].to(output.dtype)
        verdict = accuracy.judge(output, exact, eager)
        if not verdict.ok and self._grade == "tf32":
            rounded = torch_plan.evaluate(self._plan, self._tensors,
                                          torch.float64, tf32_operands=True)
            verdict = accuracy.judge_by_rounding(verdict, output, exact,
                                                 rounded[index])
        if verdict.ok:
            return verdict
        return accuracy.judge_by_conditioning(
            verdict, output, exact, eager,
            [outputs[index] for outputs in self._draws()])

    def _draws(self):
        if self._moved is None:
            generator = torch.Generator("cuda")
            generator.manual_seed(1)
            self._moved = [
                torch_plan.evaluate(
                    self._plan, accuracy.perturbed(self._tensors, generator),
                    torch.float64)
                for _ in range(accuracy.DRAWS)]
        return self._moved


class Runner:

    def __init__(self, socket):
        self.client = kiln.connect(socket, auto_start=False)
        self.target = kiln.client.current_target()

    def compile(self, case, variant=""):
        return self.client.compile(case.text, self.target, variant=variant)

    def run(self, case, compiled, seed):
        """A dict of facts; "error" is there if anything is wrong."""
        plan = gpu_cases.read_plan(case)
        tensors = gpu_cases.inputs(case, plan, seed, torch)
        if case.set == "large":
            return self._run_large(plan, compiled, tensors)
        truth = Truth(plan, tensors)
        kernel = kiln.TorchKernel(compiled)
        eager = kiln.TorchKernel(self.compile(case, "eager"))
        # The graph comes last: capturing returns PyTorch's unused memory to
        # the driver, and registered memory must stay.
        runs = (("client", float("nan"),
                 lambda outs: kernel.launch(tensors, outs)),
                ("service", 77.0,
                 lambda outs: self._serve(compiled, tensors, outs)),
                ("eager", float("nan"),
                 lambda outs: eager.launch(tensors, outs)),
                ("graph", 77.0,
                 lambda outs: self._graph(kernel, tensors, outs)))
        facts = {"refused_in_f32": truth.note} if truth.note else {}
        for side, poison, launch in runs:
            pairs = [guarded(t, poison) for t in kernel.empty_outputs()]
            torch.cuda.synchronize()
            launch([inner for inner, _ in pairs])
            torch.cuda.synchronize()
            for index, (inner, whole) in enumerate(pairs):
                verdict = truth.judge(index, inner)
                facts[f"{side}{index}"] = dataclasses.asdict(verdict)
                if not verdict.ok:
                    facts.setdefault("error",
                                     f"{side} output {index}: {verdict.why}")
                if not guards_hold(whole, poison):
                    facts.setdefault(
                        "error", f"{side} output {index}: wrote outside")
        return facts

    def _run_large(self, plan, compiled, tensors):
        """One pointwise plan with one output, judged in slices: in double it
        would not fit on the device."""
        kernel = kiln.TorchKernel(compiled)
        (output,) = kernel.empty_outputs()
        runs = (("client", float("nan"),
                 lambda: kernel.launch(tensors, [output])),
                ("service", 77.0,
                 lambda: self._serve(compiled, tensors, [output])))
        facts = {}
        for side, poison, launch in runs:
            output.fill_(poison)
            launch()
            torch.cuda.synchronize()
            verdict = self._judge_slices(plan, tensors, output)
            facts[f"{side}0"] = dataclasses.asdict(verdict)
            if not verdict.ok:
                facts.setdefault("error", f"{side} output 0: {verdict.why}")
        return facts

    def _judge_slices(self, plan, tensors, output):
        """The worst verdict."""
        worst = None
        flat = [t.reshape(-1).split(accuracy.SLICE) for t in (*tensors, output)]
        for *inputs, part in zip(*flat):
            (exact,) = torch_plan.evaluate(plan, inputs, torch.float64)
            (eager,) = torch_plan.evaluate(plan, inputs, torch.float32)
            verdict = accuracy.judge(part, exact, eager.to(part.dtype))
            if worst is None or (worst.ok and not verdict.ok):
                worst = verdict
        return worst

    def _serve(self, compiled, tensors, outputs):
        with self.client.attach() as session:
            session.execute(compiled, tensors, outputs)

    def _graph(self, kernel, tensors, outputs):
        kernel.prepare(tensors, outputs, parameter_version=1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel.launch(tensors, outputs, parameter_version=1)
        graph.replay()
        graph.replay()


def compile_all(runner, cases):
    """(case, compiled or None, error) in order, compiled ahead in parallel."""
    def one(case):
        try:
            return case, runner.compile(case), ""
        except (KilnError, ValueError) as error:
            return case, None, f"compile: {error}"
    pool = concurrent.futures.ThreadPoolExecutor(16)
    try:
        yield from pool.map(one, cases)
    finally:
        pool.shutdown(cancel_futures=True)


def attempt(runner, case, compiled, seed):
    """The facts of a case, whatever happens in it. "aborted" says that this
    process's context is lost."""
    try:
        if case.set == "large":
            torch.cuda.empty_cache()
        return runner.run(case, compiled, seed)
    except Refused as refusal:
        return {"refused": str(refusal)}
    except torch.cuda.OutOfMemoryError as failure:
        torch.cuda.empty_cache()
        return {"error": f"out of memory: {failure}"[:200]}
    except KilnError as failure:
        return {"error": str(failure)[:300],
                "aborted": failure.code == "ABORTED"}
    except Exception as failure:
        return {"error": f"{type(failure).__name__}: {failure}"[:300],
                "aborted": context_is_lost()}


def context_is_lost():
    try:
        torch.cuda.synchronize()
        return False
    except RuntimeError:
        return True


def work(runner, cases, results_path, give_up):
    """Appends the facts of each case, until `give_up` of time.monotonic().
    `runner` compiles and runs as Runner does. Exits with 3 behind a case that
    loses the context."""
    seed = time.time_ns() % 2**31
    with open(results_path, "a", buffering=1) as results:
        for case, compiled, error in compile_all(runner, cases):
            if time.monotonic() > give_up:
                break
            results.write(json.dumps({"start": case.name}) + "\n")
            line = {"name": case.name, "seed": seed}
            if compiled is None:
                line["error"] = error
            else:
                line.update(attempt(runner, case, compiled, seed))
            aborted = line.pop("aborted", False)
            results.write(json.dumps(line) + "\n")
            if aborted:
                sys.exit(3)


def main():
    socket, cases_path, results_path, deadline = sys.argv[1:]
    give_up = time.monotonic() + float(deadline)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    names = set(json.load(open(cases_path)))
    everything = (gpu_cases.golden_cases() + gpu_cases.statistics_cases() +
                  gpu_cases.scale_cases() + gpu_cases.matrix_cases() +
                  [gpu_cases.large_case()])
    cases = [case for case in everything if case.name in names]
    work(Runner(socket), cases, results_path, give_up)


if __name__ == "__main__":
    main()
