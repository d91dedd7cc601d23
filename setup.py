"""What pyproject.toml cannot say: `perf` is installed as `tritonkernels_perf`, since other packages may have a `perf`, too."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["tritonkernels*", "cuda_reference*"]),
        *(f"tritonkernels_{name}" for name in find_packages(include=["perf*"])),
    ],
    package_dir={"tritonkernels_perf": "perf"},
)
