"""``python -m quadriga.diagrams`` is the command ``quadriga-fsm``."""

import sys

from quadriga.diagrams.command import main

sys.exit(main())
