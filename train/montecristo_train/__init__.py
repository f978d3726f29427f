"""Training recipes for montecristo-env: one readable file each."""
