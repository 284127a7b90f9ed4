"""``python -m quadriga.cli``"""

import sys

from quadriga.cli.main import main

sys.exit(main())
