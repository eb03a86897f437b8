"""Settings of Sphinx for the documentation site; `tools/build_site.py` runs it."""

project = "Geartrain"
author = copyright = "The Geartrain authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Geartrain"
html_logo = "mark.svg"
html_favicon = "mark.svg"
html_extra_path = ["extra"]
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6b78", "color-brand-content": "#0b6b78"},
    "dark_css_variables": {"color-brand-primary": "#4fc3d0", "color-brand-content": "#4fc3d0"},
}
# Fonts and icons are the reader's or inline, and search runs in the browser: the site loads nothing from elsewhere.
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "monokai"
# Headings get the anchors that the forges give them, so that a link works in both places.
myst_heading_anchors = 5
myst_fence_as_directive: list[str] = []
# Examples that are shortened with `...` are not valid JSON or TOML, and need not be.
suppress_warnings = ["misc.highlighting_failure"]
