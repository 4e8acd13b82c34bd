"""Escaping, and the page that holds all modules in one file."""

import base64
import hashlib
import json
import re
from importlib.resources import files

from stepladder.dashboard.page import (
    FROZEN,
    LIVE,
    asset,
    bundle,
    embedded_json,
    escape,
    frozen_page,
)


def test_markup_is_escaped_in_text_and_attributes() -> None:
    assert escape("<b a='1' c=\"2\">&") == "&lt;b a=&#x27;1&#x27; c=&quot;2&quot;&gt;&amp;"
    assert escape(3.5) == "3.5"


def test_what_xml_and_utf8_cannot_hold_is_replaced() -> None:
    assert escape("a\x00b\ud800c\x1bd\te") == "a\ufffdb\ufffdc\ufffdd\te"


def test_embedded_json_cannot_end_its_script() -> None:
    data = {"</script><script>alert(1)</script>": "<!-- & \u2028"}
    text = embedded_json(data)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data


def test_the_policy_allows_the_scripts_and_styles_of_the_page_and_no_other() -> None:
    text = frozen_page("a <title>", {"answers": {}})
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    inside = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    inside += re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(inside) == 3
    digests = (hashlib.sha256(one.encode()).digest() for one in inside)
    assert {base64.b64encode(digest).decode() for digest in digests} == allowed
    assert "unsafe" not in policy
    assert "<title>a &lt;title&gt;</title>" in text


def test_the_licence_of_the_charts_goes_with_the_page() -> None:
    assert asset("vendor/uplot/LICENSE").strip() in frozen_page("a", {})


def test_a_bundle_has_every_module_once_and_before_those_that_need_it() -> None:
    for entry in (LIVE, FROZEN):
        text = bundle(entry)
        assert not re.search(r"^(import|export) ", text, re.MULTILINE)
        places = [int(number) for number in re.findall(r"= modules\[(\d+)\];", text)]
        assert max(places) < text.count("modules.push(")
        assert text.count("export function lineChart") == 0
        assert text.count("lineChart = (element, spec)") == 1


def test_modules_import_and_export_in_the_way_that_a_bundle_reads() -> None:
    folder = files("stepladder.dashboard").joinpath("static")
    modules = [one for one in folder.iterdir() if one.name.endswith(".js")]
    modules += [one for one in folder.joinpath("sections").iterdir() if one.name.endswith(".js")]
    for module in modules:
        lines = module.read_text(encoding="utf-8").splitlines()
        for line in lines:
            if line.startswith("import"):
                assert re.fullmatch(r'import \{ [^}]+ \} from "\.\.?/[\w./]+";', line), line
            if line.startswith("export"):
                assert re.match(r"export (const|class|function|async function) \w+", line), line
        assert len(lines) <= 400
        assert not re.search(
            r"\.(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(", "\n".join(lines)
        )
