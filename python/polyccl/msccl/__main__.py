"""Runs an MSCCLang script on the PolyCCL compiler, which makes the plans that the script prints."""

import argparse
import os
import runpy
import sys
import traceback

from .. import Error
from . import install
from .language import settings


def _arguments():
    parser = argparse.ArgumentParser(prog="python3 -m polyccl.msccl", description=__doc__)
    parser.add_argument("--format", choices=["xml", "azure", "rccl", "plan"], default="xml",
                        help="what XML() prints: MSCCL XML, the Azure executor's dialect, or PolyCCL's plan text")
    parser.add_argument("--policy", choices=["connection", "state"], default="connection",
                        help="how operations are placed: MSCCLang's way, or ResCCL's (needs --topology, --format plan)")
    parser.add_argument("--schedule", choices=["hpds", "round-robin", "best"], default="hpds",
                        help="policy state: in which order tasks go")
    parser.add_argument("--topology", metavar="MACHINE", help="policy state: a shipped machine or a file")
    parser.add_argument("--unverified", action="store_true",
                        help="print plans without proof, even of programs that do not do what their collective says")
    parser.add_argument("--traceback", action="store_true", help="show where in the script an error came from")
    parser.add_argument("script", metavar="SCRIPT", help="the MSCCLang script")
    parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the script's own arguments")
    return parser.parse_args()


def _describe(error, script):
    """Returns one line: the place in the script, if there is one, and the error."""
    if isinstance(error, Error):
        return str(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [frame for frame in traceback.extract_tb(error.__traceback__)
              if not frame.filename.startswith((package, "<frozen")) and frame.filename != runpy.__file__]
    own = [frame for frame in places if os.path.abspath(frame.filename) == os.path.abspath(script)] or places
    return f"{own[-1].filename}:{own[-1].lineno}: {text}" if own else text


def main():
    options = _arguments()
    settings.format, settings.verify = options.format, not options.unverified
    settings.compile = {"policy": options.policy, "schedule": options.schedule, "topology": options.topology}
    install()
    sys.argv = [options.script] + options.args
    if sys.path and sys.path[0] == os.getcwd():
        sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    try:
        if not os.path.isfile(options.script):
            raise Error(f"{options.script}: there is no such file")
        runpy.run_path(options.script, run_name="__main__")
        sys.stdout.flush()
    except SystemExit as exit:
        if exit.code not in (None, 0) or not settings.failed:
            raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if options.traceback:
            traceback.print_exc()
        print(f"polyccl.msccl: {_describe(error, options.script)}", file=sys.stderr)
        return 2
    return 2 if settings.failed else 0


if __name__ == "__main__":
    sys.exit(main())
