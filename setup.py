"""What pyproject.toml cannot say: a wheel carries the workflow's files of the checkout as fedrepro/checkout."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CARRIED = ("Snakefile", "CITATION.cff", "config", "workflow", "scripts", "notebooks", "envs")


class BuildWithWorkflow(build_py):
    """In editable mode nothing is copied: `fedrepro.files.ROOT` is the checkout itself."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "fedrepro", "checkout")
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in CARRIED:
            if Path(name).is_dir():
                shutil.copytree(name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(name, target / name)


setup(cmdclass={"build_py": BuildWithWorkflow})
