"""fedrepro: five federated-learning papers, reproduced with one command."""

import sys

__version__ = "0.1.0"

# jsonschema's optional check of international addresses builds its grammars when it is imported, which takes two
# seconds of every job; no schema here asks for it.
sys.modules.setdefault("rfc3987_syntax", None)
