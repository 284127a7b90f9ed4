"""``python tests/fsm/library/run.py``: the library's own tests, with our fast machines for its own; again with plans
that are made and followed from the first trigger on, since most tests fire once."""

import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
EVERYTHING = ("--ignore", "tests/test_codestyle.py", "tests")
RUNS = {
    "HierarchicalMachine": EVERYTHING,
    "Machine": EVERYTHING,
    "LockedMachine": ("tests/test_threading.py", "tests/test_states.py"),
    "AsyncMachine": ("tests/test_async.py",),
}


def main(arguments: list[str]) -> int:
    wanted = f"transitions=={version('transitions')}"
    with tempfile.TemporaryDirectory() as folder:
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        fetch += ["--no-binary", "transitions", "--dest", folder, wanted]
        subprocess.run(fetch, check=True)
        (archive,) = Path(folder).glob("transitions-*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        sources = archive.with_name(archive.name.removesuffix(".tar.gz"))
        (sources / "transitions").rename(sources / "unused")  # or it would hide what is installed
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "no:asyncio", "-p", "no:quadriga-fsm", "-p", "substitute", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(HERE)}
        running = {}
        for machine, forced in [(name, forced) for name in RUNS for forced in ("", "1")]:
            with (Path(folder) / (machine + forced)).open("w") as said:
                wanted_of = {"QUADRIGA_SUBSTITUTE": machine, "QUADRIGA_FORCE_PLANS": forced}
                running[machine + forced] = subprocess.Popen(
                    [*command, *RUNS[machine]],
                    cwd=sources,
                    env=environment | wanted_of,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                )
        for machine, process in running.items():
            process.wait()
            print((Path(folder) / machine).read_text(), flush=True)
        return max(process.returncode for process in running.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
