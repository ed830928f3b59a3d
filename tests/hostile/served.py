"""A process that runs commands one after the other, and says of each how it ended and what it cost."""

import contextlib
import importlib
import io
import json
import os
import resource
import signal
import sys
import traceback

PATIENCE = 120


class Hangs(BaseException):
    """Nothing happened for too long."""


def ring(number: int, frame: object) -> None:
    raise Hangs


def spent() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def peak() -> int:
    """Return the most memory since it was last forgotten, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10


def run(words: list[str], folder: str) -> dict[str, object]:
    from leaktight.cli.main import main

    os.chdir(folder)
    with open("/proc/self/clear_refs", "w") as forget:
        forget.write("5")
    before, out, err = spent(), io.StringIO(), io.StringIO()
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except BaseException:
        code = -1
        err.write(traceback.format_exc())
    told = {"code": code, "out": out.getvalue()[-5000:], "err": err.getvalue()[-100_000:]}
    return {**told, "seconds": spent() - before, "peak": peak()}


def serve() -> None:
    # What commands load when they need it: once, and not in each of their processes.
    for name in ("plans", "running", "captures", "papers", "report", "search", "wire"):
        importlib.import_module(f"leaktight.{name}")
    importlib.import_module("sklearn.datasets")
    models = importlib.import_module("leaktight.models")
    models.Factory(function="leaktight.models.factory:example").build((1, 8, 8), classes=2, seed=0)
    for line in sys.stdin:
        # Each runs in a process of its own, as nobody's memory but its own shall count.
        child = os.fork()
        if not child:
            answer = run(*json.loads(line))
            os.write(1, json.dumps(answer).encode() + b"\n")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            err = f"Traceback: the process ended with {os.waitstatus_to_exitcode(status)}"
            os.write(1, json.dumps({"code": -1, "out": "", "err": err, "seconds": 0.0, "peak": 0}).encode() + b"\n")


if __name__ == "__main__":
    serve()
