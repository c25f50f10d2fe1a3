"""Named profiles: what they say is in force, and nobody gets more than that by any way."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import uuid

import pytest

import hidden
from channels import Channels
from disks import homes_on_disk
from principals import PrincipalServer, entry
from server import BIN, Server, cgroups_of, read, wait_for
from test_limits import PROBE, in_force, told
from tiers import full_after

SMALL = {"memory_mb": 256, "cpus": 0.5, "pids": 64, "disk_mb": 30, "tmp_mb": 20, "shm_mb": 10, "inodes": 1000, "fds": 256, "output_mb": 5}
MORE = {"memory_mb": 512, "cpus": 0.75, "pids": 80, "disk_mb": 40, "tmp_mb": 24, "shm_mb": 12, "inodes": 2000, "fds": 300, "output_mb": 6}
TIMES = {"cell_timeout": 50, "stdin_timeout": 40, "max_lifetime": 3000}


class ProfileServer(PrincipalServer):
    """Started with --profiles; `profiles` are those of the file, `lines` principals beside the token's."""

    def __init__(self, profiles, *options, lines=(), **kw):
        super().__init__(lines, *options, own=kw.pop("own", "t0ken-of-the-profiles"), **kw)
        self.profiles = os.path.join(self.dir, "profiles.json")
        self.say(profiles)

    def argv(self):
        return super().argv() + ["--profiles", self.profiles]

    def say(self, profiles, mode=0o644):
        with open(self.profiles, "w") as f:
            os.fchmod(f.fileno(), mode)
            f.write(profiles if isinstance(profiles, str) else json.dumps({"profiles": profiles}))

    def post(self, **model):
        return self.request("POST", "/api/kernels", model)


@pytest.fixture
def with_profiles():
    own = []

    def make(profiles, *options, **kw):
        own.append(ProfileServer(profiles, *options, **kw).start())
        return own[-1]
    yield make
    for s in own:
        s.close()


def message(r, status):
    assert r.status == status, r
    return r.json()["message"]


def refused_start(profiles, *options, **kw):
    """The log of a server that does not start."""
    s = ProfileServer(profiles, *options, **kw)
    try:
        s.spawn()
        assert s.proc.wait(60) != 0
        assert "serving on" not in s.log()
        return s.log()
    finally:
        s.close()


def test_each_limit_of_a_profile_is_in_force_and_each_may_rise_to_its_maximum(with_profiles):
    s = with_profiles({"small": {"limits": {**SMALL, **TIMES}, "maxima": MORE}})
    for asked, limits in ((None, SMALL), (MORE, MORE)):
        kid = s.start_kernel("python3", profile="small", **({"limits": asked} if asked else {}))
        assert told(s, kid) == {**limits, **TIMES}
        assert in_force(s) == {k: limits[k] for k in ("memory_mb", "cpus", "pids")}
        with Channels(s, kid) as c:
            (home, home_files), *rest = eval(c.run(PROBE).result)
            assert rest == [(limits["tmp_mb"], limits["inodes"]), (limits["shm_mb"], limits["inodes"]), limits["fds"]]
            assert limits["disk_mb"] - 2 <= home <= limits["disk_mb"] + 1 and limits["inodes"] <= home_files < limits["inodes"] + 100
            assert c.run(f"x = bytearray({limits['memory_mb'] + 100} << 20)").status == "error"
        assert s.kernel(kid)["profile"] == "small"
        assert s.delete_kernel(kid) == 204
    for name, value in MORE.items():
        more = value + (0.01 if name == "cpus" else 1)
        assert message(s.post(profile="small", limits={name: more}), 400).startswith(f"limits.{name}")
    for name, value in TIMES.items():
        assert message(s.post(profile="small", limits={name: value + 1}), 400).startswith(f"limits.{name}")
    kid = s.start_kernel("python3")
    assert s.kernel(kid)["profile"] == "default" and told(s, kid)["memory_mb"] == 2048


