"""Escaping and the page around a report."""

import base64
import hashlib
import json
import math
import re

import pytest

from stepladder.dashboard.page import asset, compact, embedded_json, escape, page


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


def test_embedded_numbers_are_short_and_gaps_are_null() -> None:
    assert compact(1 / 3) == 0.333333
    assert compact(math.nan) is None
    assert compact(math.inf) is None
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json([math.nan])


def test_the_policy_allows_our_script_alone() -> None:
    text = page("<t>", "<p>body</p>", {"a": 1})
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', text)
    digest = base64.b64encode(hashlib.sha256(asset("report.js").encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert f"<script>{asset('report.js')}</script>" in text
    assert "<title>&lt;t&gt;</title>" in text


def test_style_and_script_load_nothing() -> None:
    for name in ("report.css", "report.js"):
        assert not re.search(r"https?:|//[a-z]|@import|url\(|fetch|XMLHttp", asset(name))
