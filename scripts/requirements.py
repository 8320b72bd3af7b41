"""Prints the requirements in pyproject.toml: for the build, for use, and for development."""

import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

EXTRAS = ("demo", "test", "dev", "docs")

with open(sys.argv[1], "rb") as file:
    document = tomllib.load(file)

project = document["project"]
requirements = [*document["build-system"]["requires"], *project["dependencies"]]
for extra in EXTRAS:
    requirements += project["optional-dependencies"][extra]
print("\n".join(dict.fromkeys(requirements)))
