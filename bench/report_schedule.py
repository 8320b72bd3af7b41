"""Figures of tasks that share a device, for report.py."""

from __future__ import annotations

from report_text import load, measured_table


def latencies() -> str | None:
    document = load("schedule")
    if document is None or "latency" not in document:
        return None
    rows = [
        (
            name,
            f"{row['p50_ms']:.2f}",
            f"{row['p99_ms']:.2f}",
            f"{row['p99_of_alone']:.2f}"
            + (f" (of its own {row['p99_alone_ms']:.2f} ms)" if "p99_alone_ms" in row else ""),
            f"{row['products_of_alone']:.2f}" if "products_of_alone" in row else "-",
        )
        for name, row in document["latency"].items()
        if isinstance(row, dict)
    ]
    title = "A decoding step every 5 ms on average, beside endless products of 8192^3"
    columns = ("", "ms, median", "ms, 99th percentile", "of alone", "products, of alone")
    return measured_table(title, document, columns, rows)


def shares() -> str | None:
    document = load("schedule")
    if document is None or "shares" not in document:
        return None
    rows = [
        (
            " / ".join(f"{100 * share:.0f} %" for share in row["asked"]),
            " / ".join(f"{100 * share:.1f} %" for share in row["got"]),
            f"{row['worst_of_a_second_points']:.2f}",
            f"{row['worst_of_10ms_points']:.2f}",
        )
        for row in document["shares"]
    ]
    columns = ("asked", "got", "points off in 1 s, at most", "in 10 ms")
    return measured_table("Shares of products by tenants", document, columns, rows)


def submissions() -> str | None:
    document = load("schedule")
    if document is None or "submit" not in document or "await" not in document:
        return None
    submit, wait = document["submit"], document["await"]
    rows = [
        ("a launch of a small kernel, plain", f"{submit['plain']['median']:.1f}"),
        ("as a task", f"{submit['task']['median']:.1f}"),
        ("a kernel of 10 us until its end, plain", f"{wait['plain']:.1f}"),
        ("as a task, result()", f"{wait['result']:.1f}"),
        ("as a task, await", f"{wait['await']:.1f}"),
    ]
    return measured_table("What a task costs", document, ("", "us, median"), rows)


def first_blocks() -> str | None:
    document = load("schedule")
    if document is None or "start" not in document:
        return None
    rows = [
        (
            f"{name}, {size}",
            f"{row['p50_us']:.0f}",
            f"{row['p99_us']:.0f}",
            f"{row['uncertain_us']:.0f}",
        )
        for size, entry in document["start"].items()
        if isinstance(entry, dict)
        for name, row in entry.items()
        if "p99_us" in row
    ]
    title = "From submit() to the first block, beside endless products"
    columns = ("", "us, median", "us, 99th percentile", "+- us, of the clocks")
    return measured_table(title, document, columns, rows)


def evictions() -> str | None:
    document = load("schedule")
    if document is None or "evict" not in document:
        return None
    row = document["evict"]
    rows = [
        ("to the host", f"{row['evict_gbs']:.1f}"),
        ("back to the device", f"{row['restore_gbs']:.1f}"),
    ]
    title = f"{row['gigabytes']:.0f} GB of best effort make room"
    return measured_table(title, document, ("", "GB/s"), rows)
