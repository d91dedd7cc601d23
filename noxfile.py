"""The smoke tests (tests/support.py) on each Triton that is supported, with its torch and its oldest and newest numpy, and on
each Python with what `make` installs.

    nox                      # all; each session takes some GB of disk where torch is a CUDA build
    nox -s "smoke(3.9.0)"    # one
    nox -s pythons-3.13
    make docs                # then: docs/running.md's table of what was run

In a virtual environment of your own, without nox: python -m tests.support
"""

import nox

TORCH = {  # that each Triton came with; torch 2.13 has the small build for CPUs that `make` installs, too
    "3.6.0": "2.11.0",
    "3.7.0": "2.12.0",
    "3.7.1": "2.13.0",
    "3.8.0": "2.14.0",
    "3.9.0": "2.15.0",
}
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
OLDEST, NEWEST = "1.26.4", "2.4.6"  # of Python 3.11
NEWEST_WITH = {"3.6.0": "2.3.5"}  # whose interpreter does not work with newer ones

nox.options.reuse_existing_virtualenvs = True


@nox.session(venv_backend="venv")
@nox.parametrize("triton", [nox.param(triton, id=triton) for triton in TORCH])
def smoke(session, triton):
    session.install(f"torch=={TORCH[triton]}", f"triton=={triton}")
    session.install("pytest", "pytest-timeout", "hypothesis", "setuptools", "filelock")
    for numpy in (OLDEST, NEWEST_WITH.get(triton, NEWEST)):
        session.install(f"numpy=={numpy}")
        session.run("python", "-m", "tests.support", success_codes=(0, 1))  # 1: tests fail, and the table says so


@nox.session(venv_backend="venv", python=PYTHONS)
def pythons(session):
    session.install("-r", "requirements.txt")
    session.run("python", "-m", "tests.support", success_codes=(0, 1))