@pytest.mark.full
def test_the_options_have_maxima_of_their_own(server_with):
    s = server_with("--memory-mb", "256", "--max-memory-mb", "512", "--cpus", "0.5", "--max-cpus", "1.5")
    kid = s.start_kernel("python3")
    assert "profile" not in s.kernel(kid) and told(s, kid)["memory_mb"] == 256
    assert s.delete_kernel(kid) == 204
    kid = s.start_kernel("python3", limits={"memory_mb": 512, "cpus": 1.5})
    assert in_force(s)["memory_mb"] == 512 and in_force(s)["cpus"] == 1.5
    for limits in ({"memory_mb": 513}, {"cpus": 1.51}, {"pids": 257}):
        assert f"limits.{next(iter(limits))}" in message(s.request("POST", "/api/kernels", {"limits": limits}), 400)


def test_a_maximum_below_the_option_is_refused_by_name(tmp_path):
    got = subprocess.run([BIN, "serve", "--max-memory-mb", "2047"], capture_output=True, text=True)
    assert got.returncode == 2 and "option --max-memory-mb: 2047 is below --memory-mb, which is 2048" in got.stderr


def test_sessions_name_a_profile_for_their_kernel(with_profiles):
    s = with_profiles({"small": {"limits": SMALL}, "other": {"limits": {"memory_mb": 300}}})
    r = s.request("POST", "/api/sessions", {"path": "a", "type": "console", "kernel": {"profile": "small"}})
    assert r.status == 201 and r.json()["kernel"]["profile"] == "small"
    url = f"/api/sessions/{r.json()['id']}"
    first = r.json()["kernel"]["id"]
    assert "kernel.profile" in message(s.request("PATCH", url, {"kernel": {"profile": "other"}}), 400)
    assert "kernel.profile" in message(s.request("PATCH", url, {"kernel": {"id": first, "profile": "other"}}), 409)
    assert message(s.request("PATCH", url, {"kernel": {"name": "python3", "profile": "nosuch"}}), 400).startswith("profile: there is no")
    assert s.request("GET", url).json()["kernel"]["id"] == first        # nothing has happened
    r = s.request("PATCH", url, {"kernel": {"name": "python3", "profile": "other"}})
    assert r.status == 200 and r.json()["kernel"]["profile"] == "other"
    assert told(s, r.json()["kernel"]["id"])["memory_mb"] == 300 == in_force(s)["memory_mb"]
    kid = r.json()["kernel"]["id"]
    assert "profile" in message(s.post(kernel_id=kid, profile="small"), 409)        # it runs with another one
    assert s.post(kernel_id=kid, profile="other").status == 201
    again = {"path": "a", "type": "console", "kernel": {"profile": "small"}}
    assert "kernel.profile" in message(s.request("POST", "/api/sessions", again), 409)
    again["kernel"]["profile"] = "other"
    r = s.request("POST", "/api/sessions", again)
    assert r.status == 201 and r.json()["kernel"]["id"] == kid


def test_a_kernel_that_still_starts_is_not_given_for_another_profile(with_profiles):
    s = with_profiles({"small": {"limits": SMALL}, "other": {"limits": {"memory_mb": 300}}})
    kid = str(uuid.uuid4())
    with concurrent.futures.ThreadPoolExecutor() as pool:
        first = pool.submit(s.post, kernel_id=kid, profile="small")
        wait_for(lambda: s.request("GET", f"/api/kernels/{kid}").status == 200, every=0.001)
        same = pool.submit(s.post, kernel_id=kid, profile="small")
        assert "profile" in message(s.post(kernel_id=kid, profile="other"), 409)
        assert first.result().json()["profile"] == "small" == same.result().json()["profile"]


@pytest.mark.parametrize("value, word", [(5, "profile must be a string"), ([], "profile must be a string"), ("nosuch", "there is no profile 'nosuch'"),
                                         ("a\0", "profile has a NUL"), ("", "there is no profile ''"), ("x" * 200, "profile is longer")])
def test_a_profile_that_is_none_is_400_and_nothing_is_made(with_profiles, value, word):
    s = with_profiles({"small": {}})
    assert word in message(s.post(profile=value), 400)
    assert s.request("GET", "/api/kernels").json() == []


