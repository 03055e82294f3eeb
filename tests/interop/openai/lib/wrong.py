"""Values of the wrong type for every member that the types of PyPI `openai` know."""

import typing

import typing_extensions

VALUES = {'text': 'x', 'int': 7, 'number': 0.5, 'bool': True, 'list': [7], 'object': {'x': 7}}


def bare(hint):
    """Without Required and the like."""
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired, typing_extensions.Required, typing.Annotated):
        hint = typing.get_args(hint)[0]
    return hint


def kinds(hint):
    """All that a hint allows, unions taken apart."""
    hint = bare(hint)
    if typing.get_origin(hint) is typing.Union:
        return [k for a in typing.get_args(hint) for k in kinds(a)]
    return [hint]


def json_type(hint):
    origin = typing.get_origin(hint)
    if typing_extensions.is_typeddict(hint) or origin is dict:
        return 'object'
    if origin is typing.Literal:
        return 'bool' if isinstance(typing.get_args(hint)[0], bool) else 'text'
    return {str: 'text', bool: 'bool', int: 'int', float: 'number', type(None): 'null', object: 'any'}.get(hint, 'list')


def allowed(hint):
    types = {json_type(k) for k in kinds(hint)}
    return types | ({'int'} if 'number' in types else set())


def fill(hint, depth=0):
    """A value that a hint allows, whole: with all members that it may have."""
    hint = kinds(hint)[0]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if typing_extensions.is_typeddict(hint):
        return {k: fill(h, depth + 1) for k, h in typing_extensions.get_type_hints(hint, include_extras=True).items()}
    if origin is typing.Literal:
        return args[0]
    if origin is dict:
        return {'key': fill(args[1])} if args[1] is not object else {}
    return {'text': 'x', 'int': 1, 'number': 1, 'bool': False, 'list': [fill(args[0])] if args else []}[json_type(hint)]


def wrongs(hint, path=()):
    """(path, a whole value at each step above it, the hint at its end): every member, in every kind of object."""
    for kind in kinds(hint):
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if typing_extensions.is_typeddict(kind):
            whole = fill(kind)
            for name, h in typing_extensions.get_type_hints(kind, include_extras=True).items():
                yield from placed(h, path, whole, name)
        elif origin is dict and args[1] is not object:
            yield from placed(args[1], path, {'key': fill(args[1])}, 'key')
        elif json_type(kind) == 'list':
            yield from placed(args[0], path, [fill(args[0])], 0)


def placed(hint, path, whole, step):
    here = path + ((whole, step),)
    yield here, hint
    yield from wrongs(hint, here)


def put(path, value):
    """The body that has this value at the end of the path."""
    for whole, step in reversed(path):
        copy = list(whole) if isinstance(whole, list) else dict(whole)
        copy[step] = value
        value = copy
    return value


def spelled(path):
    return ''.join(f'[{s}]' if isinstance(s, int) else f'.{s}' for _, s in path).lstrip('.')
