#!/usr/bin/env python3
"""Makes the files beside it again, from packages that ship the original data.

Needs statsmodels and vega_datasets 0.9.0 (only for this script):

    python3 notebooks/data/make_data.py

The weather and economy files are copies. births.csv holds real figures in the shape
that a spreadsheet with a German locale exports: see README.md in the folder above.
"""

import csv
import pathlib
import shutil

import statsmodels.datasets
import vega_datasets

HERE = pathlib.Path(__file__).resolve().parent
STATSMODELS = pathlib.Path(statsmodels.datasets.__file__).parent
VEGA = pathlib.Path(vega_datasets.__file__).parent / "_data"

# The World Bank's file has these names without their accents.
NAMES = {
    "Cote d'Ivoire": "Côte d'Ivoire",
    "Curacao": "Curaçao",
    "Sao Tome and Principe": "São Tomé and Príncipe",
}
MISSING = ["", "..", "k. A.", "-"]
PREFACE = [
    "Weltbank - World Development Indicators;",
    "Indikator: Fertilitätsrate, gesamt (Geburten je Frau);",
    "Zuletzt geändert: 2014-04-09;",
    ";",
]
FOOTER = [
    ";",
    "Quelle: Weltbank, SP.DYN.TFRT.IN (Auszug für Übungszwecke);",
    "k. A. = keine Angabe;",
]


def births():
    with open(STATSMODELS / "fertility" / "fertility.csv", encoding="utf-8", newline="") as source:
        rows = list(csv.reader(source))
    years = rows[0][4:]
    lines = PREFACE + [";".join(["Land", "Länderschlüssel", *years])]
    gap = 0
    for number, row in enumerate(rows[1:]):
        cells = []
        for value in row[4:]:
            if value:
                cells.append(f"{float(value):.3f}".rstrip("0").rstrip(".").replace(".", ","))
            else:
                cells.append(MISSING[gap % len(MISSING)])
                gap += 1
        name = NAMES.get(row[0], row[0])
        # hand-made tables have these: blanks around a name, a row entered twice
        name = f" {name} " if number % 17 == 0 else name
        line = ";".join([name, row[1], *cells])
        lines.append(line)
        if row[1] in ("DEU", "JPN"):
            lines.append(line)
    lines += FOOTER
    (HERE / "births.csv").write_bytes("\r\n".join(lines).encode("latin-1") + b"\r\n")


def main():
    shutil.copyfile(VEGA / "seattle-weather.csv", HERE / "seattle-weather.csv")
    shutil.copyfile(STATSMODELS / "macrodata" / "macrodata.csv", HERE / "macrodata.csv")
    births()


if __name__ == "__main__":
    main()
