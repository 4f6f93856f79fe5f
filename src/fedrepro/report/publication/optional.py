"""Libraries of the extra `dev`: imported where they are used: they take seconds, and a plain install lacks them."""

import importlib
from typing import Any

from fedrepro.errors import UserError


def needed(name: str) -> Any:
    """A library of the extra; UserError with the command that installs it if it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(f"publishing needs {error.name}, which is not here: pip install 'fedrepro[dev]'") from None
