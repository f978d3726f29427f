"""What the arena needs besides the environment itself, all from one extra."""

try:
    import tyro as tyro
    from matplotlib.figure import Figure as Figure
    from openskill.models import PlackettLuce as PlackettLuce
    from rich import box as box
    from rich.console import Console as Console
    from rich.progress import BarColumn as BarColumn
    from rich.progress import MofNCompleteColumn as MofNCompleteColumn
    from rich.progress import Progress as Progress
    from rich.progress import TextColumn as TextColumn
    from rich.progress import TimeElapsedColumn as TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeRemainingColumn
    from rich.table import Table as Table
except ImportError as error:
    raise ImportError(f"the arena needs {error.name}: pip install 'montecristo-env[arena]'") from error