def test_a_server_without_profiles_knows_default_alone(shared):
    assert "there is no profile 'small'" in message(shared.request("POST", "/api/kernels", {"profile": "small"}), 400)
    kid = shared.start_kernel("python3", profile="default")
    assert "profile" not in shared.kernel(kid)
    assert shared.delete_kernel(kid) == 204


@pytest.mark.full
def test_principals_have_their_profile_and_those_that_they_may_name(with_profiles):
    s = with_profiles({"small": {"limits": SMALL, "maxima": MORE}, "large": {"limits": {"memory_mb": 1024}, "maxima": {"memory_mb": 4096}}},
                      lines=[entry("one", profile="small"), entry("some", profile="small", profiles=["default"]), entry("none"),
                             entry("all", profiles="*"), entry("less", profiles=["large"], limits={"memory_mb": 3000})])
    for name, first, may in (("one", "small", ["small"]), ("some", "small", ["small", "default"]), ("none", "default", ["default"]),
                             ("all", "default", ["default", "small", "large"]), ("less", "default", ["default", "large"])):
        who = s.as_(name)
        kid = who.start_kernel("python3")
        assert who.kernel(kid)["profile"] == first, name
        assert who.delete_kernel(kid) == 204
        for profile in ("default", "small", "large", "nosuch"):
            r = who.request("POST", "/api/kernels", {"profile": profile})
            if profile in may:
                assert r.status == 201 and r.json()["profile"] == profile, (name, r)
                assert who.delete_kernel(r.json()["id"]) == 204
            elif name == "all":
                assert "there is no profile" in message(r, 400)
            else:       # one that there is and one that there is not are answered alike
                assert message(r, 403) == f"profile: '{profile}' is not one of yours"
    less = s.as_("less")
    kid = less.start_kernel("python3", profile="large")
    assert told(less, kid)["memory_mb"] == 1024
    assert less.delete_kernel(kid) == 204
    assert "limits.memory_mb: 3001 is above 3000" in message(less.request("POST", "/api/kernels", {"profile": "large", "limits": {"memory_mb": 3001}}), 400)
    kid = less.start_kernel("python3", profile="large", limits={"memory_mb": 3000})
    assert in_force(s)["memory_mb"] == 3000


@pytest.mark.parametrize("fields, word", [({"profile": "nosuch"}, "field 'profile' has to be"), ({"profiles": ["nosuch"]}, "field 'profiles' has a name (number 1)"),
                                          ({"profiles": "small"}, "field 'profiles' has to be"), ({"profiles": [5]}, "field 'profiles' has to be"),
                                          ({"role": "observer", "observes": "*", "profiles": []}, "field 'profiles' is for the role"),
                                          ({"limits": {"memory_mb": 4097}}, "field 'limits.memory_mb' is above the server's own limit, 4096")])
def test_a_line_of_principals_that_names_no_profile_is_refused(fields, word):
    assert word in refused_start({"small": {"maxima": {"memory_mb": 4096}}}, lines=[entry("a", **fields)])


@pytest.mark.full
def test_kernels_and_data_are_those_of_the_profile(with_profiles, kernel_path, tmp_path):
    kernel_path.add_scripted()
    os.chmod(tmp_path, 0o755)
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    options = ["--kernel-path", kernel_path.path]
    for name in ("one", "two", "three"):
        options += ["--data", f"{name}={tmp_path / name}"]
    s = with_profiles({"r": {"kernels": ["scripted"]}, "d": {"kernels": ["python3"], "data": ["one", "two"]}, "n": {"data": []}}, *options,
                      lines=[entry("ann", profiles="*", data=["two", "three"])])
    assert message(s.post(name="python3", profile="r"), 403).startswith("name: kernelspec 'python3' is not one of profile 'r'")
    r = s.post(profile="r")     # its first one, since the server's own is none of it
    assert r.status == 201 and r.json()["name"] == "scripted" and r.json()["profile"] == "r"
    assert s.delete_kernel(r.json()["id"]) == 204
    look = "import os; sorted(os.listdir('/data')) if os.path.isdir('/data') else []"
    ann = s.as_("ann")
    for who, profile, names in ((s, "d", ["one", "two"]), (s, "n", []), (s, "default", ["one", "three", "two"]),
                                (ann, "d", ["two"]), (ann, "default", ["three", "two"]), (ann, "n", [])):
        kid = who.start_kernel("python3", profile=profile)
        with Channels(who, kid) as c:
            assert eval(c.run(look).result) == names, (profile, names)
        assert who.delete_kernel(kid) == 204


