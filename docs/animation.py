"""Draws a recorded game as an animated GIF: `python docs/animation.py docs/images/game.json docs/images/game.gif`."""

import io
import sys
from itertools import pairwise
from pathlib import Path

from PIL import Image

from montecristo_env import GameRecord, render
from montecristo_env.util.files import atomic_write

WIDTH = 768  # pixels, so that the height is whole, too
COLOURS = 64
MILLISECONDS, LAST = 400, 4000  # how long a picture stays, and how long the last one


def frames(record: GameRecord) -> list[Image.Image]:
    """The board before every decision that was not forced, and at the end."""
    positions = list(record.replay())
    shown = [before for before, after in pairwise(positions) if not record.events[after.event].get("forced")]
    return [
        Image.fromarray(render.rgb_array(position.games, names=record.players, width=WIDTH))
        for position in [*shown, positions[-1]]
    ]


def gif(pictures: list[Image.Image]) -> bytes:
    """The pictures one after the other, all in the colours of the middle one, for ever."""
    palette = pictures[len(pictures) // 2].quantize(COLOURS)
    first, *others = (picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures)
    durations = [MILLISECONDS] * len(others) + [LAST]
    out = io.BytesIO()
    first.save(out, "GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    return out.getvalue()


def main() -> None:
    """The command line."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    record, output = Path(sys.argv[1]), Path(sys.argv[2])
    atomic_write(output, gif(frames(GameRecord.load(record))))


if __name__ == "__main__":
    main()
