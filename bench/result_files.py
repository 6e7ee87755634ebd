"""What bench/results knows, by what it is about."""

import json

import generality_summary


class ResultFiles:
    """The files directly in `folder`, a pathlib.Path; those in folders below
    it are of other code generation."""

    def __init__(self, folder):
        self._folder = folder
        self.reports = {path.stem: json.loads(path.read_text())
                        for path in sorted(folder.glob("*.json"))}

    def below(self, name):
        """The files of a folder below, none if there is no such folder."""
        return ResultFiles(self._folder / name)

    def chains(self, grade):
        """{"P1": facts} of those that were timed, in order."""
        found = {}
        for report in self.reports.values():
            if report["part"].startswith("bench") and report["grade"] == grade:
                found.update(report["results"])
        return {name: facts for name, facts in sorted(found.items())
                if "kiln" in facts["times_ms"]}

    def generality(self, grade):
        """{row: facts} of all quarters there are."""
        rows = {}
        for results in self.of_kind("generality"):
            rows.update(generality_summary.of_grade(results, grade))
        return rows

    def may_be_of(self, name, compiler):
        """Digests of code generations, `compiler` among them, that make the
        same kernels of the plans of the file `name` (same_kernels.py)."""
        kinds = {name, name.split("-")[0]}
        return {compiler} | {
            report["measured"] for report in self.reports.values()
            if report["part"] == "same_kernels" and
            report["compiler"] == compiler and kinds & set(report["kinds"])}

    def of_trees_before(self):
        """Names of files that are of other code generation than the one that
        same_kernels.py has compared others with, which makes other kernels of
        some of their plans; none where it has not."""
        trees = {report["compiler"] for report in self.reports.values()
                 if report["part"] == "same_kernels"}
        return [name for name, report in self.reports.items()
                for tree in trees if report.get("compiler")
                not in self.may_be_of(name, tree)]

    def latency(self):
        """{"plain": {what: microseconds}, "mps": ...}, or None."""
        report = self.reports.get("latency")
        return report and report["results"]

    def environments(self):
        """{(gpu, driver, nvrtc, torch): [dates]}, dates sorted."""
        found = {}
        for report in self.reports.values():
            if "gpu" not in report:
                continue
            key = tuple(report[name]
                        for name in ("gpu", "driver", "nvrtc", "torch"))
            found.setdefault(key, set()).add(report["date"])
        return {key: sorted(dates) for key, dates in found.items()}

    def of_kind(self, kind):
        """Results of the files whose part is `kind` or "kind-N"."""
        return [report["results"] for report in self.reports.values()
                if report["part"].split("-")[0] == kind]
