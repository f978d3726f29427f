"""What the arena needs besides the environment itself, all from one extra."""

from montecristo_env.util.commands import missing

try:
    import tyro
    from matplotlib.figure import Figure
    from openskill.models import PlackettLuce
    from rich import box, progress
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text
except ImportError as error:
    raise missing("the arena", error.name, "arena") from error

__all__ = ["Console", "Figure", "PlackettLuce", "RichTable", "Text", "box", "progress", "tyro"]
