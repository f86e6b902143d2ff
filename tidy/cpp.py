"""Just enough C++ reading for the checks: blanked comments and strings, and the extent of functions."""

import re


def blank(text, comments=True):
    """The text with comments, strings and character literals blanked, of the same length and lines.
    Without `comments` those stay."""
    out = []
    i, n = 0, len(text)
    while i < n:
        c = text[i]
        begin = i
        if text.startswith("//", i):
            end = text.find("\n", i)
            end = n if end < 0 else end
        elif text.startswith("/*", i):
            end = text.find("*/", i)
            end = n if end < 0 else end + 2
        elif c == '"' and re.search(r"(?<!\w)(u8|[uUL])?R$", text[max(0, i - 3):i]):
            open_paren = text.find("(", i)
            end = text.find(")" + text[i + 1:open_paren] + '"', i)
            end = n if end < 0 else end + open_paren - i + 1
        elif c == '"' or (c == "'" and not (i > 0 and text[i - 1].isalnum())):
            end = i + 1
            while end < n and text[end] != c and text[end] != "\n":
                end += 2 if text[end] == "\\" else 1
            end = min(n, end + 1)
        else:
            out.append(c)
            i += 1
            continue
        kept = c == "/" and not comments
        out.append(text[begin:end] if kept else re.sub(r"[^\n]", " ", text[begin:end]))
        i = end
    return "".join(out)


def without_preprocessor(code):
    """Blanks preprocessor lines with their continuations."""
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group()), code)


def includes(text):
    """(line number, header, quoted?) of every include."""
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
        if match:
            yield number, match.group(1) or match.group(2), match.group(1) is not None


_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def _is_function_head(head):
    """Whether an opening brace after this head begins a function's body."""
    if "(" not in head or re.search(r"=\s*$", head):
        return False
    if re.match(r"\s*(template\s*<.*>\s*)?(inline\s+)?(namespace|enum)\b", head, re.S):
        return False
    if re.match(r"\s*(template\s*<.*>\s*)?(class|struct|union)\b", head, re.S):
        return re.search(r"\)\s*(const|noexcept|override|final|&|\s)*$", head) is not None
    return True


def _is_member_initializer(head):
    """Whether the brace initialises a member in a constructor's list rather than opening the body."""
    return re.search(r"\)\s*(noexcept\s*)?:(?!:)", head) is not None and re.search(r"[\w>]\s*$", head)


def _name(head):
    before, _, after = head.partition("(")
    name = re.search(r"(operator\s*\S+|~?[\w:~]+)\s*$", before)
    name = re.sub(r"\s+", "", name.group(1)) if name else "?"
    if re.match(r"(TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP|BENCHMARK\w*)$", name):
        name += "(" + re.sub(r"\s+", "", after.split(")")[0]) + ")"
    return name


def functions(text):
    """(name, first line, number of lines) of every function body outside other functions."""
    code = without_preprocessor(blank(text))
    found = []
    stack = []          # (kind, name, first position)
    head_start = 0
    inside = 0          # depth of functions
    for match in re.finditer(r"[{};]", code):
        position, sign = match.start(), match.group()
        if sign == "{":
            head = code[head_start:position]
            kind = "block"
            if not inside and not any(k == "value" for k, _, _ in stack):
                if _is_member_initializer(head):
                    stack.append(("value", "", position))
                    continue
                if _is_function_head(head):
                    kind = "function"
                elif not _SCOPE.search(head):
                    kind = "value"
            first = head_start + len(head) - len(head.lstrip())
            stack.append((kind, _name(head) if kind == "function" else "", first))
            inside += kind == "function"
        elif sign == "}" and stack:
            kind, name, first = stack.pop()
            if kind == "function":
                inside -= 1
                line = code.count("\n", 0, first) + 1
                found.append((name, line, code.count("\n", first, position) + 1))
            if kind == "value":
                continue        # the head goes on behind an initialiser
        if not any(k == "value" for k, _, _ in stack):
            head_start = position + 1
    return found
