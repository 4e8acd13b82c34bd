"""Escaping and the page around a report."""

import base64
import hashlib
import json
import math
import re

import pytest

from stepladder.dashboard.page import (
    SCRIPTS,
    STYLES,
    asset,
    compact,
    embedded_json,
    escape,
    format_value,
    page,
    shortened,
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


def test_embedded_numbers_are_short_and_gaps_are_null() -> None:
    assert compact(1 / 3) == 0.333333
    assert compact(math.nan) is None
    assert compact(math.inf) is None
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json([math.nan])


def test_numbers_in_tables() -> None:
    assert format_value(1_234_567) == "1,234,567"
    assert format_value(0.123456) == "0.1235"
    assert format_value(-2.5) == "\u22122.5"
    assert format_value(12_345.6) == "12,346"
    assert format_value(math.nan) == format_value(None) == format_value(math.inf) == "\u2013"


def test_a_long_name_loses_its_middle() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcd…ghijk"


def test_the_policy_allows_our_scripts_alone() -> None:
    text = page("<t>", "<p>body</p>", {"a": 1})
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', text)
    hashes = [hashlib.sha256(asset(name).encode()).digest() for name in SCRIPTS]
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    assert f"; script-src {allowed};" in policy
    assert policy.startswith("default-src 'none'")
    for name in SCRIPTS:
        assert f"<script>{asset(name)}</script>" in text
    assert "<title>&lt;t&gt;</title>" in text


def test_styles_and_scripts_load_nothing() -> None:
    for name in (*SCRIPTS, *STYLES):
        # The library names its home page in its first line.
        text = asset(name).replace("/*! https://github.com/leeoniya/uPlot (v1.6.32) */", "")
        assert not re.search(r"https?:|[\"'(]//[a-z]|@import|url\(|fetch\(|XMLHttp|eval\(", text)


def test_the_library_comes_with_its_licence() -> None:
    text = page("t", "", {})
    assert "The MIT License (MIT)" in text
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert "uPlot 1.6.32" in asset("vendor/uplot/README.md")
    assert "(v1.6.32)" in asset("vendor/uplot/uPlot.iife.min.js")
