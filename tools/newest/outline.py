"""Writes the interface of Python sources, a line each, without importing them: classes with their fields, functions with their parameters, and the
routes that decorators and texts name. What begins with one underscore is left out. Arguments: a folder, then files below it.
"""

import ast
import sys
from pathlib import Path

VERBS = {"get", "post", "put", "patch", "delete", "tool"}


def decorator(node: ast.expr) -> str | None:
    """``@router.post("/search", ...)`` as ``POST /search``, ``@mcp.tool()`` as ``TOOL``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in VERBS:
        path = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        return " ".join([node.func.attr.upper(), *path])
    return None


def paths(node: ast.AST) -> list[str]:
    """Texts that are paths of an API, with holes for what is put into them."""
    found = []
    pieces = {id(value) for part in ast.walk(node) if isinstance(part, ast.JoinedStr) for value in part.values}
    for part in ast.walk(node):
        text = ""
        if isinstance(part, ast.JoinedStr):
            text = "".join(value.value if isinstance(value, ast.Constant) else "{}" for value in part.values)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in pieces:
            text = part.value
        if text.startswith("/") and " " not in text and len(text) > 3 and text not in found:
            found.append(text)
    return found


def parameters(node: ast.arguments) -> str:
    """Without the descriptions of ``Field``."""
    for default in [*node.defaults, *node.kw_defaults]:
        if isinstance(default, ast.Call):
            default.keywords = [keyword for keyword in default.keywords if keyword.arg != "description"]
    return ast.unparse(node)


def outline(body: list[ast.stmt], prefix: str) -> list[str]:
    lines = []
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            lines.append(f"{prefix}class {node.name}({', '.join(ast.unparse(base) for base in node.bases)})")
            lines += outline(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (not node.name.startswith("_") or node.name == "__init__"):
            routes = [route for route in map(decorator, node.decorator_list) if route]
            said = [*routes, *(path for path in paths(node) if not routes)]
            lines.append(f"{prefix}{node.name}({parameters(node.args)})" + "".join(f" [{route}]" for route in said))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
            lines.append(f"{prefix}{node.target.id}: {ast.unparse(node.annotation)}")
    return lines


root = Path(sys.argv[1])
for pattern in sys.argv[2:]:
    files = sorted(root.glob(pattern))
    if not files:
        sys.exit(f"no file {pattern}: the package keeps its interface elsewhere now")
    for file in files:
        print(f"# {file.relative_to(root)}")
        print("\n".join(outline(ast.parse(file.read_text()).body, "")))
