"""What our packages share besides the game: command lines, files, spaces, threads."""
