"""The server: this machine alone, unless there is a token; it follows runs, and no run needs it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

import embark
from embark.run.run_state import STALE, run_states, state_file
from embark.site import server as server_module
from embark.site.run_data import run_data
from embark.types import EmbarkError

RUN = "from embark.cli import main; main()"


@pytest.fixture
def servers() -> Iterator[list[embark.types.PageServer]]:
    started: list[embark.types.PageServer] = []
    yield started
    for server in started:
        server.shutdown()
        server.server_close()


def start(servers: list[embark.types.PageServer], **options: Any) -> embark.types.PageServer:
    server = embark.site.serve("ARK", port=0, **options)
    servers.append(server)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def get(server: embark.types.PageServer, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    with closing(HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)) as connection:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response, response.read()


def test_files_come_with_a_policy_and_nothing_outside_the_page_does(servers: list[embark.types.PageServer]) -> None:
    server = start(servers)
    response, page = get(server, "/")
    assert response.status == 200
    assert b"app.js" in page
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert get(server, "/app.js")[0].headers["Content-Type"].startswith("text/javascript")
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/data", "/no.js", "/%00"):
        assert get(server, path)[0].status == 404, path


def test_a_strange_host_is_not_answered(servers: list[embark.types.PageServer]) -> None:
    server = start(servers)
    assert get(server, "/", Host="evil.example")[0].status == 403
    assert get(server, "/", Host="localhost:8017")[0].status == 200


@pytest.mark.parametrize("host", ["[", "evil.example:8017", "127.0.0.1.evil.example", "", "a" * 5000])
def test_no_other_name_leads_here(servers: list[embark.types.PageServer], host: str) -> None:
    server = start(servers)
    assert get(server, "/data/index.js", Host=host)[0].status == 403
    assert get(server, "/")[0].status == 200


def test_another_site_may_link_to_the_page_and_not_run_its_data(servers: list[embark.types.PageServer]) -> None:
    server = start(servers)
    fetch = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert get(server, "/data/index.js", **fetch)[0].status == 403
    assert get(server, "/data/runs.js", **{**fetch, "Sec-Fetch-Site": "same-site"})[0].status == 403
    assert get(server, "/", **{**fetch, "Sec-Fetch-Mode": "navigate"})[0].status == 200
    response, _ = get(server, "/data/index.js", **{**fetch, "Sec-Fetch-Site": "same-origin"})
    assert response.status == 200
    assert response.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_link_out_of_the_page_is_not_followed(servers: list[embark.types.PageServer], tmp_path: Path) -> None:
    server = start(servers)
    (tmp_path / "secret").write_text("secret")
    (server.page / "data" / "link.js").symlink_to(tmp_path / "secret")
    (server.page / "out").symlink_to(tmp_path)
    for path in ("/data/link.js", "/out/secret", "/data/../out/secret", "/" + "a" * 4000, "/data/%ed%a0%80"):
        assert get(server, path)[0].status == 404, path[:40]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET http://[ HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"POST / HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"\x00\xff\r\n\r\n",
    ],
)
def test_broken_requests_are_refused_without_a_word_on_the_terminal(
    servers: list[embark.types.PageServer], request_bytes: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    server = start(servers)
    with socket.create_connection(server.server_address[:2], timeout=30) as client:  # type: ignore[arg-type]
        client.sendall(request_bytes)
        answer = b"".join(iter(lambda: client.recv(4096), b""))
        assert re.search(b"40[03]|501", answer)
    assert get(server, "/")[0].status == 200
    assert capfd.readouterr().err == ""


def test_slow_viewers_are_let_go_and_many_do_not_lock_others_out(
    servers: list[embark.types.PageServer], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_module._Handler, "timeout", 0.5)
    monkeypatch.setattr(server_module, "VIEWERS", 2)
    server = start(servers)
    slow = [socket.create_connection(server.server_address[:2], timeout=30) for _ in range(4)]  # type: ignore[arg-type]
    try:
        for client in slow:
            with suppress(OSError):
                client.sendall(b"GET / HT")
        for client in slow:
            with suppress(ConnectionError):
                assert client.recv(10) == b""  # it was let go
    finally:
        for client in slow:
            client.close()
    assert get(server, "/")[0].status == 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("token", ["a long secret; with=signs&more", "geheimnis für 日本"])
def test_any_token_will_do_and_none_is_told(
    servers: list[embark.types.PageServer], token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    server = start(servers, token=token)
    assert get(server, "/")[0].status == 403
    response, _ = get(server, "/?" + server.address.partition("?")[2])
    assert response.status == 303
    assert response.headers["Location"] == "/"
    cookie = response.headers["Set-Cookie"].split(";")[0]
    assert get(server, "/", Cookie=cookie)[0].status == 200
    assert get(server, "/", Cookie=f"{cookie}x")[0].status == 403
    out, err = capfd.readouterr()
    assert "secret" not in out + err


def test_another_address_needs_a_token(servers: list[embark.types.PageServer]) -> None:
    server = start(servers, host="0.0.0.0")
    assert server.token
    assert server.token in server.address
    assert get(server, "/")[0].status == 403
    assert get(server, "/?token=wrong")[0].status == 403
    response, _ = get(server, f"/?token={server.token}")
    assert response.status == 303
    cookie = response.headers["Set-Cookie"].split(";")[0]
    assert get(server, "/data/index.js", Cookie=cookie)[0].status == 200
    assert get(server, "/data/index.js", Cookie="embark=x; ;;")[0].status == 403


def test_a_port_that_is_taken_is_named(servers: list[embark.types.PageServer]) -> None:
    server = start(servers)
    written = set(Path(tempfile.gettempdir()).glob("embark-page-*"))
    with pytest.raises(EmbarkError, match="another port"):
        embark.site.serve("ARK", port=server.server_address[1])
    assert set(Path(tempfile.gettempdir()).glob("embark-page-*")) <= written
    assert get(server, "/")[0].status == 200


def test_a_page_that_cannot_be_made_frees_the_port() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(EmbarkError):
        embark.site.serve("Pocket", port=port, settings=embark.load_settings("nowhere", "nowhere"))
    embark.site.serve("ARK", port=port).server_close()


def test_the_state_of_a_run_is_served_while_it_goes(servers: list[embark.types.PageServer], tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    server = start(servers, settings=settings)

    def states() -> list[Any]:
        text = get(server, "/data/runs.js")[1].decode().removeprefix("embark(...").removesuffix(");\n")
        return list(json.loads(text)[1]["live"])

    assert states() == []
    settings.home.mkdir(exist_ok=True)
    with state_file(settings, "abc", lambda: {"title": "<b>model</b>", "scores": [["model", "task", "1.0"]]}):
        for _ in range(100):
            if states():
                break
            time.sleep(0.1)
        [state] = states()
        assert (state["alive"], state["ended"], state["title"]) == (True, False, "<b>model</b>")
    [state] = states()
    assert (state["alive"], state["ended"]) == (False, True)


def test_new_results_are_shown_after_a_reload(
    servers: list[embark.types.PageServer], tiny: embark.Encoder, pictures: Any, tmp_path: Path
) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    server = start(servers, settings=settings)
    before = server.page
    embark.evaluate(tiny, embark.folder_task(pictures(), kinds="retrieval"), settings=settings, show_progress=False)
    get(server, "/")
    for _ in range(300):
        if server.page != before:
            break
        time.sleep(0.1)
    assert server.page != before
    assert get(server, "/data/index.js")[0].status == 200


def test_a_run_tells_its_state_and_its_end(tiny: embark.Encoder, pictures: Any, tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    tasks = embark.folder_task(pictures(), kinds="retrieval")
    embark.evaluate(tiny, tasks, settings=settings, show_progress=False)
    [state] = run_states(settings)
    assert state["ended"]
    assert [score[:2] for score in state["scores"]] == [["test/tiny", tasks[0].name]]
    assert state["embedded"] == 6
    assert state["skipped"] == []
    assert (state["gpu_seconds"], state["predicted"]) == (0, None)
    assert state["cpu_seconds"] >= 0


def test_a_run_knows_what_was_predicted_for_it(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    embark.plan("embark/random", "PocketFlagCapital", settings=settings)
    run = embark.evaluate("embark/random", "PocketFlagCapital", settings=settings, show_progress=False)
    [state] = run_states(settings)
    assert state["predicted"] == run.predicted
    assert state["predicted"] > 0
    [row] = run_data(run.results, settings)["done"]
    assert (row["predicted"], row["seconds"]) == (state["predicted"], state["seconds"])


def test_a_page_shows_no_run_into_another_results_folder(tiny: embark.Encoder, pictures: Any, tmp_path: Path) -> None:
    """Two results folders share a home; the page of one, written or served, shows its own runs alone."""
    ours, theirs = (embark.load_settings(tmp_path / "home", tmp_path / name) for name in ("ours", "theirs"))
    tasks = embark.folder_task(pictures(), kinds="retrieval")
    embark.evaluate(tiny, tasks, settings=ours, show_progress=False)
    tiny.card = replace(tiny.card, name="secret/unreleased")
    embark.evaluate(tiny, tasks, settings=theirs, show_progress=False)
    older = {"id": "older", "ended": False, "updated": time.time(), "models": ["secret/unreleased"]}  # tells no folder
    (tmp_path / "home" / "runs" / "older.json").write_text(json.dumps(older))
    assert len(run_states(ours)) == 3
    embark.site.export(tmp_path / "page", include="own", settings=ours)
    runs = (tmp_path / "page" / "data" / "runs.js").read_text()
    server = embark.site.serve(port=0, settings=ours)
    try:
        Thread(target=server.serve_forever, daemon=True).start()
        served = get(server, "/data/runs.js")[1].decode()
    finally:
        server.shutdown()
        server.server_close()
    for text in (runs, served):
        assert "secret" not in text
        assert "test/tiny" in text
        assert '"pid"' not in text


def test_a_killed_run_is_not_alive(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    (tmp_path / "home" / "runs").mkdir(parents=True)
    path = tmp_path / "home" / "runs" / "x.json"
    path.write_text(json.dumps({"id": "x", "ended": False, "updated": time.time() - 2 * STALE}))
    (tmp_path / "home" / "runs" / "y.json").write_text("{broken")
    [state] = run_states(settings)
    assert not state["alive"]


def test_a_state_that_cannot_be_written_stops_no_run(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, no folder")
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    with state_file(settings, "abc", lambda: {"title": ""}):
        pass
    assert (tmp_path / "home").read_text() == "a file, no folder"


@pytest.mark.slow
def test_killing_the_server_harms_no_run_and_killing_the_run_no_server(tmp_path: Path) -> None:
    settings = embark.load_settings(tmp_path / "home", tmp_path / "results")
    places = ["--home", str(tmp_path / "home"), "--results", str(tmp_path / "results")]
    serving = [sys.executable, "-c", RUN, "serve", "-b", "ARK", "--port", "0", *places]
    running = [sys.executable, "-c", RUN, "run", "-m", "embark/random", "-t", "PocketNameToImage", *places]
    with (
        subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as server,
        subprocess.Popen(running, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run,
    ):
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().split()[4])
        for _ in range(300):
            if run_states(settings):
                break
            time.sleep(0.1)
        with closing(HTTPConnection(address.hostname or "", address.port, timeout=30)) as connection:
            connection.request("GET", "/data/runs.js")
            assert b'"stages"' in connection.getresponse().read()
            run.send_signal(signal.SIGKILL)
            run.wait(60)
            connection.request("GET", "/data/runs.js")
            assert connection.getresponse().read().startswith(b"embark(")
        with subprocess.Popen(running, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as again:
            server.send_signal(signal.SIGKILL)
            output, errors = again.communicate(timeout=240)
            assert again.returncode == 0, errors
            assert b"PocketNameToImage" in output
