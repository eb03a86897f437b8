"""The bars as an SVG."""

from xml.etree import ElementTree

from bench import picture
from bench.picture import Bar, Panel

SVG = "{http://www.w3.org/2000/svg}"
PANEL = Panel(
    "jobs <each> & all",
    (
        Bar("ours", 2.0, "2 x", 'a "hint" & more', True),
        Bar("theirs", 1.0, "1 x", "", False),
        Bar("tiny", 0.0001, "0 x", "", False),
    ),
)


def drawn(*panels: Panel) -> ElementTree.Element:
    return ElementTree.fromstring(picture.draw('A "title" & <more>', panels, "a caption > none"))


def test_it_is_well_formed_whatever_the_words_are() -> None:
    root = drawn(PANEL)
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {'A "title" & <more>', "jobs <each> & all", "a caption > none"} <= set(texts)
    assert next(each.text for each in root.iter(f"{SVG}title")) == 'a "hint" & more'


def test_bars_are_as_long_as_their_figures() -> None:
    widths = [float(bar.attrib["width"]) for bar in drawn(PANEL).iter(f"{SVG}rect")]
    assert widths[0] == 2 * widths[1] == picture.ROOM
    assert widths[2] == 1  # too small to see is still there


def test_ours_is_the_one_that_stands_out() -> None:
    assert [bar.attrib["class"] for bar in drawn(PANEL).iter(f"{SVG}rect")] == ["ours", "theirs", "theirs"]


def test_everything_is_inside_the_picture() -> None:
    root = drawn(PANEL, PANEL)
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    for bar in root.iter(f"{SVG}rect"):
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) < width
    assert all(float(each.attrib["y"]) < height for each in root.iter(f"{SVG}text"))
    bottoms = [float(bar.attrib["y"]) + float(bar.attrib["height"]) for bar in root.iter(f"{SVG}rect")]
    tops = [float(bar.attrib["y"]) for bar in root.iter(f"{SVG}rect")]
    assert all(top > bottom for bottom, top in zip(bottoms, tops[1:], strict=False))


def test_who_cannot_see_it_is_told() -> None:
    assert "ours 2 x, theirs 1 x" in drawn(PANEL).attrib["aria-label"]


def test_bars_of_nothing_are_drawn_too() -> None:
    nothing = Panel("nothing", (Bar("none", 0.0, "", "", True),))
    assert len(list(drawn(nothing, Panel("empty", ())).iter(f"{SVG}rect"))) == 1


def test_light_and_dark_pages_both_have_colours() -> None:
    style = drawn(PANEL).findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme: dark" in style
