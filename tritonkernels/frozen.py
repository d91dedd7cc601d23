"""A dict that stays as it is made, for the configs that all calls share."""


class FrozenDict(dict):
    def _refuse(self, *args, **kwargs):
        raise TypeError("a config is shared by all calls that have it: make another one, as in dict(config) | {...}")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self):
        return type(self), (dict(self),)
