"""For the programs of this folder: TAP, the package of this tree, the stand-in of the server."""
import logging
import os
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
logging.getLogger("asyncio").setLevel(logging.ERROR)  # unittest makes it report slow steps
sys.path[:0] = [os.path.join(TREE, "python", "tests"), os.path.join(TREE, "python")]

import tap  # noqa: E402

__all__ = ["HERE", "TREE", "tap"]