def home_of(s, kid):
    with Channels(s, kid) as c:
        return c.run("[l.split()[2] for l in open('/proc/mounts') if l.split()[1] == '/home/user'][-1]").result.strip("'")


def test_a_home_lies_where_the_profile_says(with_profiles, server_with):
    disks = homes_on_disk(server_with())
    s = with_profiles({"mem": {"home": "tmpfs", "limits": {"disk_mb": 40}}, **({"disk": {"home": "disk"}} if disks else {})},
                      "--home", "auto")
    kid = s.start_kernel("python3", profile="mem")
    assert home_of(s, kid) == "tmpfs" and told(s, kid)["disk_mb"] == 40
    assert "home=memory profile=mem" in s.log()
    assert s.delete_kernel(kid) == 204
    if not disks:
        pytest.skip("no homes on disk here: that of a profile in memory was looked at alone")
    kid = s.start_kernel("python3", profile="disk")
    assert home_of(s, kid) == "ext4" and "home=disk profile=disk" in s.log()


def test_a_server_with_homes_in_memory_has_profiles_with_homes_on_disk(with_profiles, server_with):
    disks = homes_on_disk(server_with())
    s = with_profiles({"as-the-server": {}, **({"disk": {"home": "disk"}} if disks else {})}, "--home", "tmpfs")
    assert home_of(s, s.start_kernel("python3", profile="as-the-server")) == "tmpfs"
    if not disks:
        pytest.skip("no homes on disk here: that of a profile as the server's was looked at alone")
    assert home_of(s, s.start_kernel("python3", profile="disk")) == "ext4"


def test_idle_kernels_of_a_profile_end_after_its_own_time(with_profiles):
    s = with_profiles({"short": {"limits": {"cull_idle_timeout": 0.5}}}, "--cull-interval", "0.2")
    stays, goes = s.start_kernel("python3"), s.start_kernel("python3", profile="short")
    wait_for(lambda: s.kernel(goes) is None)
    assert s.kernel(stays)


def test_the_lifetime_of_a_profile_ends_its_sessions(with_profiles):
    s = with_profiles({"short": {"limits": {"max_lifetime": 2}}})
    kid = s.start_kernel("python3", profile="short")
    wait_for(lambda: s.kernel(kid) is None)
    assert "profile=short" in s.log()


@pytest.mark.full
def test_a_reload_brings_new_profiles_and_leaves_what_runs_as_it_was(with_profiles):
    s = with_profiles({"small": {"limits": SMALL}, "old": {}}, lines=[entry("ann", profile="small")])
    old = s.start_kernel("python3", profile="small")
    s.say({"small": {"limits": {**SMALL, "memory_mb": 300}}, "new": {}})
    s.hang_up()
    assert told(s, old)["memory_mb"] == 256 and s.kernel(old)["profile"] == "small"
    assert s.restart(old).status == 200 and told(s, old)["memory_mb"] == 256 == in_force(s)["memory_mb"]
    assert s.delete_kernel(old) == 204
    ann = s.as_("ann")
    kid = ann.start_kernel("python3")
    assert told(ann, kid)["memory_mb"] == 300 == in_force(s)["memory_mb"]
    assert ann.delete_kernel(kid) == 204
    assert s.post(profile="new").status == 201
    assert "there is no profile 'old'" in message(s.post(profile="old"), 400)
    launcher = s.process("launcher")
    os.kill(launcher, signal.SIGKILL)       # the next one starts with the table of now
    s.wait_next("launcher", launcher)
    assert s.post(profile="new").status == 201 and "there is no profile 'old'" in message(s.post(profile="old"), 400)


