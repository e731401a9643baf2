"""Libraries that are imported when they are first used: a table is printed without them."""

import importlib
import sys
from types import ModuleType
from typing import Any


class LateModule(ModuleType):
    """Stands for a module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def late(name: str) -> Any:
    """The module of this name, or what stands for it until it is needed."""
    return sys.modules.get(name) or LateModule(name)
