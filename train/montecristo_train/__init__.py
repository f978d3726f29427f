"""Training recipes for montecristo-env: one readable file each."""

import os

# Torch's threads spin for a while after each piece of work, on cores that our own threads could use by then. It is told
# not to before it is imported, or never.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