@pytest.mark.parametrize("text, word", full_after(1, [
    ("{", "option --profiles: line 1, column 1: this is no JSON"),
    ({"small": {"limits": {"memory_mb": 1}}}, "option --profiles: profiles.small.limits.memory_mb: has to be a whole number from 64"),
    ({"small": {"data": ["x"]}}, "option --profiles: profiles.small.data: the server has no 'x'"),
    ({"other": {}}, "option --principals: line 1: field 'profile' has to be")]))
def test_a_reload_with_a_bad_file_changes_nothing_and_says_why(with_profiles, text, word):
    s = with_profiles({"small": {"limits": SMALL}}, lines=[entry("ann", profile="small")])
    s.say(text)
    assert word in s.hang_up("reload_refused")
    kid = s.as_("ann").start_kernel("python3")
    assert told(s.as_("ann"), kid)["memory_mb"] == 256
    s.say({"small": {"limits": {"memory_mb": 200}}})
    s.hang_up()
    assert told(s.as_("ann"), s.as_("ann").start_kernel("python3"))["memory_mb"] == 200


def test_a_file_that_others_may_change_is_refused():
    s = ProfileServer({"small": {}})
    try:
        os.chmod(s.profiles, 0o666)
        s.spawn()
        assert s.proc.wait(60) != 0
        assert re.search("option --profiles: '.*' has mode 0666: others may change it", s.log())
    finally:
        s.close()


def test_what_is_demanded_and_missing_refuses_the_start_by_profile_and_wall():
    options = ("--accept-missing", "landlock")
    prepare = hidden.calls("landlock_create_ruleset")
    log = refused_start({"fine": {}, "strict": {"isolation": "hardened"}}, *options, prepare=prepare)
    assert "option --profiles: profiles.strict.isolation: this host has no wall 'landlock', which the profile demands" in log
    log = refused_start({"fine": {"isolation": "namespaces"}, "strict": {"walls": ["landlock"]}}, *options, prepare=prepare)
    assert "profiles.strict.walls: this host has no wall 'landlock'" in log


def test_a_reload_that_demands_what_is_missing_is_refused_by_the_launcher(with_profiles):
    s = with_profiles({"fine": {"isolation": "namespaces"}}, "--accept-missing", "landlock", prepare=hidden.calls("landlock_create_ruleset"))
    s.say({"strict": {"isolation": "hardened"}})
    assert "profiles.strict.isolation: this host has no wall 'landlock'" in s.hang_up("reload_refused")
    assert s.post(profile="fine").status == 201
    assert "there is no profile" in message(s.post(profile="strict"), 400)
    s.say({"fine": {}, "more": {}})
    s.hang_up()
    assert s.post(profile="more").status == 201


def test_the_next_gateway_and_the_next_server_know_the_profile(with_profiles):
    s = with_profiles({"small": {"limits": {**SMALL, "max_lifetime": 3000}}}, "--on-exit", "keep")
    kid = s.start_kernel("python3", profile="small")
    with Channels(s, kid) as c:
        assert c.run("x = 41").status == "ok"
    old = s.process("gateway")
    os.kill(old, signal.SIGKILL)
    s.wait_next("gateway", old)
    assert s.kernel(kid)["profile"] == "small" and told(s, kid) == {**SMALL, "max_lifetime": 3000}
    assert s.stop() == 0
    s.say({"small": {"limits": {"memory_mb": 400}}})
    s.start()
    try:
        assert s.kernel(kid)["profile"] == "small" and told(s, kid)["memory_mb"] == 256
        with Channels(s, kid) as c:
            assert c.run("x + 1").result == "42"
        assert s.delete_kernel(kid) == 204
        kid = s.start_kernel("python3", profile="small")
        assert told(s, kid)["memory_mb"] == 400
    finally:
        for k in s.request("GET", "/api/kernels").json():
            s.delete_kernel(k["id"])


def check(path, *options):
    return subprocess.run([BIN, "profiles", "check", str(path), *options], capture_output=True, text=True)


