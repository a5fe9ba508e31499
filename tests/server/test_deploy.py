"""The files in deploy/: what systemd says of the unit, and nginx in front of a server."""

from __future__ import annotations

import logging
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from running_server import running
from test_metrics import samples, until

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
ENDLESS = {
    "messages": [{"role": "user", "content": "Hello"}],
    "ignore_eos": True,
    "stream": True,
    "n": 32,
}

needs_nginx = pytest.mark.skipif(NGINX is None, reason="no nginx here")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.slow
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "akunu.service"
    text = (DEPLOY / "akunu.service").read_text()
    unit.write_text(text.replace("/opt/akunu/bin/akunu", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_options_in_deploy_exist() -> None:
    from akunu.server.settings import declared_settings

    text = "".join(path.read_text() for path in DEPLOY.iterdir())
    options = set(re.findall(r" --((?:config|api|log|port|host)[a-z-]*)", text)) - {"config"}
    variables = set(re.findall(r"AKUNU_SERVE_([A-Z_]+)", text))
    assert options == {"api-key-file"}
    assert variables == {"API_KEYS", "HOST", "ACCESS_LOG"}
    for name in (*options, *variables):
        assert name.lower().replace("-", "_") in declared_settings()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


class Nginx:
    """nginx with the file of deploy/, changed where it names ports and files of a real machine."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = free_port()
        self._folder = folder
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"),
                *("ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
                *("-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", "akunu.key", "-out", "akunu.pem"),
            ],
            check=True,
            capture_output=True,
            cwd=folder,
        )
        text = (DEPLOY / "nginx.conf").read_text()
        for found, put in (
            ("server 127.0.0.1:8080;", f"server 127.0.0.1:{port};"),
            ("listen 443", f"listen 127.0.0.1:{self.port}"),
            ("listen [::]:443", f"listen [::1]:{self.port}"),
            ("/etc/nginx/", f"{folder}/"),
        ):
            assert found in text
            text = text.replace(found, put)
        (folder / "akunu.conf").write_text(text)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/errors;\nevents {{}}\n"
            f"http {{ access_log off; {places} include {folder}/akunu.conf; }}\n"
        )

    def command(self, *more: str) -> list[str]:
        assert NGINX is not None
        errors = ("-e", f"{self._folder}/errors")
        return [NGINX, *errors, "-p", str(self._folder), "-c", f"{self._folder}/nginx.conf", *more]

    def is_there(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True


@pytest.fixture(scope="module")
def direct() -> Iterator[httpx.Client]:
    """A server that trusts what is in front of it."""
    with running(api_keys=["secret"], trusted_proxies=["127.0.0.1"], access_log="json") as client:
        client.headers["authorization"] = "Bearer secret"
        yield client


@pytest.fixture(scope="module")
def fronted(
    direct: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """A client that reaches it through nginx."""
    import ssl

    folder = tmp_path_factory.mktemp("nginx")
    port = direct.base_url.port
    assert port is not None
    nginx = Nginx(folder, port)
    checked = subprocess.run(nginx.command("-t"), capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(nginx.command())
    try:
        until(nginx.is_there)
        trusting = ssl.create_default_context(cafile=str(folder / "akunu.pem"))
        with httpx.Client(
            base_url=f"https://127.0.0.1:{nginx.port}", verify=trusting, headers=direct.headers
        ) as client:
            yield client
    finally:
        process.terminate()
        process.wait(timeout=30)


@needs_nginx
@pytest.mark.slow
def test_events_pass_through_nginx_as_they_come_and_a_client_that_leaves_is_noticed(
    direct: httpx.Client, fronted: httpx.Client
) -> None:
    name = "akunu_texts_running,ember"
    with fronted.stream("POST", "/v1/chat/completions", json=ENDLESS) as answer:
        assert answer.status_code == 200
        first = next(answer.iter_lines())
        assert first.startswith("data: {")
        assert samples(direct)[name] > 0  # the text goes on: its events were not gathered
    until(lambda: samples(direct)[name] == 0)
    assert samples(direct)["akunu_texts_total,ember,cancelled"] > 0


@needs_nginx
@pytest.mark.slow
def test_the_server_knows_who_is_behind_nginx(
    fronted: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "akunu.server.access")
    forged = {"x-forwarded-for": "9.9.9.9", "x-request-id": "mine"}
    answer = fronted.get("/v1/models", headers=forged)
    assert answer.status_code == 200
    assert answer.headers.get_list("x-request-id") == ["mine"]
    # nginx wrote that 127.0.0.1 asks, which is trusted as well; the client wrote what is before.
    until(lambda: '"client": "9.9.9.9"' in caplog.text)
    assert fronted.get("/v1/models", headers={"authorization": "Bearer x"}).status_code == 401
