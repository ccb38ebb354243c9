"""`html`: one self-contained page: summary, findings, nodes, raw evidence, pictures."""

from recovery.model.ports import Report
from recovery.reports.html.page import render

HTML = Report(name="html", about="one page, no network", suffix=".html", render=render)
