"""Numbers of things in words."""


def counted(count: int, one: str, many: str = "") -> str:
    """ "1 kernel", "2 kernels"; `many` where it is not `one` with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"
