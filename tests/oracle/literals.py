# SPDX-License-Identifier: Apache-2.0
"""Lists of dictionaries written as Python literals, and the names in them."""
import ast
import functools
import io
import re
import tokenize
import warnings

PLAIN_STRING = re.compile(rb"'(?:[^'\\\n]|\\[^\n])*'|\"(?:[^\"\\\n]|\\[^\n])*\"", re.DOTALL)
WHITE_SPACE = " \t\r\n\f\v"
FAILURES = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)


def parse_list(text):
    """The value of a text that is one list display, or None.

    Allowed inside are lists, dictionaries, tuples, strings, numbers with a sign, None, True, False.
    What else Python would compute (sets, calls, sums, complex numbers, bytes, formatted strings,
    strings put side by side) is refused.
    """
    source = text.strip(WHITE_SPACE)
    if not source.startswith("["):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # An unknown escape such as \d keeps its backslash.
            tree = ast.parse(source, mode="eval").body
            if not isinstance(tree, ast.List):
                return None
            lines = source.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")
            return _convert(tree, lines)
    except FAILURES:
        return None


def _convert(node, lines):
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_convert(element, lines) for element in node.elts]
    if isinstance(node, ast.Dict):
        return {
            _convert_key(key, lines): _convert(value, lines)
            for key, value in zip(node.keys, node.values)
        }
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        if isinstance(node.operand, ast.Constant) and type(node.operand.value) in (int, float):
            return -node.operand.value if isinstance(node.op, ast.USub) else node.operand.value
    if isinstance(node, ast.Constant):
        if node.value is None or type(node.value) in (int, float, bool):
            return node.value
        if isinstance(node.value, str) and _is_one_string(node, lines):
            return node.value
    raise ValueError("not a literal of a kind that is allowed")


def _convert_key(node, lines):
    if node is None or isinstance(node, (ast.List, ast.Dict)):
        raise ValueError("not a key")
    key = _convert(node, lines)
    return tuple(key) if isinstance(key, list) else key


def _is_one_string(node, lines):
    """Whether the string is one literal; 'a' 'b' is two, though the tree shows one constant."""
    if node.lineno == node.end_lineno:
        source = lines[node.lineno - 1][node.col_offset : node.end_col_offset]
    else:
        inner = lines[node.lineno : node.end_lineno - 1]
        first = lines[node.lineno - 1][node.col_offset :]
        source = b"\n".join([first, *inner, lines[node.end_lineno - 1][: node.end_col_offset]])
    if PLAIN_STRING.fullmatch(source):
        return True
    tokens = tokenize.tokenize(io.BytesIO(b"(" + source + b")").readline)
    try:
        return sum(token.type == tokenize.STRING for token in tokens) == 1
    except tokenize.TokenError:
        return False


@functools.lru_cache(maxsize=1 << 16)
def names(text):
    """The string under 'name' of every entry that is a dictionary with one, in order, as bytes.

    A text that does not parse has no entries.
    """
    try:
        entries = parse_list(text.decode("utf-8")) or []
    except UnicodeDecodeError:
        return ()
    found = [entry["name"] for entry in entries if isinstance(entry, dict) and "name" in entry]
    return tuple(
        name.encode("utf-8", errors="surrogatepass") for name in found if isinstance(name, str)
    )
