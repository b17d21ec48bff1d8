"""The look: colours, fonts and the 8-pixel grid, dark and light."""

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication, QLabel

GRID = 8

TWIN = "#0072B2"
CELL = "#E69F00"
GAP = "#CC79A7"
GOOD = "#009E73"
ALARM = "#D55E00"

CHOICES = ("system", "light", "dark")


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of one scheme; the meaning colours are the same in both.

    edge: around what can be typed into or ticked, 3:1 against the window (WCAG 2.1, 1.4.11).
    """

    dark: bool
    window: str
    base: str
    raised: str
    text: str
    faint: str
    line: str
    edge: str
    accent: str
    warning: str
    twin: str = TWIN
    cell: str = CELL
    gap: str = GAP
    good: str = GOOD
    alarm: str = ALARM


LIGHT = Theme(
    dark=False,
    window="#F3F4F6",
    base="#FFFFFF",
    raised="#E7E9EC",
    text="#1B1E23",
    faint="#5D636D",
    line="#CDD1D7",
    edge="#868D98",
    accent="#0067A0",
    warning="#8A5A00",
)
DARK = Theme(
    dark=True,
    window="#202328",
    base="#17191D",
    raised="#2C3037",
    text="#E4E6EA",
    faint="#9AA1AC",
    line="#3A3F48",
    edge="#6B7280",
    accent="#56B4E9",
    warning="#E69F00",
)


def chosen(app: QApplication, choice: str = "system") -> Theme:
    """The theme called ``light`` or ``dark``; else the one the system asks for."""
    # A platform without a theme of its own ignores QStyleHints.setColorScheme,
    # so the choice is applied here and not left to Qt.
    if choice in ("light", "dark"):
        return DARK if choice == "dark" else LIGHT
    return DARK if app.styleHints().colorScheme() == Qt.ColorScheme.Dark else LIGHT


def apply(app: QApplication, theme: Theme) -> None:
    """Colour every widget of `app`."""
    sheet = _sheet(theme)
    # Qt walks every widget for a new sheet, 0.1 s in a full window: not without need.
    if app.styleSheet() != sheet:
        app.setPalette(_palette(theme))
        app.setStyleSheet(sheet)


def show_role(label: QLabel, role: str) -> None:
    """Give `label` the look of another role."""
    if label.property("role") != role:
        label.setProperty("role", role)
        label.style().unpolish(label)
        label.style().polish(label)


def number_font(base: QFont) -> QFont:
    """`base` with digits of equal width, so that columns do not jitter."""
    font = QFont(base)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def code_font() -> QFont:
    """The system's fixed-width font."""
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)


def _palette(theme: Theme) -> QPalette:
    palette = QPalette()
    role = QPalette.ColorRole
    for which, colour in (
        (role.Window, theme.window),
        (role.WindowText, theme.text),
        (role.Base, theme.base),
        (role.AlternateBase, theme.window),
        (role.Text, theme.text),
        (role.Button, theme.raised),
        (role.ButtonText, theme.text),
        (role.ToolTipBase, theme.raised),
        (role.ToolTipText, theme.text),
        (role.PlaceholderText, theme.faint),
        (role.Highlight, theme.accent),
        (role.HighlightedText, theme.base),
        (role.Link, theme.accent),
        (role.Mid, theme.line),
        (role.Dark, theme.line),
        (role.BrightText, theme.alarm),
    ):
        palette.setColor(which, QColor(colour))
    for which in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, which, QColor(theme.faint))
    return palette


def _sheet(theme: Theme) -> str:
    half = GRID // 2
    return f"""
QToolTip {{ color: {theme.text}; background: {theme.raised}; border: 1px solid {theme.line};
    padding: {half}px; }}
QMainWindow::separator {{ background: {theme.window}; width: {half}px; height: {half}px; }}
QMainWindow::separator:hover {{ background: {theme.accent}; }}
QDockWidget::title {{ background: {theme.raised}; padding: 3px {GRID}px; }}
QDockWidget::close-button, QDockWidget::float-button {{
    background: {theme.faint if theme.dark else "transparent"}; border-radius: 2px; }}
QDockWidget::close-button:hover, QDockWidget::float-button:hover {{
    background: {theme.accent}; }}
QToolBar {{ border: none; border-bottom: 1px solid {theme.line}; spacing: {half}px;
    padding: {half}px {GRID}px; }}
QToolButton {{ color: {theme.text}; background: {theme.raised}; border: 1px solid {theme.line};
    border-radius: 3px; padding: 2px {GRID - 2}px; }}
QToolButton:hover {{ border-color: {theme.faint}; }}
QToolButton:pressed, QToolButton:checked {{ background: {theme.base};
    border: 2px solid {theme.accent}; padding: 1px {GRID - 3}px; }}
QToolButton:focus {{ border-color: {theme.accent}; }}
QToolButton:disabled {{ color: {theme.faint}; }}
QToolButton[popupMode="2"] {{ padding-right: {2 * GRID}px; }}
QToolButton::menu-indicator {{ subcontrol-origin: border; subcontrol-position: center right;
    right: {half}px; }}
QLineEdit {{ background: {theme.base}; border: 1px solid {theme.edge}; border-radius: 2px;
    padding: 1px 2px; selection-background-color: {theme.accent};
    selection-color: {theme.base}; }}
QLineEdit:focus {{ border-color: {theme.accent}; }}
QLineEdit:disabled {{ color: {theme.faint}; border-color: {theme.line}; }}
QTableView QLineEdit {{ border: none; }}
QCheckBox::indicator:unchecked {{ width: 12px; height: 12px; background: {theme.base};
    border: 1px solid {theme.edge}; border-radius: 2px; }}
QCheckBox::indicator:unchecked:focus {{ border-color: {theme.accent}; }}
QToolBar QToolButton, QStatusBar QToolButton {{ background: transparent;
    border-color: transparent; }}
QToolBar QToolButton:hover, QToolBar QToolButton:focus {{ border-color: {theme.faint}; }}
QToolBar QToolButton:checked {{ background: {theme.base}; border-color: {theme.accent}; }}
QDockWidget {{ font-weight: 600; }}
QStatusBar {{ border-top: 1px solid {theme.line}; }}
QStatusBar::item {{ border: none; }}
QStatusBar QLabel {{ border-left: 1px solid {theme.line}; padding: 0 {GRID}px; }}
QHeaderView::section {{ background: {theme.raised}; color: {theme.text}; border: none;
    border-right: 1px solid {theme.line}; padding: 2px {half}px; }}
QTableView, QTreeView, QListView, QTextBrowser {{ border: none; background: {theme.base};
    gridline-color: {theme.line}; }}
QLabel[role="faint"] {{ color: {theme.faint}; }}
QLabel[role="title"] {{ font-weight: 600; }}
QLabel[role="alarm"] {{ color: {theme.alarm}; font-weight: 600; }}
QLabel[role="warning"] {{ color: {theme.warning}; font-weight: 600; }}
QFrame[role="popover"] {{ background: {theme.raised}; border: 1px solid {theme.faint}; }}
"""
