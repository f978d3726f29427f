"""What the arena needs besides the environment itself, all from one extra."""

from montecristo_env.util.commands import missing

try:
    import tyro
    from matplotlib.figure import Figure
    from openskill.models import PlackettLuce
    from rich import box
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Table as RichTable
    from rich.text import Text
except ImportError as error:
    raise missing("the arena", error.name, "arena") from error

__all__ = [
    "BarColumn",
    "Console",
    "Figure",
    "MofNCompleteColumn",
    "PlackettLuce",
    "Progress",
    "RichTable",
    "Text",
    "TextColumn",
    "TimeElapsedColumn",
    "TimeRemainingColumn",
    "box",
    "tyro",
]
