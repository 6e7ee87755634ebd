"""Markdown tables and the numbers in them."""

NOT_MEASURED = "Not measured with this tree."


def table(header, rows, left=1):
    """Lines. The first `left` columns are text, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    return ["| " + " | ".join(header) + " |", "|" + "|".join(rule) + "|",
            *("| " + " | ".join(row) + " |" for row in rows)]


def significant(value):
    """Three digits: "12.2", "0.0249", "528". Empty for None."""
    if value is None:
        return ""
    for bound, decimals in ((100, 0), (10, 1), (1, 2), (0.1, 3), (0.01, 4)):
        if abs(value) >= bound:
            return f"{value:.{decimals}f}"
    return f"{value:.5f}" if value else "0"


def bold(text):
    return f"**{text}**"


def scientific(value):
    """"3.9e-8"."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if value else "0"


def percent(value):
    """Of a part that may be small: "95 %", "5.0 %"."""
    return f"{value:.0%}".replace("%", " %") if value >= 0.1 else (
        f"{value:.1%}".replace("%", " %"))


def times(value):
    """Of a ratio: "1.43", "12.3"."""
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def listing(items):
    """"a, b and c"."""
    items = list(items)
    return " and ".join([", ".join(items[:-1]), items[-1]] if items[1:]
                        else items)
