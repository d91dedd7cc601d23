"""What is done once a user imports a module of torch that this package does not import itself."""

import importlib.abc
import sys

_waiting = {}  # module -> what is done once it is loaded


def on_import(module, action):
    """action() once the module is loaded: now, if it is."""
    if module in sys.modules:
        action()
        return
    _waiting.setdefault(module, []).append(action)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a module as without it, and acts once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name not in _waiting:
            return None
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, found), None)
        if spec is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            for action in _waiting.pop(name, ()):
                action()

        spec.loader.exec_module = exec_module
        return spec


_finder = _Finder()
