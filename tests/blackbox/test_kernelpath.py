"""Kernel path directories and kernelspecs that cannot be used are told, not passed over."""

import json
import os

import pytest

from server import LIBC

HINT = "could not be read"


def landlock():
    return LIBC.syscall(444, None, 0, 1) > 0        # landlock_create_ruleset: the ABI


def events(server, event):
    return [line for line in server.log().splitlines() if f"event={event} " in line]


def warnings_of(server):
    return events(server, "kernel_path_unreadable")


@pytest.mark.parametrize("closed", ["", "kernels"], ids=["the-directory", "its-kernels"])
def test_a_directory_that_cannot_be_read_is_told_at_start_and_to_who_asks_for_an_unknown_kernel(
        server_with, kernel_path, closed):
    kernel_path.add("hidden", ["/bin/false"])
    os.chmod(os.path.join(kernel_path.path, closed), 0o700)
    s = server_with("--kernel-path", kernel_path.path)
    told = warnings_of(s)
    assert len(told) == 1 and "level=warn" in told[0], s.log()
    assert f"dir={kernel_path.path} " in told[0] and "Permission denied" in told[0]
    r = s.request("POST", "/api/kernels", {"name": "hidden"})
    assert r.status >= 400 and "hidden not found" in r.json()["message"], r
    assert HINT in r.json()["message"], r
    assert kernel_path.path not in r.json()["message"], "where it is on the host is for the log"
    # What can be read is served all the same.
    assert "python3" in s.request("GET", "/api/kernelspecs").json()["kernelspecs"]


def test_a_kernelspec_that_is_a_link_out_of_its_directory_is_told_and_not_followed(server_with, kernel_path, tmp_path):
    kernel_path.add("inside", ["/bin/false"])
    kernel_path.add("linked", ["/bin/false"])
    at = os.path.join(kernel_path.path, "kernels", "linked", "kernel.json")
    os.chmod(tmp_path, 0o755)
    os.rename(at, tmp_path / "elsewhere.json")
    os.symlink(tmp_path / "elsewhere.json", at)
    os.makedirs(os.path.join(kernel_path.path, "kernels", "near"))
    os.symlink("../inside/kernel.json", os.path.join(kernel_path.path, "kernels", "near", "kernel.json"))
    s = server_with("--kernel-path", kernel_path.path)
    specs = s.request("GET", "/api/kernelspecs").json()["kernelspecs"]
    told = [line for line in s.log().splitlines() if "event=kernelspec_unreadable" in line]
    if landlock():
        assert {"inside", "near"} <= set(specs) and "linked" not in specs
        assert len(told) == 1 and "name=linked " in told[0] and f"dir={kernel_path.path} " in told[0]
    else:
        assert {"inside", "near", "linked"} <= set(specs) and not told


def test_a_program_that_the_sandbox_does_not_have_is_told_with_what_it_has(server_with, kernel_path):
    outside = kernel_path.path + "/python"      # on the host it is there
    os.symlink("/usr/bin/python3", outside)
    s = server_with("--kernel-path", kernel_path.add("outside", [outside, "-V"]).path)
    r = s.request("POST", "/api/kernels", {"name": "outside"})
    assert r.status == 500 and f"exec '{outside}'" in r.json()["message"], r
    assert "not in the sandbox" in r.json()["message"] and "{resource_dir}" in r.json()["message"], r


def test_a_directory_that_comes_later_is_found(server_with, kernel_path):
    later = os.path.join(kernel_path.path, "later", "still")
    s = server_with("--kernel-path", later)
    assert "late" not in s.request("GET", "/api/kernelspecs").json()["kernelspecs"]
    kernel_path.add("late", ["/bin/false"])
    os.makedirs(later)
    os.rename(os.path.join(kernel_path.path, "kernels"), os.path.join(later, "kernels"))
    assert "late" in s.request("GET", "/api/kernelspecs").json()["kernelspecs"]


