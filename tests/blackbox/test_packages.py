"""Every package of runtime/requirements.in does one real thing inside a sandbox, in a home of its own
and without a word on stderr; so do the parts of the standard library that walls like to break."""

import os
import re

import pytest

from channels import Channels
from server import ROOT
from tiers import full_after

# One cell per requirement; each ends in an expression that is true.
CELLS = {
    "ipykernel": """
import ipykernel, asyncio
await asyncio.sleep(0)
get_ipython().kernel.implementation == "ipython" """,
    "ipywidgets": """
import ipywidgets
slider = ipywidgets.IntSlider(value=3)
display(slider)
slider.value == 3 and slider.comm is not None""",
    "numpy": """
import numpy as np
bool(np.allclose(np.linalg.inv(np.diag([2.0, 4.0])), np.diag([0.5, 0.25])))""",
    "pandas": """
import pandas as pd
from io import StringIO
frame = pd.read_csv(StringIO("day,n\\n2024-01-31,1\\n2024-02-01,5"), parse_dates=["day"])
frame.set_index("day").resample("MS").n.sum().tolist() == [1, 5]""",
    "pyarrow": """
import pandas as pd
pd.DataFrame({"a": [1, 2], "b": ["x", None]}).to_parquet("t.parquet")
pd.read_parquet("t.parquet").b.isna().tolist() == [False, True]""",
    "scipy": """
from scipy import optimize
abs(optimize.brentq(lambda x: x * x - 2, 0, 2) - 2 ** 0.5) < 1e-9""",
    "scikit-learn": """
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
X, y = load_iris(return_X_y=True)
RandomForestClassifier(10, random_state=0, n_jobs=-1).fit(X, y).score(X, y) > 0.9""",
    "statsmodels": """
import statsmodels.api as sm, statsmodels.formula.api as smf
data = sm.datasets.macrodata.load_pandas().data
fit = smf.ols("realcons ~ realgdp", data).fit()
len(str(fit.summary())) > 500 and bool(fit.rsquared > 0.99)""",
    "patsy": """
import numpy as np, patsy
patsy.dmatrix("x + I(x ** 2)", {"x": np.arange(3.0)}).shape == (3, 3)""",
    "matplotlib": """
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.plot([1, 3, 2]); axes.set_title("Größe in °C, Ω, $x^2$")
figure.savefig("m.pdf"); figure.savefig("m.svg"); plt.show()
open("m.pdf", "rb").read(4) == b"%PDF" """,
    "seaborn": """
import pandas as pd, seaborn as sns
axes = sns.barplot(pd.DataFrame({"k": ["a", "b"], "n": [1, 2]}), x="k", y="n")
len(axes.patches) == 2""",
    "plotly": """
import plotly.express as px
figure = px.line(x=[1, 2], y=[3, 4])
display(figure)
figure.to_json().startswith("{") and "<div" in figure.to_html(include_plotlyjs=False)""",
    "pillow": """
from PIL import Image, ImageDraw, ImageFont
image = Image.new("RGB", (60, 20), "white")
ImageDraw.Draw(image).text((2, 2), "hi", fill="black", font=ImageFont.load_default())
image.save("p.jpg"); image.save("p.webp")
display(image)
Image.open("p.webp").size == (60, 20)""",
    "openpyxl": """
import pandas as pd
pd.DataFrame({"a": [1, 2]}).to_excel("t.xlsx", index=False)
pd.read_excel("t.xlsx").a.tolist() == [1, 2]""",
    "lxml": """
import io, pandas as pd
from lxml import etree
table = pd.read_html(io.StringIO("<table><tr><th>a</th></tr><tr><td>7</td></tr></table>"))[0]
table.a.tolist() == [7] and etree.fromstring("<a><b/></a>").xpath("count(//b)") == 1.0""",
    "beautifulsoup4": """
from bs4 import BeautifulSoup
BeautifulSoup("<p>one<p>two", "lxml").find_all("p")[1].text == "two" """,
    "pypdf": """
import pypdf
writer = pypdf.PdfWriter(); writer.add_blank_page(72, 72); writer.write("p.pdf")
len(pypdf.PdfReader("p.pdf").pages) == 1""",
    "sqlalchemy": """
import pandas as pd, sqlalchemy
engine = sqlalchemy.create_engine("sqlite:///t.db")
pd.DataFrame({"a": [1, 2]}).to_sql("t", engine, index=False)
pd.read_sql("select sum(a) as s from t", engine).s.tolist() == [3]""",
    "requests": """
import requests, time
began = time.monotonic()
try:
    requests.get("https://example.com/", timeout=60)
except requests.exceptions.ConnectionError as error:
    said = str(error)
"resolve" in said and time.monotonic() - began < 30""",
    "tqdm": """
from tqdm import tqdm
from tqdm.auto import tqdm as notebook_bar
import sys
sum(tqdm(range(3), file=sys.stdout)) + sum(notebook_bar([1])) == 4""",
    "nbformat": """
import nbformat
nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])) is None""",
    "jinja2": """
import pandas as pd
style = pd.DataFrame({"a": [1.234]}).style.format("{:.1f}")
display(style)
"1.2" in style.to_html() and "tabular" in pd.DataFrame({"a": [1]}).to_latex()""",
    "tabulate": """
import pandas as pd
pd.DataFrame({"a": [1]}).to_markdown().startswith("|") """,
    "jupyter-mimetypes": """
import jupyter_mimetypes, pandas
frame = pandas.DataFrame({"a": [1, 2, 3]})
data, metadata = jupyter_mimetypes.serialize_object(frame)
jupyter_mimetypes.deserialize_object(data, metadata).equals(frame)""",
}

