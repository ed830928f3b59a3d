"""A process that runs commands one after the other, and tells of each how it ended and what it cost."""

import contextlib
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


def serve() -> None:
    from leaktight.cli.main import main

    signal.signal(signal.SIGALRM, ring)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        words, folder = json.loads(line)
        os.chdir(folder)
        with open("/proc/self/clear_refs", "w") as forget:
            forget.write("5")
        before, out, err = spent(), io.StringIO(), io.StringIO()
        signal.alarm(PATIENCE)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
        except BaseException:
            code = -1
            err.write(traceback.format_exc())
        finally:
            signal.alarm(0)
        told = {"code": code, "out": out.getvalue()[-5000:], "err": err.getvalue()[-100_000:]}
        answers.write(json.dumps({**told, "seconds": spent() - before, "peak": peak()}) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
