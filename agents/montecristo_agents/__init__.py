"""Players for montecristo-env: one file each, behind one small protocol."""
