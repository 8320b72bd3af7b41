"""Classes of at most 60 members, functions of at most 60 lines, a small simulated device."""

import ast
import re

MAX_MEMBERS = 60
MAX_FUNCTION_LINES = 60
MAX_SIMULATOR_LINES = 44_640
CODE = {"runtime", "jit", "worker", "tune", "kernels_src", "engine", "bindings"}
# A row for each name: functions of bindings, names of the host's library.
TABLES = re.compile(r"^bindings/.*/bind_\w+\.cpp$|^jit/source/host_names\.cpp$")

COMMENT_OR_TEXT = re.compile(
    r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
)
CLASS = re.compile(
    r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*(\w+)[^;{}()]*\{"
)
NO_MEMBER = re.compile(r"^(?:using|typedef|friend|static_assert|public|private|protected)\b")


def without_comments(text):
    """Comments and literals become blanks; line breaks stay."""
    return COMMENT_OR_TEXT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def end_of(text, begin):
    """The place of the closing brace for the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    return len(text)


def members_of(body):
    """Declarations of a class's body: data, functions (each overload), constructors.

    Types within it, aliases and friends are none; a type that declares a member with it is one.
    """
    count, at, statement = 0, 0, ""
    while at < len(body):
        char = body[at]
        if char == "{":
            at = end_of(body, at)
            head = statement.strip()
            if "(" in head and not re.match(r"(?:class|struct|enum|union)\b", head):
                count, statement = count + 1, ""
        elif char == ";":
            head = re.sub(r"^(?:(?:public|private|protected)\s*:\s*)+", "", statement.strip())
            is_type = re.match(r"(?:class|struct|enum|union)\b[^;]*$", head) and not re.search(
                r"[\w>&*]\s+[&*]*\w+\s*(?:\[.*\])?(?:=.*)?$", re.sub(r":.*", "", head[6:])
            )
            if head and not is_type and not NO_MEMBER.match(head):
                count += 1
            statement = ""
        else:
            statement += char
        at += 1
    return count


def classes(text):
    bare = without_comments(text)
    for match in CLASS.finditer(bare):
        if not re.search(r"\benum\s+$", bare[: match.start()]):
            begin = match.end() - 1
            yield match[1], members_of(bare[begin + 1 : end_of(bare, begin)])


FUNCTION = re.compile(
    r"^( *)(?!(?:namespace|class|struct|enum|union|if|for|while|switch|else|do)\b)"
)


def long_functions(text):
    """First lines and lengths: after clang-format the last line has the indent of the first."""
    lines = without_comments(text).split("\n")
    begin = None
    for number, line in enumerate(lines):
        if begin is None and line.rstrip().endswith("{") and FUNCTION.match(line):
            head = number
            while (
                head > 0 and lines[head - 1].strip() and lines[head - 1].strip()[-1] not in ";{}:"
            ):
                head -= 1
            declaration = " ".join(lines[head : number + 1])
            if "(" in declaration and FUNCTION.match(lines[head]):
                begin, indent = head, re.match(r" *", lines[head])[0]
        elif begin is not None and line.startswith(indent + "}"):
            if number - begin + 1 > MAX_FUNCTION_LINES:
                yield begin + 1, number - begin + 1
            begin = None


def test_no_class_has_more_than_60_members(root, tracked):
    large = [
        f"{path}: {name} has {members} members"
        for path in tracked
        if path.parts[0] in CODE and path.suffix in {".h", ".cpp"}
        for name, members in classes((root / path).read_text())
        if members > MAX_MEMBERS
    ]
    assert not large, "\n".join(large)


def test_no_function_has_more_than_60_lines(root, tracked):
    long = [
        f"{path}:{line}: {lines} lines"
        for path in tracked
        if path.parts[0] in CODE and path.suffix in {".h", ".cpp"}
        if not TABLES.match(path.as_posix())
        for line, lines in long_functions((root / path).read_text())
    ]
    for path in tracked:
        if path.parts[0] in CODE and path.suffix == ".py":
            for node in ast.walk(ast.parse((root / path).read_text())):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    has_docstring = ast.get_docstring(node) is not None
                    first = node.body[0]
                    begin = first.end_lineno + 1 if has_docstring else first.lineno
                    if node.end_lineno - begin + 1 > MAX_FUNCTION_LINES:
                        long.append(f"{path}:{node.lineno}: {node.end_lineno - begin + 1} lines")
    assert not long, "\n".join(long)


def test_the_lint_counts():
    text = "struct A {\n  int a, b;\n  void f(); // x;\n  int g() { return 1; }\n"
    text += "  struct B { int c; };\n};"
    assert dict(classes(text)) == {"A": 3, "B": 1}
    body = "\n".join(["  f();"] * 60)
    assert list(long_functions(f"void g(int a) {{\n{body}\n}}\n")) == [(1, 62)]


def test_the_simulated_device_stays_small(root, tracked):
    files = [path for path in tracked if path.as_posix().startswith("runtime/sim/")]
    assert files
    lines = sum(len((root / path).read_text().splitlines()) for path in files)
    assert lines <= MAX_SIMULATOR_LINES
