"""The help pages, as they come with the program."""

from importlib.resources import files

from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QTextBrowser, QVBoxLayout, QWidget

WINDOW_PAGE = "The window"


def pages() -> dict[str, str]:
    """Title -> text of every page, in Markdown; the title is its first heading."""
    found = {}
    for page in sorted(files("twinstudio").joinpath("docs").iterdir(), key=lambda p: p.name):
        if page.name.endswith(".md"):
            text = page.read_text(encoding="utf-8")
            heading = next((s for s in text.splitlines() if s.startswith("# ")), f"# {page.name}")
            found[heading.removeprefix("# ").strip()] = text
    return found


class HelpDock(QWidget):
    """One page at a time; links lead to other pages, those to the web to the browser."""

    def __init__(self) -> None:
        super().__init__()
        self.browser = QTextBrowser()
        self.browser.setOpenExternalLinks(True)
        self.browser.setSearchPaths([str(files("twinstudio").joinpath("docs"))])
        self.browser.setAccessibleName("Help")
        self.browser.document().setDocumentMargin(16)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.addWidget(self.browser)

    def show_page(self, text: str) -> None:
        """Show Markdown `text` from its beginning."""
        self.browser.setSource(QUrl())
        self.browser.setMarkdown(text)
