"""MSCCLang scripts, unmodified, on the PolyCCL compiler: `python3 -m polyccl.msccl SCRIPT ARGS`.

install() makes this package importable as `msccl`, so that `from msccl.language import *`,
`from msccl.topologies import *` and `from msccl.language.collectives import AllReduce` work in scripts.
"""

import importlib
import pkgutil
import sys


def install():
    """Enters this package and all its modules into sys.modules as msccl and msccl.*."""
    package = sys.modules[__name__]
    sys.modules["msccl"] = package
    for found in pkgutil.walk_packages(package.__path__, __name__ + "."):
        if not found.name.endswith("__main__"):
            sys.modules["msccl" + found.name[len(__name__):]] = importlib.import_module(found.name)
