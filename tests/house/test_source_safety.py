"""Nothing of ours unpickles, evaluates text or starts a shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from outrider_doubles.repository import relative, source_files

FORBIDDEN_MODULES = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "_pickle"}
FORBIDDEN_BUILTINS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_ATTRIBUTES = {"recv_pyobj", "send_pyobj", "full_load", "unsafe_load"}
FORBIDDEN_CALLS = {"torch.load", "yaml.load", "os.system", "os.popen", "numpy.load", "np.load"}
FORBIDDEN_TRUE_KEYWORDS = {"shell", "allow_pickle", "trust_remote_code"}


def test_no_source_file_unpickles_or_evaluates() -> None:
    found = [f"{relative(file)}:{fault}" for file in source_files() for fault in faults(file.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from cloudpickle import loads",
        "import a, dill.source",
        "def f():\n    import marshal",
        "eval('1')",
        "exec(text)",
        "__import__(name)",
        "torch.load(path)",
        "yaml.load(text, Loader)",
        "yaml.unsafe_load(text)",
        "socket.recv_pyobj()",
        "os.system('ls')",
        "np.load(path)",
        "run(command, shell=True)",
        "from_pretrained(path, trust_remote_code=True)",
    ],
)
def test_the_gate_finds(text: str) -> None:
    assert list(faults(text))


@pytest.mark.parametrize(
    "text", ["model.eval()", "yaml.safe_load(text)", "re.compile('x')", "run(command, shell=False)"]
)
def test_the_gate_lets_pass(text: str) -> None:
    assert list(faults(text)) == []


def faults(text: str) -> Iterator[str]:
    """Line and wording of everything in the Python source `text` that is forbidden here."""
    for node in ast.walk(ast.parse(text)):
        if _is_forbidden(node):
            yield f"{getattr(node, 'lineno', 0)}: {ast.unparse(node)[:80]}"


def _is_forbidden(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(alias.name.split(".")[0] in FORBIDDEN_MODULES for alias in names)
        case ast.ImportFrom(module=str(module)):
            return module.split(".")[0] in FORBIDDEN_MODULES
        case ast.Attribute(attr=attribute):
            return attribute in FORBIDDEN_ATTRIBUTES or ast.unparse(node) in FORBIDDEN_CALLS
        case ast.Name(id=name, ctx=ast.Load()):
            return name in FORBIDDEN_BUILTINS
        case ast.keyword(arg=str(keyword), value=ast.Constant(value=True)):
            return keyword in FORBIDDEN_TRUE_KEYWORDS
    return False