# What a package shows beside its last value.
SHOWN = {
    "ipywidgets": "application/vnd.jupyter.widget-view+json",
    "matplotlib": "image/png",
    "seaborn": "image/png",
    "plotly": "application/vnd.plotly.v1+json",
    "pillow": "image/png",
    "jinja2": "text/html",
}

STANDARD = {
    "sqlite3": """
import sqlite3
with sqlite3.connect("s.db") as db:
    db.execute("create table t(a)"); db.execute("insert into t values (5)")
db.execute("select a from t").fetchall() == [(5,)]""",
    "multiprocessing": """
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool: forked = pool.map(abs, [-1, -2])
with multiprocessing.get_context("spawn").Pool(1) as pool: spawned = pool.map(abs, [-3])
forked + spawned == [1, 2, 3]""",
    "concurrent.futures": """
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
with ThreadPoolExecutor(4) as threads, ProcessPoolExecutor(2) as processes:
    got = list(threads.map(abs, [-1])) + list(processes.map(abs, [-2]))
got == [1, 2]""",
    "asyncio": """
import asyncio
async def echo(reader, writer):
    writer.write(await reader.readline()); writer.close()
server = await asyncio.start_server(echo, "127.0.0.1", 0)
reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
writer.write(b"hi\\n")
await reader.readline() == b"hi\\n" """,
    "zoneinfo": """
import datetime, time, zoneinfo
berlin = datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
berlin.utcoffset() == datetime.timedelta(hours=2) and time.tzname[0] == "UTC" """,
    "locale": """
import locale, subprocess, sys
said = subprocess.run([sys.executable, "-c", "print('äöü €')"], capture_output=True, text=True).stdout
locale.getpreferredencoding() == "UTF-8" and said == "äöü €\\n" """,
    "tempfile": """
import os, tempfile, pathlib
with tempfile.NamedTemporaryFile() as f: f.write(b"x"); f.flush(); size = os.stat(f.name).st_size
size == 1 and os.getcwd() == str(pathlib.Path.home()) == "/home/user" """,
    "ctypes": """
import ctypes
ctypes.CDLL(None).getpid() == __import__("os").getpid()""",
    "ssl, hashlib, secrets": """
import hashlib, secrets, ssl
digest = hashlib.sha256(b"").digest()
ssl.create_default_context() is not None and len(secrets.token_hex(8)) == 16 and len(digest) == 32""",
    "gzip, zipfile, lzma, bz2": """
import bz2, gzip, lzma, zipfile
with zipfile.ZipFile("z.zip", "w", zipfile.ZIP_DEFLATED) as z: z.writestr("a", "b" * 100)
packed = lzma.compress(bz2.compress(gzip.compress(b"x")))
zipfile.ZipFile("z.zip").read("a") == b"b" * 100 and gzip.decompress(bz2.decompress(lzma.decompress(packed))) == b"x" """,
}


def requirements():
    with open(os.path.join(ROOT, "runtime", "requirements.in")) as f:
        return [re.match(r"[A-Za-z0-9_-]+", line).group() for line in f if re.match(r"[A-Za-z]", line)]


@pytest.fixture(scope="module")
def session(shared):
    """One session for all cells: packages also have to bear each other."""
    kid = shared.start_kernel("python3")
    with Channels(shared, kid) as c:
        yield c
    shared.delete_kernel(kid)


def true_and_silent(run):
    assert run.status == "ok", run.reply["content"]
    assert run.result == "True"
    assert run.stream("stderr") == ""


def test_each_requirement_has_a_cell():
    assert sorted(requirements()) == sorted(CELLS)


@pytest.mark.parametrize("name", CELLS)
def test_a_package_does_one_real_thing(session, name):
    run = session.run(CELLS[name], timeout=180)
    true_and_silent(run)
    shown = [kind for m in run.of("display_data") for kind in m["content"]["data"]]
    assert SHOWN.get(name) in [None, *shown], shown


@pytest.mark.parametrize("name", STANDARD)
def test_the_standard_library_works(session, name):
    true_and_silent(session.run(STANDARD[name], timeout=180))


@pytest.mark.parametrize("command", full_after(1, [
    "!pip install no-such-package", "%pip install no-such-package", "!pip3 download -q no-such-package"]))
def test_pip_says_that_there_is_no_network(session, command):
    run = session.run(command, timeout=120)
    assert "this session has no network" in run.text + run.stream("stderr")
    assert "Retrying" not in run.text


@pytest.mark.full
def test_pip_works_where_it_needs_no_network(session):
    run = session.run("!pip list; pip show pandas")
    assert re.search(r"^numpy +[0-9]", run.text, re.M) and "Name: pandas" in run.text
    assert "no network" not in run.text


@pytest.mark.full
def test_an_uploaded_wheel_can_be_installed_as_the_message_says(session):
    run = session.run("""
import zipfile, sys
with zipfile.ZipFile("tiny-1.0-py3-none-any.whl", "w") as z:
    z.writestr("tiny.py", "answer = 42")
    z.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    z.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\n"
               "tiny-1.0.dist-info/WHEEL,,\\ntiny-1.0.dist-info/RECORD,,\\n")
!pip install -q --no-deps --target lib tiny-1.0-py3-none-any.whl
sys.path.insert(0, "lib")
import tiny
tiny.answer""", timeout=120)
    assert run.result == "42", run.messages