def test_check_shows_each_profile_resolved(tmp_path):
    f = tmp_path / "p"
    f.write_text(json.dumps({"profiles": {"small": {"limits": {"memory_mb": 256, "cell_timeout": 2.5}, "maxima": {"memory_mb": 512}, "data": ["x"],
                                                    "kernels": ["python3"], "isolation": "hardened"}, "b": {"home": "tmpfs"}}}))
    f.chmod(0o644)
    got = check(f, "--pids", "99")
    assert got.returncode == 0 and got.stderr == "", got
    small, b = got.stdout.split("\nb\n")
    assert small.startswith(f"{f}: 2 profiles\nsmall\n")
    assert re.search(r"memory_mb +256 +at most 512", small) and re.search(r"pids +99 +at most 99", small)
    assert re.search(r"cell_timeout +2.5 +at most 2.5", small) and re.search(r"max_lifetime +none", small)
    assert re.search(r"data +x\n", small) and re.search(r"kernels +python3\n", small) and re.search(r"isolation +hardened$", small)
    assert re.search(r"home +tmpfs\n", b) and re.search(r"disk_mb +512 ", b) and re.search(r"data +all\n", b)


def test_check_tells_what_is_wrong_with_the_file_and_names_no_option(tmp_path):
    f = tmp_path / "p"
    f.write_text("{}")
    f.chmod(0o666)
    for path, why in ((f, f"'{f}' has mode 0666"), (tmp_path / "none", f"open '{tmp_path}/none'")):
        got = check(path)
        assert got.returncode == 2 and got.stderr.startswith(f"holdcell profiles: {why}"), got.stderr


def test_check_tells_what_is_wrong_and_fails(tmp_path):
    f = tmp_path / "p"
    f.write_text('{"profiles": {"small": {"limits": {"memory_mb": "x"}}}}')
    f.chmod(0o644)
    got = check(f)
    assert got.returncode == 2 and got.stdout == ""
    assert f"holdcell profiles: {f}: profiles.small.limits.memory_mb: has to be a whole number" in got.stderr
    f.write_text('{"profiles": {"small": {"data": ["x"]}}}')
    assert check(f).returncode == 0 and check(f, "--data", "y=/tmp").returncode == 2
    assert check(tmp_path / "nosuch").returncode == 2 and check("--help").returncode == 0


def test_check_needs_no_data_directory_of_the_server_but_its_name(tmp_path):
    f = tmp_path / "p"
    f.write_text('{"profiles": {"small": {"data": ["w"]}}}')
    f.chmod(0o644)
    got = check(f, "--data", "w=/nowhere/at/all")
    assert got.returncode == 0 and re.search(r"data +w\n", got.stdout), got
    for given, why in ((["x=/nowhere/at/all"], "profiles.small.data"), (["w"], "option --data"),
                       (["w=/nowhere", "w=/other"], "option --data: w: there are two of this name")):
        got = check(f, *[word for one in given for word in ("--data", one)])
        assert got.returncode == 2 and why in got.stderr, got


@pytest.mark.parametrize("argv, said", [
    (["profiles"], "holdcell profiles: check is missing\nusage:"),
    (["profiles", "chek"], "holdcell profiles: 'chek' is not check\nusage:"),
    (["profiles", "check"], "holdcell profiles: check: FILE is missing\n"),
    (["profiles", "check", "--pids", "99"], "holdcell profiles: check: FILE is missing; it comes before the options\n"),
    (["audit"], "holdcell audit: verify is missing\nusage:"),
    (["audit", "verfy"], "holdcell audit: 'verfy' is not verify\nusage:"),
    (["audit", "verify"], "holdcell audit: verify: FILE is missing\n"),
    (["stop"], "holdcell stop: option --state-dir is needed\n"),
])
def test_what_is_missing_of_a_command_is_told(argv, said):
    got = subprocess.run([BIN, *argv], capture_output=True, text=True)
    assert got.returncode == 2 and got.stdout == "" and got.stderr.startswith(said), got
