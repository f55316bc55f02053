"""Names of kernels as people read them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable


def short_names(mangled: Iterable[str]) -> dict[str, str]:
    """void sorot::v0::attention::simt<sorot::v0::float16, 64, (bool)1>(Params) -> simt<float16, 64, 1>"""
    mangled = sorted(set(mangled))
    if not mangled:
        return {}
    listing = subprocess.run(["c++filt", *mangled], check=True, capture_output=True, text=True).stdout.splitlines()
    names = {}
    for key, name in zip(mangled, listing):
        name = re.sub(r"\((?:unsigned )?\w+\)(?=-?\d)", "", name)
        name = re.sub(r"\b(?:\w+::)+", "", name.replace("(anonymous namespace)::", ""))
        name = name.removeprefix("void ")
        end = name.rfind(">") + 1 or name.find("(")
        names[key] = name[:end] if end > 0 else name
    return names
