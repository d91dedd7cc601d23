"""The config of a launch: the caller's, else the first legal one of the design. Pure functions."""

from collections.abc import Mapping

from ..errors import ConfigError, UnsupportedError


def as_dict(config):
    """A triton.Config or a mapping of template constants, as a dict of JSON types."""
    if hasattr(config, "all_kwargs"):
        return {k: v for k, v in config.all_kwargs().items() if v is not None}
    return dict(config)


def choose_config(design, problem, target, explicit=None):
    """`explicit` (a config or a dict of its numbers) if it is one of the design's, else the design's first."""
    legal = list(design.configs(problem, target))
    if not legal:
        raise UnsupportedError(f"none of {design.name}'s configs fits {target.name}")
    if explicit is None:
        return legal[0]
    numbers = as_dict(explicit) if isinstance(explicit, Mapping) or hasattr(explicit, "all_kwargs") else None
    if numbers is None:
        raise ConfigError("config", type(explicit).__name__, "a triton.Config or a dict as in explain()")
    for config in legal:
        if numbers.items() <= as_dict(config).items():
            return config
    raise ConfigError("config", numbers, " | ".join(str(as_dict(c)) for c in legal))