def test_directories_that_can_be_read_are_no_news_and_absent_ones_are_told_once(server_with, kernel_path):
    kernel_path.add("shown", ["/bin/false"])
    os.makedirs(os.path.join(kernel_path.path, "empty"))
    s = server_with("--kernel-path", ":".join([kernel_path.path, f"{kernel_path.path}/absent", f"{kernel_path.path}/empty"]))
    assert not warnings_of(s)
    r = s.request("POST", "/api/kernels", {"name": "nosuch"})
    assert r.status >= 400 and "nosuch not found" in r.json()["message"]
    assert HINT not in r.json()["message"]
    told = events(s, "kernel_path_missing")
    assert ["level=warn" in line for line in told] == [True, True], s.log()
    assert f"dir={kernel_path.path}/absent " in told[0] and f"dir={kernel_path.path}/empty " in told[1]


def test_a_kernelspec_that_cannot_be_used_is_told_once_with_its_path_and_the_reason(server_with, kernel_path):
    top = os.path.join(kernel_path.path, "kernels")
    for name in ("badj", "noargv", "two words", "later"):
        kernel_path.add(name, ["/bin/false"])
    os.makedirs(os.path.join(top, "no-kernel-at-all"))

    def put(name, text):
        with open(os.path.join(top, name, "kernel.json"), "w") as f:
            f.write(text)
    put("badj", '{"env": {"KEY": secret}}')
    put("noargv", "{}")
    s = server_with("--kernel-path", kernel_path.path)

    def told(name):
        return [line for line in events(s, "kernelspec_unusable") if f"path={top}/{name}/kernel.json " in line]
    for _ in range(3):
        assert set(s.request("GET", "/api/kernelspecs").json()["kernelspecs"]) == {"python3", "later"}
        r = s.request("POST", "/api/kernels", {"name": "badj"})
        assert "Kernel spec badj not found" in r.json()["message"] and "see the server's log" in r.json()["message"], r
        assert top not in r.json()["message"], "where it is on the host is for the log"
    line, = told("badj")
    assert "level=warn" in line and 'error="it is not valid JSON (line 1, column 22)"' in line
    assert "secret" not in s.log()
    line, = told("noargv")
    assert "'argv'" in line
    line, = told(r"two\x20words")
    assert "the name of its directory" in line
    assert len(events(s, "kernelspec_unusable")) == 3
    # What goes wrong later, and again, is told as well.
    good = json.dumps({"argv": ["/bin/false"]})
    for round in (1, 2):
        put("later", "[]")
        assert "later" not in s.request("GET", "/api/kernelspecs").json()["kernelspecs"]
        assert len(told("later")) == round, s.log()
        put("later", good)
        assert "later" in s.request("GET", "/api/kernelspecs").json()["kernelspecs"]


def test_python_is_another_name_of_python3_unless_a_kernelspec_is_called_so(server_with, kernel_path):
    """Jupyter's managers take it, and old clients send it (deprecated sessions, Kernel Gateway's tests)."""
    s = server_with("--kernel-path", kernel_path.path)
    r = s.request("POST", "/api/kernels", {"name": "python"})
    assert r.status == 201 and r.json()["name"] == "python3", r
    r = s.request("POST", "/api/sessions", {"path": "a.ipynb", "type": "notebook", "kernel": {"name": "python"}})
    assert r.status == 201 and r.json()["kernel"]["name"] == "python3", r
    assert s.request("GET", "/api/kernelspecs/python").status == 404
    kernel_path.add("python", ["/nowhere/at/all"])
    assert s.request("POST", "/api/kernels", {"name": "python"}).status == 500
    assert s.request("GET", "/api/kernelspecs/python").status == 200


def test_python_does_not_uncover_a_hidden_python3(server_with, kernel_path):
    kernel_path.add("other", ["/bin/false"])
    s = server_with("--kernel-path", kernel_path.path, "--allowed-kernels", "other")
    r = s.request("POST", "/api/kernels", {"name": "python"})
    assert r.status == 500 and "Kernel spec python not found" in r.json()["message"], r
