"""Checks, one session each. Plain ``nox`` runs what CI runs; ``nox -s NAME`` runs one; ``nox -l`` lists them.

Environments are reused, and something is installed only when what is to be installed has changed, so a second run
starts at once. To add a subject, write one function:

    @nox.session
    def spec(session: nox.Session) -> None:
        \"\"\"One line for ``nox -l``.\"\"\"
        prepare(session, *extra("spec"))          # or prepare_refmq(session, "test") where refmq itself is needed
        session.run("python", "-m", "...", env=java_environment(session))

With ``@nox.session(default=False)`` it is left out of CI: long campaigns and benchmarks.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
BUILD = ROOT / "build"

# The finder of Java is part of refmq and needs nothing but the standard library.
sys.path.insert(0, str(ROOT / "src"))

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True

PYTHON_FOLDERS = [
    name
    for name in (
        "src",
        "conformance",
        "fuzz",
        "tests",
        "bench",
        "interop",
        "spec/proofs",
        "docs",
        "conftest.py",
        "noxfile.py",
    )
    if (ROOT / name).exists()
]


def extra(name: str) -> list[str]:
    """The requirements of one extra of pyproject.toml."""
    project = nox.project.load_toml(ROOT / "pyproject.toml")["project"]
    return list(project["optional-dependencies"][name])


def dependencies() -> list[str]:
    """The mandatory requirements of refmq."""
    return list(nox.project.load_toml(ROOT / "pyproject.toml")["project"]["dependencies"])


def prepare(session: nox.Session, *requirements: str) -> None:
    """Install ``requirements`` in their pinned versions, unless the environment was already made from the same."""
    install_once(session, "requirements", list(requirements), [])


def prepare_refmq(session: nox.Session, *extras: str) -> None:
    """Install refmq with ``extras``: editable, so that only a change of the C sources asks for a new build."""
    # The build tools are installed here, pinned like everything else, and not by pip in an environment of its own.
    prepare(session, *dependencies(), *extra("build"), *[name for group in extras for name in extra(group)])
    fast = ROOT / "src" / "refmq_fast"
    inputs = [ROOT / "pyproject.toml", ROOT / "CMakeLists.txt", *fast.rglob("*.c"), *fast.rglob("*.h")]
    install_once(session, "refmq", ["--no-build-isolation", "--no-deps", "--editable", "."], inputs)


def install_once(session: nox.Session, what: str, arguments: list[str], inputs: list[Path]) -> None:
    """``pip install`` with ``arguments``, unless the last one of the same name had the same arguments and inputs."""
    # A compiler that has appeared since asks for a new build as well.
    digest = hashlib.sha256("\0".join((sys.version, find_compiler() or "", *arguments)).encode())
    for path in (ROOT / "constraints.txt", *sorted(inputs)):
        digest.update(path.read_bytes())
    stamp = Path(session.virtualenv.location) / f"refmq-installed-{what}"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    stamp.unlink(missing_ok=True)
    session.install("--constraint", str(ROOT / "constraints.txt"), *arguments)
    stamp.write_text(digest.hexdigest())


def find_compiler() -> str | None:
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")))), None)


def java_environment(session: nox.Session) -> dict[str, str]:
    """The environment for a session that needs a JDK; fails with one line when there is none and none can be had."""
    from refmq.errors import MissingTool
    from refmq.tools.jdk import ensure_java

    try:
        java = ensure_java()
    except MissingTool as error:
        session.error(str(error))
    return {"JAVA_HOME": str(java.home)}


def build_c(session: nox.Session, name: str, *options: str) -> Path:
    """Configure and build the C sources below build/NAME with warnings as errors, and return that folder."""
    folder = BUILD / name
    python = Path(session.bin) / "python"
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DREFMQ_WERROR=ON", *options]
    session.run(*configure, f"-DPython_EXECUTABLE={python}", "--log-level=WARNING", silent=True)
    session.run("cmake", "--build", str(folder), silent=True)
    return folder


@nox.session
def lint(session: nox.Session) -> None:
    """Style of the Python sources, warnings of the C sources."""
    prepare(session, *extra("lint"), *extra("build"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    if find_compiler() is None:
        session.warn("There is no C compiler: the C sources were not looked at.")
        return
    build_c(session, "lint")


@nox.session
def types(session: nox.Session) -> None:
    """mypy --strict on everything that is Python."""
    prepare(session, *dependencies(), *extra("types"))
    session.run("mypy", *PYTHON_FOLDERS)


@nox.session
def docs(session: nox.Session) -> None:
    """The book, with warnings as errors. It is left in build/site."""
    prepare(session, *dependencies(), *extra("docs"))
    # Not --quiet: it hides warnings from --strict as well.
    build = ["mkdocs", "build", "--strict", "--site-dir", str(BUILD / "site")]
    session.run(*build, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def sanitize(session: nox.Session) -> None:
    """The C core on its own and from Python, under AddressSanitizer and UndefinedBehaviorSanitizer; what has threads
    under ThreadSanitizer."""
    compiler = find_compiler()
    if compiler is None:
        session.skip("There is no C compiler.")
    prepare(session, *dependencies(), *extra("build"), *extra("test"))
    folder = build_c(session, "sanitize", "-DREFMQ_SANITIZE=ON", "-DREFMQ_C_TESTS=ON")
    session.run("ctest", "--test-dir", str(folder), "--output-on-failure")

    threads = build_c(session, "tsan", "-DREFMQ_TSAN=ON", "-DREFMQ_C_TESTS=ON")
    session.run("ctest", "--test-dir", str(threads), "--output-on-failure", "--label-regex", "threads")

    suites = ["tests/refmq_fast", "tests/net/test_fast_store.py", "tests/net/test_posix_disk.py"]
    stores = "tests/verify/spark/test_stores.py::test_c_reads_from_a_log_what_the_reference_reads"
    suites += ["tests/verify/spark/test_digest.py", stores]
    suites += ["conformance/store/test_differential.py"]
    fewer = ["--deselect", "conformance/store/test_differential.py::test_the_c_store_does_what_the_reference_does"]
    # Python keeps memory until it exits, which is not a leak of ours; ctest above looks for ours.
    options = {"ASAN_OPTIONS": "detect_leaks=0"}
    run_sanitized(session, folder, "libasan.so", options, *suites, *fewer, "--numprocesses=auto", "--dist=worksteal")
    options = {"TSAN_OPTIONS": f"suppressions={ROOT / 'tests/refmq_fast/tsan.supp'}"}
    run_sanitized(session, threads, "libtsan.so", options, "tests/net/test_thread_engine.py", "-x")


def run_sanitized(session: nox.Session, folder: Path, runtime: str, options: dict[str, str], *arguments: str) -> None:
    """Runs pytest with the extension that was built in a folder, and the run-time library of its sanitizer."""
    compiler = find_compiler()
    assert compiler is not None, "there is something that was built"
    found = str(session.run(compiler, f"-print-file-name={runtime}", silent=True, external=True)).strip()
    if not Path(found).is_absolute():
        session.warn(f"This compiler has no {runtime}: the extension was checked from C only, not from Python.")
        return
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(ROOT / "src", site, ignore=shutil.ignore_patterns("*.c", "*.h", "*.so", "__pycache__"))
    session.run("cmake", "--install", str(folder), "--prefix", str(site), silent=True)
    environment = {
        "PYTHONPATH": str(site),
        "LD_PRELOAD": found,  # the interpreter is not built with it, so it has to be loaded first
        "REFMQ_REQUIRE_EXTENSION": "1",
        **options,
    }
    tests = [*arguments, "-p", "no:cacheprovider", "--hypothesis-profile=ci", "-q"]
    session.run("python", "-m", "pytest", *tests, env=environment)


@nox.session
def tests(session: nox.Session) -> None:
    """The quick tests. Arguments after -- go to pytest, which then runs in one process: nox -s tests -- -k crc32."""
    prepare_refmq(session, "test")
    # Without this, a build that fails would silently skip every test of the extension.
    environment = {"REFMQ_REQUIRE_EXTENSION": "0" if find_compiler() is None else "1"}
    arguments = session.posargs or ["--numprocesses=auto", "--dist=worksteal"]
    session.run("pytest", "--hypothesis-profile=ci", *arguments, env=environment)


@nox.session
def spec(session: nox.Session) -> None:
    """The TLA+ specifications: the quick configurations, or with -- deep / mutants / simulate / NAME what it says."""
    prepare_refmq(session, "test", "spec")
    environment = java_environment(session)
    refmq = ("refmq", "spec")
    match session.posargs:
        case ["deep"]:
            session.run(*refmq, "check", "--profile", "deep", env=environment)
        case ["mutants", *names]:
            models = sorted((ROOT / "spec").glob("*/*/MC*.tla"))
            own_steps = re.compile(r"^\w+Next\s*==", re.MULTILINE)  # a module that gives a protocol further actions
            further = [path.stem for path in models if own_steps.search(path.read_text())]
            protocols = [path.stem.removeprefix("MC") for path in models if path.parent.name == "mc"]
            for name in names or protocols + further:
                session.run(*refmq, "mutate", name, env=environment)
        case ["simulate", *names]:
            session.run(*refmq, "simulate", *names, env=environment)
        case []:
            session.run(*refmq, "check", env=environment)
            # What needs TLC is skipped in the session `tests`: the runner itself, traces of broker, store and clients.
            # A file stays with one process: its tests share counterexamples that TLC has found, and a warm JVM.
            tests = ("pytest", "-p", "no:cacheprovider", "-q", "-m", "jdk", "--numprocesses=auto", "--dist=loadfile")
            session.run(*tests, "tests/verify", "tests/cli/test_spec.py", env=environment)
        case names:
            session.run(*refmq, "check", *names, env=environment)


@nox.session
def spark(session: nox.Session) -> None:
    """`refmq verify` on Spark itself: one session for all that can share it, executors of their own, and a master with
    two workers that know nothing of refmq. With -- cluster: all promises there, and not only those about places."""
    prepare_refmq(session, "test", "spark")
    environment = java_environment(session)
    pytest, cluster = ("pytest", "-p", "no:cacheprovider", "-q", "-m", "jdk"), "tests/verify/spark/test_cluster.py"
    match session.posargs:
        case ["cluster", *arguments]:
            session.run(*pytest, cluster, *arguments, env=environment)
        case arguments:
            session.run(*pytest, "tests/verify/spark", f"--ignore={cluster}", *arguments, env=environment)
            if not arguments:
                session.run(*pytest, cluster, "-k", "places", env=environment)


@nox.session
def symbolic(session: nox.Session) -> None:
    """Arithmetic for all sizes: claims proved by Z3 and their broken twins refuted, contracts checked by CrossHair."""
    prepare_refmq(session, "test", "symbolic")
    session.run("python", "-m", "spec.proofs")
    session.run("python", "-m", "spec.proofs", "contracts")
    session.run("pytest", "-p", "no:cacheprovider", "--hypothesis-profile=ci", "-q", "tests/proofs", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """Histories of stores, clusters, groups, and recordings that TLC judges. With -- long --minutes 30: a campaign
    of each, what both engines do with 10,000 histories and 10,000,000 frames, TLC on 1,000,000 events; else for
    pytest."""
    prepare_refmq(session, "test", "spec")
    match session.posargs:
        case ["long", *options]:
            for kind in ("store", "cluster", "group"):  # one that has findings does not keep the others from running
                session.run("python", "-m", "conformance", kind, *options, success_codes=[0, 3])
            session.run("python", "-m", "conformance", "coverage")  # fails for what has never happened, and findings
            session.run("python", "-m", "conformance", "differ", "--histories", "10000")
            session.run("python", "-m", "conformance", "frames", "--frames", "10000000")
            session.run("python", "-m", "conformance", "judged", "--events", "1000000", env=java_environment(session))
        case arguments:
            pytest = ("pytest", "--hypothesis-profile=ci", "-p", "no:cacheprovider")
            if arguments:
                session.run(*pytest, *arguments, env=java_environment(session))
                return
            mutants = "conformance/mutants/test_seeded.py"
            together = ("--numprocesses=auto", "--dist=worksteal")
            session.run(*pytest, "conformance", f"--ignore={mutants}", *together, env=java_environment(session))
            session.run(*pytest, mutants)  # by itself: it prints its table, and uses every core by its own means


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Damaged input for everything that reads: -- --minutes 10 --seed 3 [TARGET...], or -- native ... for what is C; a
    minute of each without arguments."""
    prepare_refmq(session, "test")
    match session.posargs:
        case ["native", *arguments]:
            session.run("python", "-m", "fuzz", "native", *arguments)
        case arguments:
            session.run("python", "-m", "fuzz", "run", *arguments)
            if not arguments:
                session.run("python", "-m", "fuzz", "native")  # says so and skips where there is no clang


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """What store, codecs, broker and client cost, beside zlib.crc32, json, the real broker and other clients; the
    numbers go to build/."""
    prepare_refmq(session, "bench", "spark", "test")
    BUILD.mkdir(exist_ok=True)
    results = ("--json", str(BUILD / "bench-store.json"), "--plot", str(BUILD / "bench-store.png"))
    session.run("python", "-m", "bench.store", *results, *session.posargs)
    session.run("python", "-m", "bench.protocol", "--json", str(BUILD / "bench-protocol.json"))
    # It says itself when recording costs too much, and the other numbers are wanted all the same.
    trace = ("python", "-m", "bench.trace", "--json", str(BUILD / "bench-trace.json"))
    session.run(*trace, success_codes=[0, 3])
    results = ("--json", str(BUILD / "bench-verify.json"), "--plot", str(BUILD / "bench-verify.png"))
    session.run("python", "-m", "bench.verify", *results)
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        session.warn("There is no JDK or no Maven: the broker was not measured beside the real one.")
        return
    results = ("--json", str(BUILD / "bench-broker.json"), "--plot", str(BUILD / "bench-broker.png"))
    session.run("python", "-m", "bench.broker", *results)
    results = ("--json", str(BUILD / "bench-engine.json"), "--plot", str(BUILD / "bench-engine.png"))
    session.run("python", "-m", "bench.engine", *results)
    results = ("--json", str(BUILD / "bench-client.json"), "--plot", str(BUILD / "bench-client.png"))
    session.run("python", "-m", "bench.client", "--others", other_clients(session), *results)


def other_clients(session: nox.Session) -> str:
    """The Python of an environment with the clients that ours is measured beside; they have no place in its own."""
    folder = BUILD / "other-clients"
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        session.run("python", "-m", "venv", str(folder))
        session.run(python, "-m", "pip", "install", "--quiet", "rocketmq==0.4.4", "nats-py==2.16.0", external=True)
    return python


@nox.session(default=False)
def interop(session: nox.Session) -> None:
    """The real RocketMQ beside ours: nameservers, brokers, clients and mqadmin; needs a JDK and Maven."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        session.error(f"{', '.join(missing)} not found: install a JDK from 11 on and Maven (Debian: default-jdk maven)")
    prepare_refmq(session, "test")
    shown = ("--verbose", "-rs", "--durations=10")  # a line for each case: the whole takes a while
    # Most cases wait most of their time, so two files at once; what is named after -- runs in one process.
    arguments = session.posargs or ["--numprocesses=2", "--dist=loadfile", "interop/tests"]
    # A case may need minutes: histories that wait, members that expire.
    session.run("pytest", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=900", *shown, *arguments)
