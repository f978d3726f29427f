"""Replays: games that were played, as one page for a browser.

```sh
python -m montecristo_env.replay game.json
```

writes `game.html`, which needs nothing else, not even a network. Several records become one page with a list to choose
from. `--annotate ppo` shows at every decision what an agent thinks of it; if it estimates who wins, as
networks do, also what mistakes cost and what draws brought.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from montecristo_env.errors import InvalidArgument, MonteCristoError
from montecristo_env.record import GameRecord
from montecristo_env.util.commands import quiet_pipe
from montecristo_env.util.files import atomic_write
from montecristo_env.web.replay_page import ReplayPage

BAD_INPUT = 2  # the exit code


def write_replay(records: GameRecord | Sequence[GameRecord], path: str | os.PathLike[str]) -> None:
    """Writes a page for a browser that shows these games: one file that needs nothing else, not even a network."""
    records = [records] if isinstance(records, GameRecord) else records
    if not records:
        raise InvalidArgument("a replay needs at least one record")
    page = ReplayPage()
    for record in records:
        page.add(record)
    atomic_write(path, page.html().encode())


def main() -> None:
    """The command line."""
    from montecristo_env.web.extras import tyro

    @dataclass
    class Options:
        """Writes a page that replays games."""

        records: tyro.conf.Positional[tuple[Path, ...]]
        """Files with game records."""
        output: Path | None = None
        """The page; by default the name of the first record, with the ending .html."""
        annotate: str | None = None
        """An agent that says at every decision what it thinks, in place of what the record tells."""

    with quiet_pipe():
        options = tyro.cli(Options, prog="python -m montecristo_env.replay")
        try:
            records = [GameRecord.load(path) for path in options.records]
            if options.annotate is not None:
                for record in records:
                    record.annotate(options.annotate)
            first = next((path.with_suffix(".html") for path in options.records), Path("replay.html"))
            output = options.output or first
            write_replay(records, output)
        except (MonteCristoError, ImportError, OSError) as error:
            print(error, file=sys.stderr)
            sys.exit(BAD_INPUT)
        for path, record in zip(options.records, records, strict=True):
            if told := record.balances():
                sentences = [balance.describe(name) for balance, name in zip(told, record.players, strict=True)]
                print(f"{path}: {'; '.join(sentences)}")
        print(output)


if __name__ == "__main__":
    main()
